"""The commands of the pages for several processes are run, shortened."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.sharded.ranks import relwalk_ranks

ROOT = Path(__file__).parent.parent.parent
README, PAGE = ROOT / "README.md", ROOT / "docs" / "sharded.md"
BRIEF = {
    "train": ["--dim", "8", "--epochs", "1"],
    "resume": ["--epochs", "2"],
    "evaluate": [],
    "discover": [],
    "predict": [],
}


def commands(page: Path) -> list[list[str]]:
    lines = [
        line for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL) for line in block.splitlines()
    ]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("torchrun ")]


def test_the_commands_of_the_page_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verbs = []
    for words in commands(PAGE):
        size, own = int(words[words.index("--nproc-per-node") + 1]), words[words.index("relwalk") + 1 :]
        if "--epochs" in own:
            place = own.index("--epochs")
            own = own[:place] + own[place + 2 :]
        relwalk_ranks(size, *own, *BRIEF[own[0]], folder=tmp_path / "said")
        verbs.append(own[0])
    assert verbs == ["train", "resume", "evaluate", "discover", "predict"]
    assert commands(README) and all(words in commands(PAGE) for words in commands(README))
