"""`relwalk predict --queries`: a file of questions in, a table or JSON Lines of answers out."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from relwalk.answers import Answers
from relwalk.cli import runs
from relwalk.errors import BadLine, GraphError, RefusedOverwrite, RelWalkError, UnknownChoice, UnknownName
from relwalk.files import atomic_file
from relwalk.graph.formats.base import shorten
from relwalk.graph.formats.source import BOM, open_bytes, translated, uncompressed
from relwalk.graph.graph import Graph
from relwalk.launch import is_first
from relwalk.prediction import Query, predict_many
from relwalk.runs.folder import writing_into
from relwalk.runs.run import Run

if TYPE_CHECKING:
    from relwalk.sharded.processes import Ranks

ASKED = ("?", "")
COLUMNS = (
    *("query", "head", "relation", "tail", "rank", "answer", "label"),
    *("score", "share", "confidence", "probability", "known"),
)
SHAPE = "head, relation and tail, one of them ?"

Numbered = Iterable[tuple[int, Query, Answers]]


def predict_file(
    loaded: Run,
    queries: str,
    out: Path | None,
    *,
    how: Mapping[str, Any],
    force: bool,
    as_json: bool,
    among: Ranks | None = None,
) -> None:
    """Answer every question of a file. All of them are read and understood before the first is answered.

    `how` are the keywords of `predict_many`. Of several processes, the first one writes the answers of all.
    """
    if among is not None and queries == "-":
        raise RelWalkError("several processes cannot read one standard input: write the questions to a file.")
    if out is not None:
        if out.suffix.lower() not in WRITERS:
            raise UnknownChoice("ending of --out", out.suffix, WRITERS)
        if out.exists() and not force:
            raise RefusedOverwrite(out)
    questions = read_queries(queries, loaded.graph)
    if among is not None:
        among.check_run(loaded.record, questions=hashlib.sha256(repr(questions).encode()).hexdigest())
    found = predict_many(loaded, questions, **how, asker=among.asker(loaded) if among else None)
    answered = ((n, q, a) for n, (q, a) in enumerate(zip(questions, found, strict=True), start=1))
    if not is_first():
        deque(answered, maxlen=0)
        return None
    if out is None:
        return _print_json(loaded, answered) if as_json else _print(answered)
    _write(out, answered)
    typer.echo(
        json.dumps({**runs.state_of(loaded), "out": str(out), "queries": len(questions)}) if as_json else str(out)
    )


def read_queries(source: str, graph: Graph) -> list[Query]:
    """The questions of a TSV or CSV file, or of standard input, every name looked up. # begins a remark."""
    path = Path("standard input" if source == "-" else source)
    by_commas = uncompressed(path).suffix.lower() == ".csv"
    with translated(path), nullcontext(sys.stdin.buffer) if source == "-" else open_bytes(path) as file:
        found = [_query(path, number, _fields(path, number, line, by_commas), graph) for number, line in _lines(file)]
    if not found:
        raise GraphError(f"{path}: found no questions; expected {SHAPE}, in each line. Write at least one.")
    return found


