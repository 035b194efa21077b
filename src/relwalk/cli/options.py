"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

GraphSource = Annotated[str, typer.Argument(metavar="GRAPH", help="A named graph, a folder or a file.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the way.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...")]
DataDir = Annotated[
    Path | None, typer.Option(envvar="RELWALK_DATA", help="A folder that holds named graphs, one folder each.")
]
Format = Annotated[str | None, typer.Option("--format", help="The layout; detected when not given.")]
OnBadLine = Annotated[str, typer.Option(help="What to do with a line that cannot be read: error or skip.")]
ValidShare = Annotated[float, typer.Option(help="Share of a single file that becomes valid.")]
TestShare = Annotated[float, typer.Option(help="Share of a single file that becomes test.")]
Truth = Annotated[
    Path | None, typer.Option(help="The folder of `relwalk generate` that the run learned: close the loop on it.")
]
SplitSeed = Annotated[int, typer.Option(help="Seed of the split of a single file.")]
