"""The triples of an N-Triples or a Turtle file, by pyoxigraph.

Entities are IRIs and blank nodes. Literals are no entities: `rdfs:label` gives an entity its label, all others are
counted and left out. A blank node without a name, `[]` or `( ... )` of Turtle, is called `_:[n]` by its place in the
file: the parser draws a name at random, and the same file must be the same graph every time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote, unquote

import polars as pl
import pyoxigraph as ox

from relwalk.errors import BadLine
from relwalk.graph.formats.base import Journal, Options, shorten
from relwalk.graph.formats.folder import note_empty
from relwalk.graph.formats.limits import show_size
from relwalk.graph.formats.source import Source
from relwalk.graph.raw import COLUMNS, RawGraph

PREFIX = "urn:relwalk:"  # names that are no IRIs are written below it
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
CHUNK = 100_000
ERRORS_OF_A_LINE = 1000  # the parser goes on behind an error, byte by byte if need be: a long line can hold millions
ERRORS_OF_A_FILE = 100_000  # if they are more than its triples, it is something else
LONGEST_WORD = 4 << 20  # the parser reads an unfinished term again with every few kilobytes: 16 MB take it 15 s
LONGEST_GAP = 16 << 20  # bytes without a triple: the parser searches no more than that in a second
LONGEST_NAME = 34  # of a drawn blank node
WHITE = (b" ", b"\n", b"\t")
DRAWN = re.compile(r"[a-f][0-9a-f]{15,31}")  # what the parser names a blank node that has no name
WRITTEN = re.compile(rb"_:([a-f][0-9a-f]{15,31})")
SYNTAXES = {"nt": ox.RdfFormat.N_TRIPLES, "ttl": ox.RdfFormat.TURTLE}
EXPECTED = "subject, predicate, object and a full stop"

Names = tuple[str, str, str]


def to_iri(name: str) -> str:
    """The name itself where it is an IRI, else an IRI that `from_iri` turns back."""
    if not name.startswith(PREFIX):
        try:
            return ox.NamedNode(name).value
        except ValueError:
            pass
    return PREFIX + quote(name, safe="")


def from_iri(iri: str) -> str:
    if not iri.startswith(PREFIX):
        return iri
    try:
        return unquote(iri.removeprefix(PREFIX), errors="strict") or iri
    except UnicodeDecodeError:
        return iri


def read_rdf(path: Path, options: Options, kind: str) -> RawGraph:
    """The graph of a file in the syntax of that kind, "nt" or "ttl"."""
    return _Reading(Source(path, options.max_unpacked), Journal(options)).graph(kind, SYNTAXES[kind])


class _Text:
    """The bytes of a file for the parser; megabytes of one word, or without a triple, are an error of their line."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path, self.line, self.word = file, path, 1, 0
        self.gap = 0  # since the parser last found something, which is for its user to say
        self.end = b""  # of the part before: a name may begin there
        self.written: set[str] = set()  # names of blank nodes in the file that look as if the parser had drawn them

    def read(self, size: int = -1) -> bytes:
        part = self.file.read(size)
        self.line += part.count(b"\n")
        self.gap += len(part)
        if b"_:" in self.end + part[:1] or b"_:" in part:
            self.written.update(name.decode() for name in WRITTEN.findall(self.end + part))
        self.end = part[-LONGEST_NAME:]
        space = max(map(part.rfind, WHITE))
        self.word = self.word + len(part) if space < 0 else len(part) - space - 1
        if self.word > LONGEST_WORD:
            raise self.too_long()
        if self.gap > LONGEST_GAP:
            found = f"{show_size(LONGEST_GAP)} without a triple"
            raise BadLine(self.path, self.line, found=found, expected=EXPECTED, cure="Say what it is with --format.")
        return part

    def too_long(self) -> BadLine:
        found = f"a term of more than {show_size(LONGEST_WORD)}"
        return BadLine(self.path, self.line, found=found, expected="shorter names and texts", cure="Shorten it.")


