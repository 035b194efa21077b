"""Which columns are head, relation and tail: by headings that are known, by words within headings, or as asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relwalk.errors import GraphError
from relwalk.graph.formats.base import shorten
from relwalk.graph.raw import COLUMNS

Place = tuple[int, int, int]  # the positions of head, relation and tail

PAIRS = (  # what the two ends are called
    ("head", "tail"),
    ("subject", "object"),
    ("subj", "obj"),
    ("source", "target"),
    ("src", "dst"),
    ("src", "tgt"),
    ("from", "to"),
    ("start", "end"),
)
RELATIONS = ("relation", "predicate", "rel", "pred", "relationship", "property", "edge", "link", "label", "type")
LETTERS = (("s", "p", "o"), ("h", "r", "t"))
ENDS = {"node", "entity", "vertex", "concept", "term", "item", "arg", "argument"}  # node1, node2
KNOWN_HEADINGS = "head, relation, tail (or subject, predicate, object; source, edge, target; from, rel, to; h, r, t)"
IGNORED = "_"
COLUMNS_CURE = "--columns head,relation,tail,_ (columns='head,relation,tail,_'; _ leaves a column out)"


def triple_columns(headings: Sequence[str]) -> Place | None:
    """The positions of head, relation and tail among headings that are known."""
    folded = [heading.strip().casefold() for heading in headings]
    sets = [*((head, word, tail) for head, tail in PAIRS for word in RELATIONS), *LETTERS]
    for head, relation, tail in sets:
        if {head, relation, tail} <= set(folded):
            return folded.index(head), folded.index(relation), folded.index(tail)
    return None


def columns_by_words(headings: Sequence[str]) -> list[list[int]]:
    """The positions whose heading holds a word for head, for relation, for tail: `from_node`, `edgeType`, `node2`."""
    roles = [_role(heading) for heading in headings]
    return [[place for place, role in enumerate(roles) if role == name] for name in COLUMNS]


def _role(heading: str) -> str | None:
    """What a heading calls its column, when it says only one thing."""
    words = {word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", heading)}
    found = {
        "head": words & {head for head, _ in PAIRS} or (words & ENDS and "1" in words),
        "relation": words & set(RELATIONS),
        "tail": words & {tail for _, tail in PAIRS} or (words & ENDS and "2" in words),
    }
    if len(heading) > 40 or not (found["head"] or found["tail"] or found["relation"]):
        return None
    if found["head"] and found["tail"]:
        return None
    return "head" if found["head"] else "tail" if found["tail"] else "relation"


def parse_columns(columns: str | Sequence[str]) -> tuple[str, ...]:
    """ "subject,predicate,object,_" as (head, relation, tail, _): one word for each column of a file."""
    words = [word.strip() for word in (columns.split(",") if isinstance(columns, str) else columns)]
    parsed = tuple(_parse_column(word) for word in words)
    if any(parsed.count(name) != 1 for name in COLUMNS):
        raise GraphError(
            f"columns {shorten(','.join(words))}: expected head, relation and tail once each, and {IGNORED} for every "
            f"other column of the file, in its order, such as {COLUMNS_CURE}"
        )
    return parsed


def _parse_column(word: str) -> str:
    letters = {letter: name for letters in LETTERS for letter, name in zip(letters, COLUMNS, strict=True)}
    name = IGNORED if word == IGNORED else letters.get(word.casefold()) or _role(word)
    if name is None:
        raise GraphError(
            f"columns: found {shorten(word)}; expected {KNOWN_HEADINGS}, or {IGNORED} for a column to leave out"
        )
    return name


def place_of(columns: Sequence[str]) -> Place:
    """The positions of head, relation and tail among parsed columns."""
    head, relation, tail = (columns.index(name) for name in COLUMNS)
    return head, relation, tail
