"""From a data set's name, a path or data in memory to a Graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from relwalk.checks import check_seed
from relwalk.errors import GraphError, choose
from relwalk.graph.datasets import DATASETS, locate
from relwalk.graph.download import OnDownload
from relwalk.graph.formats import FORMATS, OnBadLine, Options, detect, read_memory
from relwalk.graph.formats.headings import parse_columns
from relwalk.graph.formats.limits import parse_size
from relwalk.graph.formats.source import translated
from relwalk.graph.graph import Graph
from relwalk.graph.raw import RawGraph, index
from relwalk.graph.split import check_shares
from relwalk.graph.whole import split_graph

ON_BAD_LINE: dict[str, OnBadLine] = {"error": "error", "skip": "skip"}
SHARE = 0.1  # of a graph in one piece that becomes valid, and that becomes test


def read_graph(
    source: object,
    *,
    format: str | None = None,
    columns: str | Sequence[str] | None = None,
    header: bool | None = None,
    on_bad_line: OnBadLine = "error",
    valid: float | None = None,
    test: float | None = None,
    seed: int | None = None,
    max_unpacked: int | str | None = None,
    data_dir: Path | None = None,
    name: str | None = None,
    progress: OnDownload | None = None,
) -> Graph:
    """Read a graph from a named data set ("wn18rr"), a path, or data in memory.

    A string that names a known data set means the data set: write "./wn18rr" for a folder of that name. The format
    is detected unless `format` names one of FORMATS. `columns` says what each column of a table is, in its order:
    "head,relation,tail,_" (or subject, predicate, object; _ is left out), and `header` whether its first line is
    headings; both are found out when not given.

    A graph in one piece is freed of duplicates and split by `valid`, `test` (shares, 0.1 each when not given) and
    `seed` (0); a graph with a split of its own takes none of these. `max_unpacked` (bytes, or "16GB") is the most that
    a packed file or a pipe may give; when not given, 256 MiB or 100 times a file's own size, and 4 GiB of a pipe.

    What was detected, skipped and made up stands in `Graph.notes`.
    """
    options = Options(
        on_bad_line=choose("on_bad_line", on_bad_line, ON_BAD_LINE),
        columns=None if columns is None else parse_columns(columns),
        header=header,
        max_unpacked=None if max_unpacked is None else parse_size(max_unpacked),
    )
    split = {"valid": valid, "test": test, "seed": seed}
    check_shares(SHARE if valid is None else valid, SHARE if test is None else test)
    check_seed(0 if seed is None else seed, "--split-seed (seed)")
    if isinstance(source, str | Path):
        raw = _read_named(source, format, options, data_dir, progress)
    else:
        _check_taken(options, ("columns",), "data in memory")
        raw = read_memory(source, options)
    graph = index(replace(raw, name=raw.name if name is None else name))
    if not raw.whole:
        _refuse_split(graph, [name for name, value in split.items() if value is not None])
        return graph
    shares = {part: SHARE if share is None else share for part, share in (("valid", valid), ("test", test))}
    return split_graph(graph, **shares, seed=0 if seed is None else seed)


def _read_named(
    source: str | Path, format: str | None, options: Options, data_dir: Path | None, progress: OnDownload | None
) -> RawGraph:
    if isinstance(source, str) and source in DATASETS:
        folder = locate(source, data_dir=data_dir, progress=progress)
        return replace(_read_path(folder, format, options), name=source)
    return _read_path(Path(source), format, options)


def _read_path(path: Path, format: str | None, options: Options) -> RawGraph:
    with translated(path):
        chosen = choose("format", format, FORMATS) if format is not None else None
        if not path.exists():
            raise GraphError(_missing(path))
        path = path.resolve() if path.name in ("", "..") else path  # "." has no name of its own
        chosen = chosen or detect(path, options)
        _check_taken(options, chosen.takes, f"{path}, read as {chosen.name},")
        return chosen.read(path, options)


def _check_taken(options: Options, takes: Sequence[str], what: str) -> None:
    """Refuse an option that would do nothing."""
    for name in ("columns", "header"):
        if getattr(options, name) is not None and name not in takes:
            raise GraphError(f"{what} takes no {name}: leave out --{name} ({name}=...), or read it in another format.")


def _refuse_split(graph: Graph, given: list[str]) -> None:
    if given:
        options = " and ".join("--split-seed" if name == "seed" else f"--{name}" for name in given)
        raise GraphError(
            f"graph {graph.name!r} comes with a split of its own: {options} would do nothing. Leave them out, "
            "or point to one file to have it split."
        )


def _missing(path: Path) -> str:
    nearest = get_close_matches(path.name, DATASETS, n=1, cutoff=0.5)
    offer = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return (
        f"{path} does not exist and is no named data set.{offer} "
        f"Give the path of a file or folder, or one of the data sets {', '.join(DATASETS)}."
    )
