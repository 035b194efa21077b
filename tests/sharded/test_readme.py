"""The README's commands for several processes are run, shortened."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.sharded.ranks import relwalk_ranks

README = Path(__file__).parent.parent.parent / "README.md"
BRIEF = {"train": ["--dim", "8", "--epochs", "1"], "resume": ["--epochs", "2"], "evaluate": []}


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(), flags=re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.startswith("torchrun ")]


def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verbs = []
    for words in commands():
        size, own = int(words[words.index("--nproc-per-node") + 1]), words[words.index("relwalk") + 1 :]
        if "--epochs" in own:
            place = own.index("--epochs")
            own = own[:place] + own[place + 2 :]
        relwalk_ranks(size, *own, *BRIEF[own[0]], folder=tmp_path / "said")
        verbs.append(own[0])
    assert verbs == ["train", "resume", "evaluate"]
