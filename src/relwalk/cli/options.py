"""Arguments and options that several verbs share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

GraphSource = Annotated[str, typer.Argument(metavar="GRAPH", help="A named graph, a folder or a file.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the way.")]
Anyway = Annotated[bool, typer.Option("--anyway", help="Use a run that diverged: its last good checkpoint.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...")]
ON_DISK = "Keep the vectors of entities in files that are mapped into memory: for more of them than it holds."
DataDir = Annotated[
    Path | None,
    typer.Option(
        envvar="RELWALK_DATA", help="A folder that holds named graphs, one folder each.", rich_help_panel="Data"
    ),
]
ValidShare = Annotated[float, typer.Option(help="Share of the triples that becomes valid.")]
TestShare = Annotated[float, typer.Option(help="Share of the triples that becomes test.")]
Truth = Annotated[
    Path | None, typer.Option(help="The folder of `relwalk generate` that the run learned: close the loop on it.")
]


_data = partial(typer.Option, rich_help_panel="Data")


@dataclass(frozen=True)
class Reading:
    """How a verb reads its graph. A verb that takes it (`with_reading`) has all of these options."""

    data_dir: DataDir = None
    format: Annotated[str | None, _data("--format", help="The layout; detected when not given.")] = None
    columns: Annotated[
        str | None,
        _data(help="What each column of a table is: head,relation,tail,_ (subject, predicate, object; _: leave out)."),
    ] = None
    header: Annotated[
        bool | None,
        _data("--header/--no-header", help="The first line of a table is headings, or is not; else found out."),
    ] = None
    on_bad_line: Annotated[str, _data(help="What to do with a line that cannot be read: error or skip.")] = "error"
    max_unpacked: Annotated[
        str | None,
        _data(
            metavar="SIZE",
            help="Most that a packed file or a pipe may give, as 16GB; else 256 MiB or 100 times its size, 4 GiB.",
        ),
    ] = None
    valid: Annotated[float | None, _data(help="Share of a single file that becomes valid; else 0.1.")] = None
    test: Annotated[float | None, _data(help="Share of a single file that becomes test; else 0.1.")] = None
    split_seed: Annotated[int | None, _data(help="Seed of the split of a single file; else 0.")] = None
    judged: Annotated[
        Path | None,
        _data(metavar="FILE", help="Judgements as `relwalk serve` exports them: accepted links become facts of train."),
    ] = None


def with_reading(verb: Callable[..., None]) -> Callable[..., None]:
    """The options of `Reading` in place of a verb's parameter `reading`."""
    own = [p for p in inspect.signature(verb, eval_str=True).parameters.values() if p.name != "reading"]
    shared = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
        for field in fields(Reading)
    ]

    @wraps(verb)
    def command(**given: Any) -> None:
        reading = Reading(**{field.name: given.pop(field.name) for field in fields(Reading)})
        verb(**given, reading=reading)

    hints = get_type_hints(Reading, include_extras=True)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own),
            *(p.replace(annotation=hints[p.name]) for p in shared),
        ]
    )
    command.__annotations__ = {p.name: p.annotation for p in inspect.signature(command).parameters.values()}
    return command
