"""A knowledge graph as frozen integer arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from relwalk.errors import GraphError
from relwalk.graph.answers import SIDES, KnownAnswers, Side, arguments
from relwalk.graph.lists import Ints, Lists
from relwalk.graph.texts import Texts, joined
from relwalk.graph.vocabulary import Vocabulary

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, Split, Split] = ("train", "valid", "test")


def empty_triples() -> Ints:
    return np.zeros((0, 3), np.int32)


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Vocabularies, and the triples of each split as (n, 3) ids: head, relation, tail.

    `valid_negatives` and `test_negatives` are false triples that the data set itself ships (FB13, OpenKE).
    `type_lists` are the argument lists it ships (OpenKE's type_constrain.txt): the entities that may stand as
    head and as tail of each relation.
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: Ints
    valid: Ints = field(default_factory=empty_triples)
    test: Ints = field(default_factory=empty_triples)
    valid_negatives: Ints | None = None
    test_negatives: Ints | None = None
    type_lists: Mapping[Side, Lists] | None = None
    notes: tuple[str, ...] = ()  # what the reader detected, skipped or made up, for a person to read

    def __post_init__(self) -> None:
        if len(self.train) == 0:
            raise GraphError(f"graph {self.name!r} has no training triples. Give it at least one.")
        for part, triples in self.parts().items():
            self._check(part, triples)
            triples.setflags(write=False)

    def _check(self, part: str, triples: Ints) -> None:
        if triples.ndim != 2 or triples.shape[1] != 3 or triples.dtype != np.int32:
            raise GraphError(f"{part} of graph {self.name!r} is {triples.dtype} {triples.shape}; expected int32 (n, 3)")
        for column, size in ((0, len(self.entities)), (1, len(self.relations)), (2, len(self.entities))):
            ids = triples[:, column]
            if len(ids) and not (ids.min() >= 0 and ids.max() < size):
                raise GraphError(
                    f"{part} of graph {self.name!r}: ids {ids.min()} to {ids.max()} in column {column}; "
                    f"expected 0 to {size - 1}"
                )

    def parts(self) -> dict[str, Ints]:
        """Every array of triples the graph holds, by name."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        if self.valid_negatives is not None:
            parts["valid_negatives"] = self.valid_negatives
        if self.test_negatives is not None:
            parts["test_negatives"] = self.test_negatives
        return parts

    def split(self, name: Split) -> Ints:
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def negatives(self, name: Split) -> Ints | None:
        return {"train": None, "valid": self.valid_negatives, "test": self.test_negatives}[name]

    @cached_property
    def triples(self) -> Ints:
        """All positive triples: train, then valid, then test."""
        return np.concatenate([self.train, self.valid, self.test])

    @cached_property
    def known(self) -> Mapping[Side, KnownAnswers]:
        """The known answers of train, valid and test together: what filtered ranking leaves out."""
        return {side: KnownAnswers.from_triples(self.triples, side, len(self.relations)) for side in SIDES}

    @cached_property
    def known_in_train(self) -> Mapping[Side, KnownAnswers]:
        return {side: KnownAnswers.from_triples(self.train, side, len(self.relations)) for side in SIDES}

    @cached_property
    def argument_lists(self) -> Mapping[Side, Lists]:
        """The entities that fill each argument of each relation: shipped lists, else from all triples."""
        if self.type_lists is not None:
            return self.type_lists
        return {side: arguments(self.triples, side, len(self.relations)) for side in SIDES}

    @cached_property
    def argument_lists_of_train(self) -> Mapping[Side, Lists]:
        return {side: arguments(self.train, side, len(self.relations)) for side in SIDES}

    @cached_property
    def has_loops(self) -> NDArray[np.bool_]:
        """Of each relation, whether it links some entity to itself."""
        found = np.zeros(len(self.relations), np.bool_)
        found[self.triples[self.triples[:, 0] == self.triples[:, 2], 1]] = True
        return found

    @cached_property
    def unseen(self) -> Ints:
        """The entities that occur in no training triple."""
        seen = np.zeros(len(self.entities), bool)
        seen[self.train[:, 0]] = seen[self.train[:, 2]] = True
        return np.flatnonzero(~seen).astype(np.int32)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all names and triples: two graphs with the same one are the same graph."""
        digest = hashlib.blake2b(digest_size=16)
        for vocabulary in (self.entities, self.relations):
            names = vocabulary.names
            digest.update(names.data if isinstance(names, Texts) else joined(names))
            digest.update(b"\1")
        for part, triples in self.parts().items():
            digest.update(part.encode())
            digest.update(np.ascontiguousarray(triples).reshape(-1).data)
        return digest.hexdigest()

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.entities):,} entities, {len(self.relations):,} relations, "
            f"{len(self.train):,} train / {len(self.valid):,} valid / {len(self.test):,} test triples"
        )

    def __repr__(self) -> str:
        return f"<Graph {self}>"

    def _repr_html_(self) -> str:
        """A table for notebooks: sizes, and what the reader noticed."""
        counts = {
            "entities": len(self.entities),
            "relations": len(self.relations),
            **{part: len(triples) for part, triples in self.parts().items()},
        }
        heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in counts)
        cells = "".join(f"<td>{count:,}</td>" for count in counts.values())
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        table = f"<table><caption>{escape(self.name)}</caption><tr>{heads}</tr><tr>{cells}</tr></table>"
        return table + (f"<ul>{notes}</ul>" if notes else "")