def read_triples(source: str, graph: Graph) -> list[tuple[str, str, str]]:
    """The triples of a TSV or CSV file, or of standard input, every name looked up. # begins a remark."""
    path = Path("standard input" if source == "-" else source)
    by_commas = uncompressed(path).suffix.lower() == ".csv"
    found = []
    with translated(path), nullcontext(sys.stdin.buffer) if source == "-" else open_bytes(path) as file:
        for number, line in _lines(file):
            head, relation, tail = _fields(path, number, line, by_commas)
            _look_up(path, number, (head, relation, tail), graph)
            found.append((head, relation, tail))
    if not found:
        raise GraphError(
            f"{path}: found no triples; expected head, relation and tail in each line. Write at least one."
        )
    return found


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=1):
        line = (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")
        if line.strip() and not line.startswith(b"#"):
            yield number, line


def _fields(path: Path, number: int, line: bytes, by_commas: bool) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        found = f"bytes that are not UTF-8: {shorten(line.decode(errors='backslashreplace'))}"
        raise BadLine(path, number, found=found, expected="UTF-8 text", cure="Save the file as UTF-8.") from error
    try:
        fields = next(csv.reader([text], strict=True)) if by_commas else text.split("\t")
    except csv.Error as error:
        cure = "Close the quotes; double those that belong to a name."
        raise BadLine(path, number, found=f"{error}: {shorten(text)}", expected=SHAPE, cure=cure) from error
    if len(fields) != 3:
        count = f"{len(fields)} column{'s' * (len(fields) != 1)}"
        separator = "commas" if by_commas else "tabs (commas in a file called .csv)"
        cure = f"Separate the three by {separator}."
        raise BadLine(path, number, found=f"{count}: {shorten(text)}", expected=SHAPE, cure=cure)
    return fields


def _query(path: Path, number: int, fields: list[str], graph: Graph) -> Query:
    head, relation, tail = (None if field.strip() in ASKED else field for field in fields)
    asked = (head, relation, tail).count(None)
    if asked != 1:
        found = f"{asked or 'nothing'} asked: {shorten(' '.join(fields))}"
        cure = "Write ? for what is asked, and only there; # in front makes a line a remark."
        raise BadLine(path, number, found=found, expected=SHAPE, cure=cure)
    _look_up(path, number, (head, relation, tail), graph)
    return head, relation, tail


def _look_up(path: Path, number: int, given: Query, graph: Graph) -> None:
    """Each name that is given must be one of the graph."""
    head, relation, tail = given
    for vocabulary, name in ((graph.entities, head), (graph.relations, relation), (graph.entities, tail)):
        try:
            if name is not None:
                vocabulary.id(name)
        except UnknownName as error:
            names = " or ".join(map(repr, error.nearest))
            cure = f"Did you mean {names}?" if names else "The run's entities.tsv and relations.tsv list all names."
            found, expected = f"the {error.kind} {error.name!r}", f"the name of one {error.kind} of {graph.name!r}"
            raise BadLine(path, number, found=found, expected=expected, cure=cure) from error


def _print(answered: Numbered) -> None:
    """One after the other, and once at the end what the numbers are."""
    notes: dict[str, None] = {}
    for _, _, answers in answered:
        typer.echo(answers.table())
        notes[answers.note] = None
    for note in filter(None, notes):
        typer.echo(note)


def _print_json(run: Run, answered: Numbered) -> None:
    """One object, printed as it is made: there may be more answers than memory holds."""
    before = json.dumps({"run": str(run.path), **runs.state_of(run)}, ensure_ascii=False)[:-1] + ', "answers": ['
    for number, _, answers in answered:
        typer.echo(before + _json(number, answers), nl=False)
        before = ", "
    typer.echo("]}")


def _write(out: Path, answered: Numbered) -> None:
    """Line by line, under another name until it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with writing_into(out.parent), atomic_file(out) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        WRITERS[out.suffix.lower()](text, answered)
        text.detach()  # flushed, and not closed: that is for the file to do


def _table(delimiter: str) -> Callable[[IO[str], Numbered], None]:
    def write(file: IO[str], answered: Numbered) -> None:
        rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        rows.writerow(COLUMNS)
        for number, query, answers in answered:
            question = [name if name is not None else "?" for name in query]
            for place, a in enumerate(answers, start=1):
                known = "known" if a.known else "new"
                rows.writerow(
                    [number, *question, place, a.name, a.label, a.score, a.share, a.confidence, a.probability, known]
                )

    return write


def _json_lines(file: IO[str], answered: Numbered) -> None:
    for number, _, answers in answered:
        file.write(_json(number, answers) + "\n")


def _json(number: int, answers: Answers) -> str:
    return json.dumps({"query": number, **answers.as_dict()}, ensure_ascii=False)


WRITERS: dict[str, Callable[[IO[str], Numbered], None]] = {
    ".tsv": _table("\t"),
    ".csv": _table(","),
    ".jsonl": _json_lines,
}
