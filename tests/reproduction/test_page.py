"""The page of results and the README's table are what the records say, and nothing else."""

from __future__ import annotations

import re

import pytest
from tools.results import README, RESULTS, documents, stale

from relwalk.reproduction.choice import choice_table
from relwalk.reproduction.page import BEGIN, END, readme_table, results_page, with_part
from relwalk.reproduction.record import ResultRecord, read_results
from tests.reproduction.test_reproduce import record

RECORDS = read_results(RESULTS / "records")


def test_what_is_made_from_the_records_is_not_stale() -> None:
    assert stale() == [], "run: make results"


def test_another_figure_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = [record("relwalk", 0.1234).model_copy(update={"recipe": "default"}), *RECORDS]
    monkeypatch.setattr("tools.results.read_results", lambda folder: changed)
    assert set(stale()) == {"README.md"} and len(stale()) == 2  # the project's, and that of results


def test_every_figure_of_the_readmes_table_has_a_record_or_is_the_papers() -> None:
    table = README.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line][2:]
    assert len(rows) >= 4
    ours = {f"{r.figure(rule):.3f}" for r in RECORDS for rule in ("all", "argument") if r.figure(rule) is not None}
    for row in rows:
        assert "the paper" in row[-1] or row[2].split(" ")[0] in ours, row


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)\)", results_page(RECORDS)):
        assert (RESULTS / target).exists(), target


def test_only_what_is_between_the_marks_is_changed() -> None:
    readme = f"a\n{BEGIN}\nold\n{END}\nz\n"
    assert with_part(readme, f"{BEGIN}\nnew\n{END}") == f"a\n{BEGIN}\nnew\n{END}\nz\n"
    assert README in documents()


def test_a_page_of_several_recipes_and_seeds() -> None:
    records = [record("relwalk", 0.46, theory={"table3": {"absent": "no walk"}}), record("relwalk", 0.48, seed=1)]
    failed = record("transe", 0.2).model_copy(update={"status": "failed", "reason": "it burned | down"})
    page = results_page([*records, failed])
    assert "0.470 ± 0.014 (0.451, +0.019)" in page and "does not apply: no walk" in page
    assert "it burned \\| down" in page and "| RESCAL | WN18RR | - | 0.467 |" in page
    assert "best, seeds 0, 1" in readme_table(records) and "it burned" not in readme_table([*records, failed])
    fast = record("distmult", 0.3).model_copy(
        update={"metrics": records[0].metrics.model_copy(update={"valid_mrr": 0.4})}
    )
    assert re.search(r"\| DistMult \| WN18RR \| 0\.460 \| 0\.452 \| \+0\.008 \|", results_page([fast]))
    slow = record("complex", 0.3).model_copy(
        update={"metrics": record("complex", 0.3).metrics.model_copy(update={"valid_mrr": 0.3})}
    )
    assert re.search(r"\| ComplEx \| WN18RR \| 0\.300 \| 0\.475 \| -0\.175\* \|", results_page([slow]))


def test_which_model_when_says_what_each_is_the_first_in() -> None:
    dense, sparse = record("complex", 0.30), record("transe", 0.20)
    known = [
        _on("fb15k-237", dense, 0.35, seconds=100, numbers=5_000_000),
        _on("wn18rr", dense, 0.45, seconds=100, numbers=5_000_000),
        _on("fb15k-237", sparse, 0.33, seconds=60, numbers=9_000_000),
        _on("wn18rr", sparse, 0.46, seconds=30, numbers=9_000_000),
        _on("fb15k-237", record("ntn", 0.2), 0.10, seconds=1, numbers=1),
    ]
    rows = {line.split("|")[1].strip(): line for line in choice_table(known).splitlines() if line.startswith("|")}
    assert list(rows)[2:] == ["ComplEx", "TransE", "NTN"]  # the best first; one with a single graph is the last
    assert "many triples" in rows["ComplEx"] and "few numbers" in rows["ComplEx"] and "10.0 M" in rows["ComplEx"]
    assert (
        "they have few" in rows["TransE"] and "little time" in rows["TransE"] and "| 0.330 | 0.460 |" in rows["TransE"]
    )
    assert rows["NTN"].endswith("| - |")  # fast and small, and far below the best


def _on(dataset: str, like: ResultRecord, mrr: float, *, seconds: float, numbers: int) -> ResultRecord:
    found = record(like.model, mrr)
    cost = found.cost.model_copy(update={"seconds": seconds, "numbers": numbers})
    metrics = found.metrics.model_copy(update={"valid_mrr": mrr})
    return found.model_copy(update={"dataset": dataset, "cost": cost, "metrics": metrics})
