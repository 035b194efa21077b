"""Entities by what one has typed of their names: from the start, from the start of a word, anywhere, or spelled alike.

All names and labels are one text with a line each, which is searched as it is; spelling is compared by three
letters at a time, in an index that is made when it is first needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, Literal
from unicodedata import combining, normalize

import numpy as np
from numpy.typing import NDArray

from relwalk.graph.lists import Longs
from relwalk.graph.vocabulary import Vocabulary

How = Literal["start", "word", "part", "spelling"]
LOOKED_AT = 5000  # places of the text looked at for each way of matching
COMPARED = 60  # names spelled alike that are compared letter by letter
ALIKE = 0.5  # how much of two names must be the same


@dataclass(frozen=True)
class Match:
    """An entity, and what of it is like what was typed."""

    entity: int
    how: How


class Spelling:
    """An index of the names and labels of entities; `weight` says which come first where several fit."""

    def __init__(self, entities: Vocabulary, weight: Longs) -> None:
        self.entities, self.weight = entities, weight
        labels = entities.labels or ()
        named = [(i, label) for i, label in enumerate(labels) if label is not None and label != entities.names[i]]
        lines = [*entities.names, *(label for _, label in named)]
        self.ids = np.concatenate([np.arange(len(entities)), np.array([i for i, _ in named], np.int64)])
        self.text = "\n" + "\n".join(_folded(line) for line in lines) + "\n"
        self.lines = np.array([found.start() for found in re.finditer("\n", self.text)], np.int64)  # before each line

    def search(self, typed: str, count: int) -> list[Match]:
        """At most `count` entities, the best first; of nothing typed, the best connected ones."""
        wanted = _folded(typed.strip())
        if not wanted:
            return [Match(i, "start") for i in self._heaviest(np.arange(len(self.entities)))[:count].tolist()]
        whole = self._places(f"\n{wanted}\n", True)
        found: dict[int, How] = {i: "start" for i in self._heaviest(whole).tolist()}
        found |= {i: "start" for i in self._heaviest(self._places(f"\n{wanted}", True)).tolist() if i not in found}
        if len(found) < count:
            words, parts = self._within(wanted)
            found |= {i: "word" for i in words.tolist() if i not in found}
            found |= {i: "part" for i in parts.tolist() if i not in found}
        if len(found) < count and len(wanted) > 2:
            found |= {i: "spelling" for i in self._alike(wanted) if i not in found}
        return [Match(entity, how) for entity, how in list(found.items())[:count]]

    def _find(self, letters: str) -> list[int]:
        """Where these letters stand in the text."""
        places: list[int] = []
        start = self.text.find(letters)
        while start >= 0 and len(places) < LOOKED_AT:
            places.append(start)
            start = self.text.find(letters, start + 1)
        return places

    def _places(self, letters: str, at_end_of_line: bool) -> Longs:
        return self._entities(np.array(self._find(letters), np.int64), at_end_of_line)

    def _within(self, wanted: str) -> tuple[Longs, Longs]:
        """The entities that have a word which begins so, and those that have it elsewhere."""
        places = self._find(wanted)
        begins = [not self.text[place - 1].isalnum() for place in places]
        words, parts = (np.array([p for p, b in zip(places, begins, strict=True) if b == w], np.int64) for w in (1, 0))
        return self._heaviest(self._entities(words, False)), self._heaviest(self._entities(parts, False))

    def _entities(self, places: Longs, at_end_of_line: bool) -> Longs:
        rows = np.searchsorted(self.lines, places, side="right" if at_end_of_line else "left") - 1
        return np.unique(self.ids[rows])

    def _heaviest(self, entities: Longs) -> Longs:
        return entities[np.lexsort((entities, -self.weight[entities]))]

    def _alike(self, wanted: str) -> list[int]:
        """By the letters that two names share, those that share most compared whole."""
        order, starts, rows, sizes = self._threes
        asked = np.unique(_threes_of(np.frombuffer(f"\n{wanted}\n".encode(), np.uint8))[0])
        place = np.searchsorted(starts, asked)
        there = place[(place < len(starts)) & (starts[np.minimum(place, len(starts) - 1)] == asked)]
        lists = [rows[order[i] : order[i + 1]] for i in there.tolist()]
        if not lists:
            return []
        shared = np.bincount(np.concatenate(lists), minlength=len(sizes))
        share = 2 * shared / (sizes + len(asked))
        best = np.argsort(-share, kind="stable")[:COMPARED]
        rated = [(self._likeness(wanted, row), -int(self.weight[self.ids[row]]), row) for row in best.tolist()]
        return list(dict.fromkeys(int(self.ids[row]) for near, _, row in sorted(rated, reverse=True) if near >= ALIKE))

    def _likeness(self, wanted: str, row: int) -> float:
        line = self.text[self.lines[row] + 1 : self.lines[row + 1]]
        return SequenceMatcher(None, wanted, line, autojunk=False).ratio()

    @cached_property
    def _threes(self) -> tuple[Longs, NDArray[np.int32], Longs, Longs]:
        """Where the list of each three letters begins, the three letters, their lines, and how many a line has."""
        letters = np.frombuffer(self.text.encode("utf-8", "replace"), np.uint8)
        threes, line = _threes_of(letters)
        pairs = np.unique(threes.astype(np.int64) * len(self.lines) + line)
        which, rows = np.divmod(pairs, len(self.lines))
        starts, first = np.unique(which, return_index=True)
        sizes = np.bincount(rows, minlength=len(self.lines) - 1)
        return np.append(first, len(which)), starts.astype(np.int32), rows, np.maximum(sizes, 1)


def _threes_of(letters: NDArray[np.uint8]) -> tuple[NDArray[np.int32], Longs]:
    """Every three bytes that follow each other within a line, its ends included, and the number of the line."""
    wide = letters.astype(np.int32)
    threes = (wide[:-2] << 16) | (wide[1:-1] << 8) | wide[2:]
    line = np.cumsum(letters == 10)[:-2] - 1
    inside = wide[1:-1] != 10
    return threes[inside], line[inside].astype(np.int64)


def _folded(name: str) -> str:
    """Without case and accents, on one line."""
    plain = name if name.isascii() else "".join(c for c in normalize("NFKD", name) if not combining(c))
    return re.sub(r"\s+", " ", plain.casefold())


def as_dict(match: Match, entities: Vocabulary, weight: Longs) -> dict[str, Any]:
    return {
        "name": entities.names[match.entity],
        "label": entities.label(match.entity),
        "facts": int(weight[match.entity]),
        "match": match.how,
    }
