"""What the documents say is run."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.entry import relwalk, snippet

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]  # in the order in which their commands are run
BENCHMARKS = ("wn18rr", "fb15k-237", "fb13")


def blocks(language: str, *documents: Path) -> list[str]:
    """Of some pages, what is fenced as being of a language."""
    return [
        found for page in documents for found in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)
    ]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run and the files that the commands of the pages speak of."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "facts.tsv").write_text("".join(f"e{i % 30}\tr{i % 4}\te{i * 11 % 37}\n" for i in range(200)))
    (folder / "weighted.csv").write_text("".join(f"e{i % 30},r{i % 4},e{i * 11 % 37},{i / 7}\n" for i in range(200)))
    (folder / "settings.toml").write_text('objective = "softmax"\nbatch_size = 2048\n')
    (folder / "questions.tsv").write_text("France\tborders\t?\n?\tspeaks\tArabic\nLisbon\t?\tPortugal\n")
    (folder / "triples.tsv").write_text("France\tborders\tSpain\nParis\tcapital_of\tSpain\n")
    (folder / "judgements.tsv").write_text("head\trelation\ttail\tverdict\nKyoto\tnear\tHimeji\taccept\n")
    relwalk("train", "world", "--dim", 16, "--epochs", 4, "--out", "runs/world", cwd=folder)
    return folder


def commands(*pages: Path) -> list[str]:
    """Each command once, without what is said of it."""
    lines = [line.strip() for block in blocks("sh", *pages) for line in block.replace("\\\n", " ").splitlines()]
    return list(dict.fromkeys(line.split("  #")[0].strip() for line in lines if line.startswith("relwalk ")))


def test_the_readme_has_commands() -> None:
    verbs = {shlex.split(line)[1] for line in commands(README)}
    assert {"train", "resume", "evaluate", "classify", "predict", "info", "datasets", "convert", "export"} <= verbs
    assert {"discover", "report", "compare", "analyse", "compress"} <= verbs


def test_every_page_is_reached_from_the_readme() -> None:
    for page in PAGES[1:]:
        assert f"](docs/{page.name})" in README.read_text(), page.name


@pytest.mark.parametrize("line", commands(*PAGES))
def test_every_command_of_the_pages_runs(line: str, workplace: Path) -> None:
    arguments = shlex.split(line)[1:]
    if any(word in BENCHMARKS for word in arguments) and not os.environ.get("RELWALK_DATA"):
        pytest.skip("RELWALK_DATA does not name a folder with the benchmark graphs")
    if arguments[0] == "train":  # as written, but short
        epochs = arguments[arguments.index("--average-from") + 1] if "--average-from" in arguments else "1"
        arguments = [*_without(arguments, "--epochs"), "--epochs", epochs, "--dim", "16", "--force"]
        if arguments[1] in BENCHMARKS:
            arguments += ["--budget", "1s"]
    if arguments[0] == "reproduce":  # of the small graph, RelWalk alone, all with one training
        for option in ("--dataset", "--recipe", "--models", "--seeds", "--budget", "--results"):
            arguments = _without(arguments, option)
        arguments += ["--dataset", "world", "--models", "relwalk", "--epochs", "1", "--dim", "4"]
    if arguments[0] == "tune":
        trials = "2" if "--jobs" in arguments else "1"
        short = ["--budget", "9m", "--trials", trials, "--epochs", "1", "--dim", "16", "--force"]
        arguments = [*_without(arguments, "--budget"), *short]
    if arguments[0] == "compare":
        arguments = [*_without(arguments, "--budget"), "--budget", "0.3s", "--dim", "16"]
    relwalk(*arguments, cwd=workplace)


def _without(arguments: list[str], option: str) -> list[str]:
    if option not in arguments:
        return arguments
    place = arguments.index(option)
    return arguments[:place] + arguments[place + 2 :]


@pytest.mark.parametrize("block", blocks("python", *PAGES, ROOT / "CONTRIBUTING.md"))
def test_every_python_snippet_of_the_documents_runs(block: str, workplace: Path) -> None:
    snippet(re.sub(r"dim=\d+", "dim=16", re.sub(r"epochs=\d+", "epochs=2", block)), cwd=workplace)


def test_local_links_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *PAGES[1:]]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
