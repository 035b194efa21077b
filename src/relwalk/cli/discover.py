"""`relwalk discover`: links that a graph lacks, entities that are one, triples that look wrong."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relwalk.cli import options, runs
from relwalk.errors import RefusedOverwrite, RelWalkError
from relwalk.launch import is_first

if TYPE_CHECKING:
    from relwalk.discovery.table import Tabular
    from relwalk.runs.run import Run


def discover(
    run: options.RunFolder,
    k: Annotated[int, typer.Option("-k", "--top", min=1, help="How many.")] = 100,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only links of this relation; may be said several times.")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only links that are facts with at least this probability.")
    ] = None,
    missing: Annotated[
        int | None,
        typer.Option(min=1, help="How many facts the graph is thought to lack; else as many as valid holds."),
    ] = None,
    all_questions: Annotated[
        bool, typer.Option("--all-questions", help="Ask every relation of every entity, not only of those seen there.")
    ] = False,
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Instead: pairs of entities that are probably the same.")
    ] = False,
    doubtful: Annotated[
        bool, typer.Option("--doubtful", help="Instead: known triples that little speaks for beside themselves.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Where the whole list goes: .tsv, .csv, .jsonl or .parquet.")] = None,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """The most confident links that the graph lacks, over all its questions; or duplicates, or doubtful triples."""
    _refuse_together(
        duplicates=duplicates,
        doubtful=doubtful,
        relation=bool(relation),
        min_confidence=min_confidence is not None,
        missing=missing is not None,
        all_questions=all_questions,
    )
    _check_out(out, force)

    def find(loaded: Run) -> Tabular:
        import relwalk

        if among is not None and (duplicates or doubtful):
            raise RelWalkError("--duplicates and --doubtful are found by one process: call it without torchrun.")
        if duplicates:
            return relwalk.duplicates(loaded, k=k, progress=True)
        if doubtful:
            return relwalk.doubtful(loaded, k=k, relations=relation or None, progress=True)
        return relwalk.discover(
            loaded,
            k=k,
            relations=relation or None,
            min_confidence=min_confidence,
            missing=missing,
            all_questions=all_questions,
            progress=True,
            scores=among.scores(loaded.model) if among else None,
        )

    how = {"k": k, "relation": relation, "min_confidence": min_confidence, "missing": missing, "all": all_questions}
    loaded, among = runs.open_part(run, device=device, anyway=anyway, options=how)
    if not is_first():
        find(loaded)
        return
    if out is None:
        runs.say(loaded, find(loaded), as_json)
    else:
        _write(loaded, find, out, as_json)
    if not as_json:
        runs.say_next(*_commands(shlex.quote(str(run)), duplicates, doubtful, out))


def _refuse_together(**given: bool) -> None:
    """What is asked for in place of links has no use for options about links."""
    if given["duplicates"] and given["doubtful"]:
        raise RelWalkError("--duplicates and --doubtful are two lists. Ask for one at a time.")
    for kind, useless in (
        ("duplicates", ("relation", "min_confidence", "missing", "all_questions")),
        ("doubtful", ("min_confidence", "missing", "all_questions")),
    ):
        for name in useless:
            if given[kind] and given[name]:
                flag = f"--{name.replace('_', '-')}"
                raise RelWalkError(f"{flag} is about new links, and --{kind} asks for none. Leave one of them out.")


def _check_out(out: Path | None, force: bool) -> None:
    from relwalk.discovery.table import WRITERS
    from relwalk.errors import UnknownChoice

    if out is None:
        return
    if out.suffix.lower() not in WRITERS:
        raise UnknownChoice("ending of --out", out.suffix, WRITERS)
    if out.is_dir() or (out.exists() and not force):
        raise RefusedOverwrite(out)


def _write(run: Run, find: Callable[[Run], Tabular], out: Path, as_json: bool) -> None:
    """The file is opened first: what cannot be written is not worth looking for."""
    from relwalk.discovery.table import WRITERS
    from relwalk.files import atomic_file
    from relwalk.runs.folder import writing_into

    out.parent.mkdir(parents=True, exist_ok=True)
    with writing_into(out.parent), atomic_file(out) as file:
        found = find(run)
        WRITERS[out.suffix.lower()](found.frame(), file)
    if as_json:
        typer.echo(json.dumps({**runs.state_of(run), "out": str(out), "rows": found.frame().height}))
        return
    typer.echo("\n".join([f"{out}: {found.title()}", *found.remarks()]))


def _commands(run: str, duplicates: bool, doubtful: bool, out: Path | None) -> tuple[str, ...]:
    """What to do next."""
    this = " --duplicates" if duplicates else " --doubtful" if doubtful else ""
    keep = () if out is not None else (f"relwalk discover {run}{this} -k 1000 --out found.tsv",)
    other = f"relwalk discover {run}" + (" --doubtful" if not doubtful else " --duplicates")
    return (*keep, other, f"relwalk report {run}")
