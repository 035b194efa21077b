"""Damaged Parquet: one clear error, whatever polars does about it."""

from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from relwalk.errors import GraphError
from relwalk.graph.read import read_graph
from tests.entry import relwalk

FRAME = pl.DataFrame(
    {"head": [f"a{n}" for n in range(50)], "relation": ["r"] * 50, "tail": [f"b{n % 7}" for n in range(50)]}
)


def whole() -> bytes:
    file = BytesIO()
    FRAME.write_parquet(file, compression="uncompressed", statistics=False)
    return file.getvalue()


def damaged(seed: int) -> bytes:
    draw, data = random.Random(seed), bytearray(whole())
    data[draw.randrange(4, len(data) - 4)] = draw.randrange(256)
    return bytes(data)


# With polars 1.4x the first abort the process and the next panic; the others raise, or are read.
SEEDS = [1253, 10, 97, 213, 303, *range(5)]


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_is_one_error_and_prints_nothing(seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.parquet"
    path.write_bytes(damaged(seed))
    try:
        assert len(read_graph(path).triples) <= 50
    except GraphError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("end", ["os.abort()", "sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_file_that_ends_the_process_that_reads_it_is_named(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """train is read to its end; the process dies of valid."""
    child = tmp_path / "child.py"
    child.write_text(f"import os, sys\nprint('{{\"rows\": 50}}', flush=True)\n{end}\n")
    monkeypatch.setattr("relwalk.graph.formats.trial.CHILD", child)
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.parquet").write_bytes(whole())
    with pytest.raises(GraphError, match=r"valid\.parquet cannot be read: its pages are damaged.*write it again"):
        read_graph(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"text", whole()[:-7], whole()[5:], whole() + b"\n"])
def test_what_is_no_parquet(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "g.parquet").write_bytes(data)
    done = relwalk("info", tmp_path / "g.parquet", status=1)
    assert len(done.stderr.splitlines()) == 1 and "g.parquet cannot be read" in done.stderr
