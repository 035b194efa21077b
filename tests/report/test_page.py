"""The page: whole, well-formed, silent about what it does not know, and at rest in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from relwalk.errors import UnknownName
from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.report.sections import SECTIONS
from relwalk.reporting import make_report
from relwalk.runs.run import Run
from relwalk.theory import sweep
from tests.conftest import TEST, TRAIN, VALID, make_graph
from tests.entry import brief_theory

VOID = {"meta", "link", "img", "input", "br", "circle", "line", "rect", "polyline"}
QUICK = {"dim": 8, "epochs": 2, "validate_every": 1, "threads": 1}
NASTY = ("<b>bold</b>", "a & b", 'say "hi"', "it's", "</script><script>alert(1)</script>")


class Page(HTMLParser):
    """The text, tags and attributes of a page; complains about tags that do not balance."""

    def __init__(self, words: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.feed(words)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(self.text)


def check(words: str) -> Page:
    """What must hold of every page."""
    page = Page(words)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)) and {s.key for s in SECTIONS} <= set(ids)
    assert not re.search(r"\b(nan|inf|infinity)\b", page.words, re.IGNORECASE), "a figure that is no number"
    assert "None" not in map(str.strip, page.text)
    for tag, name, value in page.attributes:
        if name in ("src", "href"):
            assert value.startswith(("data:", "#")), f"<{tag} {name}={value[:60]}> asks the outside"
        assert not re.search(r"\b(nan|inf)\b", value, re.IGNORECASE), (tag, name, value[:60])
    assert "@import" not in words and "url(" not in words and "fetch(" not in words
    return page


@pytest.fixture(scope="module")
def learned(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(world, out=tmp_path_factory.mktemp("runs") / "world", **QUICK)


@pytest.fixture(scope="module")
def page(learned: Run) -> str:
    return make_report(learned, directions=60)


def test_the_page_of_a_run_is_whole(learned: Run, page: str) -> None:
    found = check(page)
    assert "Not shown" not in found.words
    for words in (
        "MRR",
        "popularity in train",
        "random order, expected",
        "all entities",
        "exact orthogonality",
        "Pearson",
        "Where it stops holding",
        "this run",
        "The loop closes",
    ):
        assert words in found.words
    assert found.tags.count("svg") >= 10 and found.tags.count("canvas") == 1
    images = [v for tag, name, v in found.attributes if (tag, name) == ("img", "src")]
    assert len(images) == 9 and all(v.startswith("data:image/png;base64,") for v in images)
    assert len(page.encode()) < 500_000
    assert "prefers-color-scheme: dark" in page and ("th", "aria-sort", "none") in found.attributes


def test_the_same_seed_gives_the_same_page(learned: Run, page: str) -> None:
    told: list[str] = []
    sweep._row.cache_clear()
    assert make_report(learned, directions=60, progress=told.append) == page
    assert any("ranking" in t for t in told) and any("theory" in t for t in told) and len(told) > 15


def test_relations_can_be_chosen_and_an_unknown_one_is_refused(learned: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    brief_theory(monkeypatch.setattr)
    with pytest.raises(UnknownName, match="speaks"):
        make_report(learned, relations=["speeks"])
    chosen = check(make_report(learned, relations=["speaks"], directions=20))
    images = [v for tag, name, v in chosen.attributes if (tag, name) == ("img", "src")]
    assert len(images) == 3 and "M for speaks" in str(chosen.attributes)


@pytest.mark.parametrize(
    ("model", "options", "reasons"),
    [
        ("relwalk", {"orthogonality": "soft"}, 0),
        ("rescal", {}, 4),
        ("distmult", {}, 6),
        ("relwalk", {"reciprocal": True}, 4),
    ],
)
def test_other_models_get_reasons(
    model: str,
    options: dict[str, object],
    reasons: int,
    world: Graph,
    small_world: Graph,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brief_theory(monkeypatch.setattr)
    # The lemma needs more entities, where it applies.
    run = train(world if reasons == 0 else small_world, model=model, **options, **QUICK)
    found = check(make_report(run, directions=20))
    # A run that was not saved keeps no history: that is one more.
    assert found.words.count("Not shown") == reasons + 1
    assert ("kept by a penalty" in found.words) == (options.get("orthogonality") == "soft")


def named(graph: Graph, entities: tuple[str, ...], relations: tuple[str, ...]) -> Graph:
    names = {"entities": Vocabulary("entity", entities), "relations": Vocabulary("relation", relations)}
    return Graph(name="<i>&graph", train=graph.train, valid=graph.valid, test=graph.test, **names)


def test_names_are_text_and_nothing_else() -> None:
    graph = named(make_graph(TRAIN, VALID, TEST), NASTY, NASTY[3:])
    words = make_report(train(graph, **QUICK), directions=20)
    found = check(words)
    assert "alert(1)</script>" not in words and "<b>bold" not in words
    assert found.tags.count("script") == 2  # the data of the map, and the page's own
    assert any(NASTY[4] in text for text in found.text), "the name is shown as it is"


def test_a_relation_without_test_triples_and_a_graph_without_any() -> None:
    some = check(make_report(train(make_graph(TRAIN, VALID, [(0, 0, 3)]), **QUICK), directions=20))
    assert "no test triples" in some.words
    bare = check(make_report(train(make_graph(TRAIN), **QUICK), directions=20))
    assert "has no test triples to judge the model by" in bare.words
    unused = make_graph(TRAIN, VALID, TEST, relations=3)
    check(make_report(train(unused, **QUICK), relations=["sees"], directions=20))


def test_one_dimension_and_one_relation() -> None:
    graph = make_graph([(0, 0, 1), (1, 0, 2)], [], [(0, 0, 2)], relations=1)
    check(make_report(train(graph, **(QUICK | {"dim": 1})), directions=20))


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def test_a_browser_draws_it_without_complaint_or_request(page: str, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed: the page was not opened in a browser")
    file = tmp_path / "report.html"
    file.write_text(page, "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"]
    # No name is resolved: whatever the page asked for would fail, and be told on the console.
    flags += [f"--user-data-dir={tmp_path / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom"]
    done = subprocess.run([browser, *flags, f"file://{file}?theme=dark"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert 'data-ready="yes"' in done.stdout and 'data-theme="dark"' in done.stdout
    assert 'data-drawn="2737"' in done.stdout


def test_pages_are_packaged_with_their_style_and_script() -> None:
    for name in ("style.css", "script.js"):
        assert len(files("relwalk.report").joinpath(name).read_text("utf-8")) > 1000
