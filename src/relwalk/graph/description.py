"""What `describe` found, as frozen values that print themselves."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from relwalk.graph.cardinality import Cardinality
from relwalk.graph.graph import SPLITS, Split
from relwalk.graph.overlap import CROWD, OVERLAP

ROWS = 25  # relations, and relation pairs, that the printed report shows
WIDTH = 100


@dataclass(frozen=True)
class RelationDescription:
    """One relation. Averages, heads and tails are of train, or of all triples if train lacks the relation."""

    name: str
    train: int
    valid: int
    test: int
    cardinality: Cardinality
    tails_per_head: float
    heads_per_tail: float
    heads: int  # distinct
    tails: int  # distinct
    symmetric: float  # share of its distinct triples whose reversal is in the graph; a self-loop's is itself


@dataclass(frozen=True)
class RelationPair:
    """Two relations of train that link the same pairs of entities, or the same pairs reversed."""

    first: str
    second: str
    shared: int  # pairs that both link
    overlap: float  # shared / pairs of the larger relation: both shares are at least this


@dataclass(frozen=True)
class Leakage:
    """Test triples (h, r, t) that a look-up in train may answer. Nothing has to be learned for them."""

    symmetric: int  # (t, r, h) is in train
    inverse: int  # (t, r2, h) is in train for some r2 != r
    inverse_relation: int  # the same, with an r2 that is listed as an inverse relation of r
    other_relation: int  # (h, r2, t) is in train for some r2 != r


@dataclass(frozen=True)
class Unseen:
    """What valid or test use and train never shows."""

    entities: int
    relations: tuple[str, ...]
    with_entity: Mapping[Split, int]  # triples that hold such an entity
    with_relation: Mapping[Split, int]


@dataclass(frozen=True)
class Degree:
    """In how many triples (of all splits) the entities of the vocabulary stand; a self-loop counts twice."""

    mean: float
    median: float
    max: int
    most_connected: tuple[tuple[str, int], ...]  # label and degree, the highest first


@dataclass(frozen=True)
class GraphDescription:
    """Everything that `relwalk info` tells. Counts by split have the keys train, valid and test.

    Isolated entities and relations are in the vocabulary but in no positive triple. `crowded_pairs` of
    entities were left out of the search for relation pairs (see `relation_pairs`).
    """

    name: str
    entities: int
    relations: int
    triples: Mapping[Split, int]
    negatives: Mapping[Split, int]
    duplicates: Mapping[Split, int]
    self_loops: Mapping[Split, int]
    overlap: Mapping[str, int]  # distinct triples in both of "train and valid", ...
    unseen: Unseen
    isolated_entities: int
    isolated_relations: int
    classes: Mapping[Cardinality, int]  # relations of each cardinality
    leakage: Leakage  # test triples
    leakage_shares: Mapping[str, float]  # the same counts as shares of test, 0 without a test split
    inverse_relations: tuple[RelationPair, ...]
    duplicate_relations: tuple[RelationPair, ...]
    crowded_pairs: int
    degree: Degree
    relation_reports: tuple[RelationDescription, ...]  # in the order of the vocabulary
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers, ready for JSON."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def __str__(self) -> str:
        parts = (
            [f"{self.name}: {_size(self.entities, self.relations)}"],
            _split_lines(self),
            _vocabulary_lines(self),
            _leakage_lines(self),
            _pair_lines("Inverse relations", self.inverse_relations),
            _pair_lines("Near-duplicate relations", self.duplicate_relations),
            _degree_lines(self.degree),
            _relation_lines(self),
            _note_lines(self),
        )
        return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# The printed page


def _split_lines(report: GraphDescription) -> list[str]:
    rows = (
        ("triples", report.triples),
        ("false triples shipped", report.negatives),
        ("duplicates", report.duplicates),
        ("self-loops", report.self_loops),
        ("with an entity unseen in train", report.unseen.with_entity),
        ("with a relation unseen in train", report.unseen.with_relation),
    )
    cells = [(name, *(f"{counts[split]:,}" for split in SPLITS)) for name, counts in rows]
    shared = ", ".join(f"{couple} {count:,}" for couple, count in report.overlap.items())
    return [*_table(("", *SPLITS), cells), f"  triples in both: {shared}"]


def _vocabulary_lines(report: GraphDescription) -> list[str]:
    lines = [
        "Vocabulary",
        f"  in valid or test, never in train: {_size(report.unseen.entities, len(report.unseen.relations))}",
        f"  in no triple at all: {_size(report.isolated_entities, report.isolated_relations)}",
    ]
    if report.unseen.relations:
        lines += _wrap(f"unseen relations: {_list(report.unseen.relations)}")
    return lines


def _leakage_lines(report: GraphDescription) -> list[str]:
    total = report.triples["test"]
    if total == 0:
        return ["Leakage into test", "  there is no test split"]
    meanings = {
        "symmetric": "train has (t, r, h)",
        "inverse": "train has (t, r2, h) under another relation",
        "inverse_relation": "train has (t, r2, h) under an inverse relation",
        "other_relation": "train has (h, r2, t) under another relation",
    }
    counts = asdict(report.leakage)
    cells = [(text, f"{counts[kind]:,}", f"{report.leakage_shares[kind]:.1%}") for kind, text in meanings.items()]
    return [f"Leakage into test: of its {total:,} triples (h, r, t)", *_table(None, cells)]


def _pair_lines(title: str, pairs: Sequence[RelationPair]) -> list[str]:
    if not pairs:
        return [f"{title}: none share more than {OVERLAP:.0%} of their pairs in train"]
    room = (WIDTH - 26) // 2
    cells = [(_clip(p.first, room), _clip(p.second, room), f"{p.shared:,}", f"{p.overlap:.1%}") for p in pairs[:ROWS]]
    header = ("first", "second", "shared", "overlap")
    lines = [f"{title}: {len(pairs):,}", *_table(header, cells, left=2)]
    return lines + _more(len(pairs) - ROWS)


def _degree_lines(degree: Degree) -> list[str]:
    top = ", ".join(f"{_clip(label, 40)} ({count:,})" for label, count in degree.most_connected)
    return [
        f"Degree: mean {degree.mean:,.1f}, median {degree.median:,.1f}, max {degree.max:,}",
        *_wrap(f"most connected: {top}"),
    ]


def _relation_lines(report: GraphDescription) -> list[str]:
    rows = sorted(report.relation_reports, key=lambda row: -(row.train + row.valid + row.test))
    classes = ", ".join(f"{count:,} {name}" for name, count in report.classes.items())
    header = ("relation", *SPLITS, "class", "t/h", "h/t", "heads", "tails", "symm.")
    cells = [_relation_cells(row) for row in rows[:ROWS]]
    numbers = sum(max(map(len, column)) + 2 for column in list(zip(header, *cells, strict=True))[1:])
    room = max(WIDTH - 2 - numbers, 12)
    clipped = [(_clip(name, room), *others) for name, *others in cells]
    return [
        f"Relations: {classes} (t/h: tails per head, h/t: heads per tail)",
        *_table(header, clipped),
        *_more(len(rows) - ROWS),
    ]


def _relation_cells(row: RelationDescription) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.train, row.valid, row.test))
    averages = (f"{mean:.2f}" if mean < 100 else f"{mean:,.0f}" for mean in (row.tails_per_head, row.heads_per_tail))
    arguments = f"{row.heads:,}", f"{row.tails:,}"
    return (row.name, *counts, row.cardinality, *averages, *arguments, f"{row.symmetric:.0%}")


def _note_lines(report: GraphDescription) -> list[str]:
    notes = list(report.notes)
    if report.crowded_pairs:
        crowded = _count(report.crowded_pairs, "pair")
        notes.append(f"{crowded} of entities with more than {CROWD} links left out of the relation pair search")
    return ["Notes", *(line for note in notes for line in _wrap(note))] if notes else []


def _table(header: Sequence[str] | None, rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Columns as wide as their widest cell; the first `left` ones flush left, the others flush right."""
    lines = [*([header] if header else []), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  " + "  ".join(_cells(line, widths, left)).rstrip() for line in lines]


def _cells(line: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    sized = enumerate(zip(line, widths, strict=True))
    return [cell.ljust(width) if column < left else cell.rjust(width) for column, (cell, width) in sized]


def _clip(name: str, room: int) -> str:
    """The end of a long name: paths such as /film/film/genre differ there."""
    return name if len(name) <= room else "…" + name[1 - room :]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:ROWS])
    return f"{shown} and {len(names) - ROWS:,} more" if len(names) > ROWS else shown


def _more(count: int) -> list[str]:
    return [f"  … and {count:,} more"] if count > 0 else []


def _size(entities: int, relations: int) -> str:
    return f"{_count(entities, 'entity', 'entities')}, {_count(relations, 'relation')}"


def _count(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
