"""Names <-> ids, frozen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from relwalk.errors import GraphError, UnknownName


@dataclass(frozen=True)
class Vocabulary:
    """The entities or the relations of a graph: id `i` is called `names[i]`.

    `labels`, where a data set has them, are readable names ("breathe.v.01" for "00001740"). A lookup
    tries names first, then labels.
    """

    kind: str  # "entity" or "relation": what an error message calls it
    names: tuple[str, ...]
    labels: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None and len(self.labels) != len(self.names):
            raise GraphError(f"{len(self.labels)} labels for {len(self.names)} {self.kind} names")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def id(self, name: str) -> int:
        """The id of a name or of an unambiguous label; `UnknownName` offers the nearest ones."""
        if name in self._ids:
            return self._ids[name]
        same_label = self._ids_by_label.get(name, ())
        if len(same_label) == 1:
            return same_label[0]
        if same_label:
            raise UnknownName(self.kind, name, [self.names[i] for i in same_label[:5]])
        raise UnknownName(self.kind, name, self._nearest(name))

    def label(self, index: int) -> str:
        """What to show a person: the label where there is one, else the name."""
        label = self.labels[index] if self.labels is not None else None
        return label if label is not None else self.names[index]

    def _nearest(self, name: str, count: int = 3) -> list[str]:
        shown = {name.casefold(): name for name in (*self._ids_by_label, *self.names)}
        folded = name.casefold()
        if folded in shown:
            return [shown[folded]]
        near_length = [key for key in shown if abs(len(key) - len(folded)) <= 3 or key.startswith(folded)]
        return [shown[key] for key in get_close_matches(folded, near_length, n=count, cutoff=0.6)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    @cached_property
    def _ids_by_label(self) -> dict[str, tuple[int, ...]]:
        ids: dict[str, tuple[int, ...]] = {}
        for index, label in enumerate(self.labels or ()):
            if label is not None:
                ids[label] = (*ids.get(label, ()), index)
        return ids
