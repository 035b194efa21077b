"""`relwalk compress`: a smaller run, and the curve of the paper's Figure 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relwalk.cli import console, options, runs
from relwalk.errors import RefusedOverwrite, RelWalkError

if TYPE_CHECKING:
    from relwalk.runs.run import Run


def compress(
    run: options.RunFolder,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the smaller run goes, else RUN-compressed; with --curve, a folder for data and plot."),
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Components K to keep of every R - I, from 1 to d.")] = None,
    method: Annotated[
        str | None,
        typer.Option(help="eig (the paper's; conjugate pairs stay together), svd, or lossless: half of orthogonal R."),
    ] = None,
    around: Annotated[
        str | None, typer.Option(help="What components are added to: identity (the paper's), or R's own signs.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="Of the components: float32, float16 or int8.")] = None,
    entities: Annotated[str | None, typer.Option(help="float16, bfloat16, int8, or pq: product quantisation.")] = None,
    code_bytes: Annotated[int | None, typer.Option(help="Bytes of an entity by pq; else half of d.")] = None,
    keep: Annotated[
        float | None, typer.Option(help="Search for the smallest that loses at most so much MRR on valid, say 0.005.")
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Accuracy over K on test instead: the paper's Figure 2.")
    ] = False,
    triples: Annotated[
        int | None, typer.Option(help="Of --curve: how many triples to rank, drawn at random; else all of test.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Make a smaller run of relations with fewer components and entities in fewer bytes, and say what that costs."""
    from relwalk.compression.compress import compress as make_smaller

    if curve:
        if any(value is not None for value in (rank, method, around, precision, entities, code_bytes, keep)):
            raise RelWalkError("--curve goes through all ranks and methods: leave out how to compress")
        _draw(runs.open_run(run), out, triples, force, as_json)
        return
    if triples is not None:
        raise RelWalkError("--triples are those of --curve: the others rank all of them. Leave it out.")
    found = make_smaller(
        runs.open_run(run),
        out=out if out is not None else run.parent / f"{run.name}-compressed",
        rank=rank,
        method=method,
        around=around,
        precision=precision,
        entities=entities,
        code_bytes=code_bytes,
        keep=keep,
        force=force,
        progress=True,
    )
    console.result(found, as_json)


def _draw(run: Run, out: Path | None, triples: int | None, force: bool, as_json: bool) -> None:
    from relwalk.compression.curve import curve as measure
    from relwalk.files import write_atomically
    from relwalk.report.components import curve_svg

    files = [out / name for name in ("curve.json", "curve.svg")] if out is not None else []
    for path in files:
        if path.exists() and not force:
            raise RefusedOverwrite(path)
    found = measure(run, triples=triples, progress=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        written = (json.dumps(found.as_dict(), indent=1) + "\n", curve_svg(found))
        for path, text in zip(files, written, strict=True):
            write_atomically(path, text.encode())
    console.result(found, as_json)
