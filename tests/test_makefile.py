"""Which Python `make` builds its environments with, with Pythons that lack something on the PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHOICE = ROOT / "tools" / "python.sh"
WORKS = f'exec {sys.executable} "$@"'
LACKS = 'case "$2" in *"{}"*) exit 1 ;; esac\n' + WORKS
SHIM = "echo 'pyenv: command not found' >&2\nexit 127"  # on the PATH, and does not run
OLD, NO_VENV, NO_PIP = LACKS.format("version_info"), LACKS.format("import venv"), LACKS.format("ensurepip")


def choose(folder: Path, pythons: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    for name, body in pythons.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    command = ["/bin/sh", str(CHOICE)]
    return subprocess.run(command, env={"PATH": str(folder), **environment}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3.11": WORKS, "python3.12": WORKS}, "python3.11"),
        ({"python3.11": SHIM, "python3.13": WORKS, "python3": WORKS}, "python3.13"),
        ({"python3.11": SHIM, "python3": OLD, "python": WORKS}, "python"),
        ({"python3.11": NO_PIP, "python3.12": NO_VENV, "python3.14": WORKS}, "python3.14"),
    ],
)
def test_the_first_that_works_is_taken(tmp_path: Path, pythons: dict[str, str], chosen: str) -> None:
    found = choose(tmp_path, pythons)
    assert (found.returncode, found.stdout, found.stderr) == (0, f"{chosen}\n", "")


@pytest.mark.parametrize(
    ("pythons", "words"),
    [
        ({}, "found no Python 3.11 or later that runs (tried python3.11 "),
        ({"python3.11": SHIM, "python3": OLD}, "found no Python 3.11 or later that runs"),
        ({"python3": NO_VENV}, "python3 has no module venv. Install it"),
        ({"python3.12": NO_PIP}, "python3.12 has no pip to put into an environment. Install it"),
    ],
)
def test_what_is_missing_is_one_line(tmp_path: Path, pythons: dict[str, str], words: str) -> None:
    found = choose(tmp_path, pythons)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (1, "", 1)
    assert words in found.stderr and "make PYTHON=" in found.stderr


def test_the_one_that_was_named_wins(tmp_path: Path) -> None:
    pythons = {"python3.11": WORKS, "my own": WORKS, "old": OLD}
    assert choose(tmp_path, pythons, PYTHON="my own").stdout == "my own\n"
    assert "tried old" in choose(tmp_path, pythons, PYTHON="old").stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "python3.11").write_text(f"#!/bin/sh\n{SHIM}\n")
    (tmp_path / "python3.11").chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    command = [str(shutil.which("make")), "-C", str(ROOT), "demo", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("relwalk: found no Python 3.11 or later that runs")
    named = [*command, "-n", "PYTHON=mine"]
    assert subprocess.run(named, env={"PATH": str(tmp_path)}, capture_output=True, text=True).returncode == 0