@dataclass
class _Reading:
    """One file on its way to a graph."""

    source: Source
    journal: Journal
    literals: int = 0
    labels: dict[str, tuple[bool, str]] = field(default_factory=dict)  # name: (is English, label)
    unnamed: dict[str, str] = field(default_factory=dict)  # name that the parser drew: name by place

    def graph(self, kind: str, syntax: ox.RdfFormat) -> RawGraph:
        self.journal.note(f"read as {kind}: {self.source.name}")
        with self.source.open() as file:
            text = _Text(file, self.source.path)
            try:
                frame = _frame(self._triples(ox.parse(cast(IO[bytes], text), format=syntax), text))
            except MemoryError:  # the parser's own limit: 16 MB for a term
                raise text.too_long() from None
        if self.literals:
            self.journal.note(f"left out {self.literals:,} triples whose object is no entity but a literal")
        if frame.is_empty():
            note_empty(self.source.path, "train", self.journal)
        labels = {name: label for name, (_, label) in self.labels.items()}
        relations = set(frame["relation"].unique().to_list())
        return RawGraph(
            self.source.stem,
            {"train": frame},
            entity_labels=labels,
            relation_labels={name: label for name, label in labels.items() if name in relations},
            whole=True,
            notes=self.journal.summary(),
        )

    def _triples(self, parser: ox.QuadParser, text: _Text) -> Iterator[Names]:
        for quad in self._good(parser):
            text.gap = 0
            head, tail = self._name(quad.subject, text), self._name(quad.object, text)
            if head is not None and tail is not None:
                yield head, from_iri(quad.predicate.value), tail
            elif head is not None and quad.predicate.value == RDFS_LABEL and isinstance(quad.object, ox.Literal):
                self._label(head, quad.object)
            else:
                self.literals += 1

    def _good(self, parser: ox.QuadParser) -> Iterator[ox.Quad]:
        """The parser goes on after an error, and may meet several on one line; beyond all measure it is given up."""
        last = on_this_line = errors = triples = 0
        while True:
            try:
                quad = next(parser)
            except StopIteration:
                return
            except SyntaxError as error:
                line, errors = error.lineno or 1, errors + 1
                on_this_line = on_this_line + 1 if line == last else 1
                if on_this_line > ERRORS_OF_A_LINE:
                    raise self._bad_line(error, f"more than {ERRORS_OF_A_LINE:,} errors", "Remove that line.") from None
                if errors > max(ERRORS_OF_A_FILE, triples):
                    found = f"{errors:,} errors and {triples:,} triples up to here"
                    raise self._bad_line(error, found, "Say what it is with --format.") from None
                if line != last:
                    cure = "Mend it, or read on behind such errors with on_bad_line='skip'."
                    self.journal.bad(self._bad_line(error, shorten(error.msg, 200), cure))
                last = line
            else:
                triples += 1
                yield quad

    def _bad_line(self, error: SyntaxError, found: str, cure: str) -> BadLine:
        return BadLine(self.source.path, error.lineno or 1, found=found, expected=EXPECTED, cure=cure)

    def _name(self, term: object, text: _Text) -> str | None:
        """What an entity is called; None for a literal."""
        if isinstance(term, ox.NamedNode):
            return from_iri(term.value)
        if not isinstance(term, ox.BlankNode):
            return None
        if DRAWN.fullmatch(term.value) and term.value not in text.written:
            return self.unnamed.setdefault(term.value, f"_:[{len(self.unnamed) + 1}]")
        return f"_:{term.value}"

    def _label(self, name: str, literal: ox.Literal) -> None:
        """The first label counts, but an English one, or one without a language, comes before others."""
        english = (literal.language or "en").split("-")[0] == "en"
        if literal.value and (name not in self.labels or (english and not self.labels[name][0])):
            self.labels[name] = (english, literal.value)


def _frame(triples: Iterator[Names]) -> pl.DataFrame:
    schema = dict.fromkeys(COLUMNS, pl.String)
    parts = [pl.DataFrame(schema=schema)]
    while chunk := list(islice(triples, CHUNK)):
        parts.append(pl.DataFrame(chunk, schema=schema, orient="row"))
    return pl.concat(parts)
