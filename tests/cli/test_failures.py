"""What the system refuses is one line with the path, what happened and the cure, in every verb that writes."""

from __future__ import annotations

import errno
import json
import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from relwalk.cli.failures import FAILURES, MEMORY, memory_words, os_words
from relwalk.cli.printable import printable
from relwalk.files import write_atomically
from tests.cli.test_cli import FAST
from tests.entry import relwalk

TRAIN = ("train", "world", *FAST, "--out")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("failures") / "world"
    relwalk(*TRAIN, path)
    return path


def refused(*arguments: object, before: Callable[[], None] | None = None) -> str:
    """The one line of a command that fails."""
    done = relwalk(*arguments, status=1, before=before)
    lines = [line for line in done.stderr.splitlines() if line.startswith("relwalk: ")]
    assert len(lines) == 1 and done.stderr.endswith(lines[0] + "\n"), done.stderr
    return lines[0]


def writers(run: Path, tmp_path: Path) -> dict[str, tuple[object, ...]]:
    """Every verb that writes, but for the place where."""
    (tmp_path / "q.tsv").write_text("France\tborders\t?\n")
    return {
        "train": TRAIN,
        "export": ("export", run),
        "word2vec": ("export", run, "--to", "word2vec"),
        "report": ("report", run, "--directions", 10, "--out"),
        "predict": ("predict", run, "--queries", tmp_path / "q.tsv", "--out"),
        "convert": ("convert", "world"),
        "generate": ("generate", "--entities", 20, "--triples", 50, "--dim", 2, "--out"),
    }


VERBS = ("train", "export", "word2vec", "report", "predict", "convert", "generate")


