"""How results show themselves: one line as repr, a table in a notebook, and no name that is taken for anything else."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import relwalk
from relwalk.display import WIDEST, Shown, one_line
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.runs.run import Run
from relwalk.theory.analyse import PARTS
from relwalk.theory.sweep import sweep
from relwalk.training.schedule import Constant

ODD = ("<script>alert(1)</script>", 'a"b', "c&d", "e\x1b[31mf", "g\nh", "<b>i", "j'k", "l")


@pytest.fixture(scope="module")
def run() -> Run:
    """A run on a graph whose names are as bad as names can be."""
    rng = np.random.default_rng(0)
    rows = np.unique(np.stack([rng.integers(n, size=120) for n in (8, 3, 8)], 1), axis=0).astype(np.int32)
    rng.shuffle(rows)
    graph = Graph(
        name="<script>graph</script>",
        entities=Vocabulary("entity", ODD),
        relations=Vocabulary("relation", ("<script>r</script>", "overall", "\x1b]0;x\x07")),
        train=rows[20:],
        valid=rows[:10],
        test=rows[10:20],
    )
    return relwalk.train(graph, dim=4, epochs=2, validate_every=1)


@pytest.fixture(scope="module")
def results(run: Run) -> list[Shown]:
    some = [part for part in PARTS if part != "limits"]  # as dear for a small model as for a large one
    ranking, analysis = relwalk.rank(run), relwalk.analyse(run, directions=20, parts=some)
    classification = relwalk.classify(run)
    generated = relwalk.generate(20, 2, 50, 4)
    return [
        *(run, ranking, classification, classification.thresholds, *ranking.ranks.values()),
        *(analysis, *analysis.parts.values()),
        relwalk.predict(run, head=ODD[0], relation="<script>r</script>"),
        relwalk.predict(run, head=ODD[0], tail=ODD[1]),
        relwalk.walk(run.model, run.graph, steps=2, paths=2),
        sweep({"norm": (1.0,)}, base={"dim": 4, "entities": 20}, pairs=4, directions=10, draws=4),
        *(generated, relwalk.closed_loop(generated, generated.model, directions=50)),
    ]


def test_a_repr_is_one_short_line(results: list[Shown]) -> None:
    for result in results:
        text = repr(result)
        assert text.startswith(f"<{type(result).__name__} ") and text.endswith(">")
        assert len(text) <= WIDEST and text.isprintable()
        assert len(text) > len(type(result).__name__) + 8  # and says something


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_notebook_shows_whole_html_in_which_no_name_is_a_tag(results: list[Shown]) -> None:
    known = {"div", "table", "thead", "tbody", "tr", "th", "td", "pre", "details", "summary"}
    for result in results:
        parser = Tags()
        parser.feed(result._repr_html_())
        parser.close()
        assert parser.tags and parser.tags <= known and not parser.open


def test_figures_are_tables_in_a_notebook(run: Run) -> None:
    found = relwalk.rank(run)
    html = found._repr_html_()
    assert "<table>" in html and f">{found.mrr:.3f}<" in html and ">AMRI<" in html
    answers = relwalk.predict(run, head=ODD[0], relation="overall", k=3)
    assert answers._repr_html_().count("<tr>") == 4 and "&lt;script&gt;alert(1)" in answers._repr_html_()
    judged = relwalk.classify(run)
    assert f">{judged.model.accuracy:.4f}<" in judged._repr_html_()
    assert judged._repr_html_().count(">overall<") == 2  # the relation of that name, and all of them
    assert ">valid MRR " in run._repr_html_() and "relwalk d=4" in run._repr_html_()
    assert relwalk.analyse(run, parts=["theorem"])._repr_html_().count("<details>") == 1


def test_a_text_on_one_line() -> None:
    assert one_line("a\tb\n c\x1b[0m", 20) == "a b c [0m"
    assert one_line("abcdef", 4) == "abc…"


def test_a_run_is_judged_as_its_model_and_graph_are(run: Run) -> None:
    graph = run.graph
    assert str(relwalk.rank(run)) == str(relwalk.rank(run.model, graph, "test"))
    assert relwalk.rank(run, split="valid").mrr == relwalk.rank(run.model, graph, "valid").mrr
    assert relwalk.classify(run).as_dict() == relwalk.classify(run.model, graph).as_dict()
    parts = ["orthogonality"]
    assert relwalk.analyse(run, parts=parts).as_dict() == relwalk.analyse(run.model, graph, parts=parts).as_dict()


@pytest.mark.parametrize("verb", ["rank", "classify", "analyse"])
def test_what_is_no_run_is_told(verb: str, run: Run) -> None:
    call = getattr(relwalk, verb)
    with pytest.raises(relwalk.RelWalkError, match=rf"Say {verb}\(model, graph\), or {verb}\(run\)"):
        call(run.model)
    with pytest.raises(relwalk.RelWalkError, match="found str; expected a run"):
        call("runs/world")
    with pytest.raises(relwalk.RelWalkError, match="split='valid'"):
        call(run, "valid")


@pytest.mark.parametrize(
    ("epochs", "metrics", "words"),
    [
        (100, {"epochs": 80, "best_epoch": 30}, "stopped early at epoch 80, best 30"),
        (100, {"epochs": 100, "best_epoch": 100}, "still improving: relwalk resume 'my runs/x' --epochs 200"),
        (100, {"epochs": 100, "best_epoch": 90}, None),
        (10, {"epochs": 10, "best_epoch": 10}, None),  # one validation shows no direction
        (100, {"epochs": 100, "best_epoch": 0, "valid_mrr": None}, None),
    ],
)
def test_the_end_says_what_more_epochs_would_bring(run: Run, epochs: int, metrics: dict, words: str | None) -> None:
    constant = {"decay_end": 1.0, "schedule": Constant(name="constant")}
    training = run.record.training.model_copy(update={"epochs": epochs, "validate_every": 10} | constant)
    record = run.record.model_copy(update={"training": training, "metrics": {"valid_mrr": 0.5} | metrics})
    assert Run(Path("my runs/x"), record, run.graph, run.model).outlook == words
    fallen = record.model_copy(update={"training": training.model_copy(update={"decay_end": 0.5})})
    if words is not None and "resume" in words:  # what fell to the end would rise again
        words = f"still improving: train again with --epochs {2 * epochs}"
    assert Run(Path("my runs/x"), fallen, run.graph, run.model).outlook == words