@pytest.mark.parametrize("verb", VERBS)
def test_a_place_that_cannot_be_written(run: Path, tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("")
    command = writers(run, tmp_path)[verb]
    assert "file" in refused(*command, tmp_path / "file" / "sub.tsv")
    assert "/proc" in refused(*command, "/proc/relwalk.tsv")  # read-only, also to root
    long = refused(*command, tmp_path / ("x" * 300 + ".tsv"))
    assert "too long" in long


@pytest.mark.parametrize("verb", ("export", "predict"))
def test_a_folder_in_the_way(run: Path, tmp_path: Path, verb: str) -> None:
    (tmp_path / "d.tsv").mkdir()
    line = refused(*writers(run, tmp_path)[verb], tmp_path / "d.tsv", "--force")
    assert line == f"relwalk: {tmp_path / 'd.tsv'}: a folder is in the way. Choose another name, or move the folder."


def small_disk() -> None:
    """As full as a disk can be made without one: a write beyond 20 kB fails in the middle."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("verb", ("train", "export", "word2vec", "convert"))
def test_a_full_disk(run: Path, tmp_path: Path, verb: str) -> None:
    line = refused(*writers(run, tmp_path)[verb], tmp_path / "new", before=small_disk)
    assert "new" in line and ".tmp" not in line
    assert verb == "convert" or "ulimit -f" in line
    assert not [path for path in tmp_path.rglob("*.tmp")]


def test_a_full_disk_while_resuming(tmp_path: Path) -> None:
    relwalk(*TRAIN, tmp_path / "run")
    line = refused("resume", tmp_path / "run", "--epochs", 3, before=small_disk)
    assert str(tmp_path / "run") in line and "ulimit -f" in line


@pytest.mark.parametrize("verb", ("export", "predict"))
def test_a_device_is_written_to_and_never_replaced(run: Path, tmp_path: Path, verb: str) -> None:
    (tmp_path / "full.tsv").symlink_to("/dev/full")
    line = refused(*writers(run, tmp_path)[verb], tmp_path / "full.tsv", "--force")
    assert "full.tsv: no space is left on its disk. Make room there" in line
    assert (tmp_path / "full.tsv").is_char_device()


def few_files() -> None:
    os.dup2(0, 40)  # what is open stays open
    resource.setrlimit(resource.RLIMIT_NOFILE, (41, 41))
    for _ in range(41):
        try:
            os.dup(0)
        except OSError:
            return


def test_too_many_open_files(run: Path) -> None:
    assert "too many files are open. Raise the limit (ulimit -n)" in refused("evaluate", run, before=few_files)


def full_output() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def full_notes() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


@pytest.mark.parametrize("verb", ["evaluate", "classify", "walk", "train", "info", "datasets", "--help"])
def test_results_that_cannot_be_printed(run: Path, tmp_path: Path, verb: str) -> None:
    rest = {"train": (*TRAIN[1:], tmp_path / "run"), "info": ("world",), "datasets": (), "--help": ()}
    line = refused(verb, *rest.get(verb, (run,)), before=full_output)
    assert "standard output: no space is left" in line


def test_a_log_on_a_full_disk_does_not_end_a_training(tmp_path: Path) -> None:
    assert "saved" in relwalk(*TRAIN, tmp_path / "run", before=full_notes).stdout
    assert relwalk("info", tmp_path / "nowhere", status=1, before=full_notes).stderr == ""


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = command.replace("relwalk", f"{sys.executable} -m relwalk")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams(tmp_path: Path, closed: str) -> None:
    """And no file of ours may take the place of a closed stream: what a library says there would end up in it."""
    (tmp_path / "g.tsv").write_text("".join(f"e{i % 5}\tr\te{(i + 1) % 5}\n" for i in range(5)))
    done = shell(f"relwalk convert {tmp_path / 'g.tsv'} {tmp_path / 'out'} {closed}")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (tmp_path / "out" / "train.txt").read_text().startswith("e")


def test_an_error_with_nowhere_to_go(tmp_path: Path) -> None:
    assert shell(f"relwalk info {tmp_path / 'nowhere'} >&- 2>&-").returncode == 1


def test_a_reader_that_leaves_is_no_error() -> None:
    done = shell("relwalk info world | head -c 1")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "w")


def nobody_reads() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    os.dup2(theirs, 1)


def nobody_listens() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    os.dup2(theirs, 2)


@pytest.mark.parametrize("words", [["--help"], ["info", "world", "--json"], ["evaluate", "RUN"], ["walk", "RUN"]])
def test_a_reader_that_has_left_is_no_error(run: Path, words: list[str]) -> None:
    assert relwalk(*[run if word == "RUN" else word for word in words], before=nobody_reads).stderr == ""
    relwalk(*[run if word == "RUN" else word for word in words], before=nobody_listens)


PRINTING = [
    ("evaluate", "RUN", "--by-relation"),
    ("classify", "RUN"),
    ("predict", "RUN", "--head", "São Paulo", "--relation", "near"),
    ("analyse", "RUN", "--directions", "10", "--part", "theorem", "--part", "similarity"),
    ("walk", "RUN"),
    ("info", "world"),
    ("datasets",),
]


@pytest.mark.parametrize("words", PRINTING, ids=lambda words: words[0])
def test_any_encoding_prints_everything(run: Path, words: tuple[str, ...]) -> None:
    found = relwalk(*[str(run) if word == "RUN" else word for word in words], encoding="latin-1").stdout
    wide = relwalk(*[str(run) if word == "RUN" else word for word in words]).stdout
    assert found == "".join(c if ord(c) < 256 else f"\\u{ord(c):04x}" for c in wide)
    assert words[0] != "analyse" or "\\u" in found  # it has signs that Latin-1 has not


def test_json_is_the_same_in_any_encoding(tmp_path: Path) -> None:
    names = ["Zürich", "東京", "😀", "ᵀ"]
    (tmp_path / "g.tsv").write_text("".join(f"{a}\t\N{RIGHTWARDS ARROW}\t{b}\n" for a in names for b in names), "utf-8")
    relwalk("train", tmp_path / "g.tsv", *FAST, "--out", tmp_path / "run")
    words = ("predict", tmp_path / "run", "--head", "東京", "--relation", "→", "--json")
    found = [json.loads(relwalk(*words, encoding=code).stdout) for code in ("utf-8", "latin-1", "utf-16")]
    assert found[0] == found[1] == found[2] and found[0]["head"] == "東京"


NAMES = ["\x1b[31mred", "bell\x07", "\x9b2Jcleared", "\u202edesrever", "back\x08space", "\x1b]0;title\x07"]


def test_a_name_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("".join(f"{n}\tr\t{m}\n" for n in NAMES for m in NAMES), "utf-8")
    relwalk("train", tmp_path / "g.tsv", *FAST, "--out", tmp_path / "run")
    ask = ["predict", "run", "--relation", "r", "--head"]
    for words, status in (
        ([*ask, "bell\x07"], 0),
        ([*ask, "bell\x07", "--json"], 0),
        ([*ask, "\x1b[31mrod"], 1),
        (["walk", "run"], 0),
        (["info", "\x1b[31mg.tsv"], 1),
    ):
        shown = on_a_terminal(words, tmp_path, status)
        assert not set(shown) & {"\x1b", "\x07", "\x08", "\x9b", "\u202e"}, (words, shown)
        assert "\\u001b" in shown or "\\x1b" in shown, (words, shown)


def on_a_terminal(words: list[str], cwd: Path, status: int) -> str:
    """What a command prints on a terminal, results and notes."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reading:
        shown = reading.submit(_read_terminal, ours)
        relwalk(*words, cwd=cwd, status=status, before=partial(_to_terminal, os.ttyname(theirs)))
        os.close(theirs)
    os.close(ours)
    return shown.result()


def _to_terminal(name: str) -> None:
    for number in (1, 2):
        os.dup2(os.open(name, os.O_WRONLY), number)


def _read_terminal(handle: int) -> str:
    shown = b""
    try:
        while part := os.read(handle, 1 << 16):
            shown += part
    except OSError:  # how Linux says that nobody writes there any more
        pass
    return shown.decode("utf-8")


def test_printable_keeps_text_and_escapes_control() -> None:
    assert printable("Zürich\t→ ‖R₁ᵀh‖²\n") == "Zürich\t→ ‖R₁ᵀh‖²\n"
    assert printable("a\x00\x1b\x7f\x85\u2028\u2066\r") == "a\\u0000\\u001b\\u007f\\u0085\\u2028\\u2066\\u000d"


def test_every_error_number_has_words() -> None:
    for number, (what, cure) in FAILURES.items():
        line = os_words(OSError(number, "x", "some/path"))
        assert line == f"some/path: {what}. {cure}" and cure.endswith(".")
    assert os_words(OSError(errno.EPROTO, "strange", "p")) == "p: strange. Check the path, and try again."
    assert os_words(OSError("only words")) == "only words. Check the path, and try again."


def test_a_lack_of_memory_is_told() -> None:
    torch_says = "[enforce fail at alloc_cpu.cpp:127] data. DefaultCPUAllocator: not enough memory: you tried to ..."
    assert memory_words(MemoryError()) == memory_words(RuntimeError(torch_says)) == MEMORY
    assert memory_words(RuntimeError("something else")) is None
    assert memory_words(ValueError("out of memory")) is None


def little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


def test_torch_out_of_memory_is_one_line(tmp_path: Path) -> None:
    words = ("train", "world", "--objective", "softmax", "--negatives", 10**6, "--dim", 8, "--out", tmp_path / "run")
    assert MEMORY in refused(*words, before=little_memory)


def test_a_failed_write_leaves_the_old_file_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    done = relwalk("export", tmp_path / "none", tmp_path / "kept", "--force", status=1)
    assert "is not a relwalk run" in done.stderr
    with pytest.raises(OSError) as told:
        write_atomically(tmp_path / "kept" / "sub", b"new")
    assert told.value.filename == str(tmp_path / "kept" / "sub")
    assert (tmp_path / "kept").read_bytes() == b"old"
