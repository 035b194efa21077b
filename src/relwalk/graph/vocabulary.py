"""Names <-> ids, frozen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from urllib.parse import unquote

from relwalk.errors import AmbiguousName, GraphError, UnknownName

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|[^/\s]+[:/#])\S+")  # http://x.org/a, urn:x:a


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """The entities or the relations of a graph: id `i` is called `names[i]`.

    `labels`, where a data set has them, are readable names ("breathe.v.01" for "00001740"). A lookup
    tries names first, then labels, then local names: the last parts of IRIs.
    """

    kind: str  # "entity" or "relation": what an error message calls it
    names: tuple[str, ...]
    labels: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None and len(self.labels) != len(self.names):
            raise GraphError(f"{len(self.labels)} labels for {len(self.names)} {self.kind} names")

    def __repr__(self) -> str:
        return f"<Vocabulary: {len(self.names):,} names of kind {self.kind}>"

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def id(self, name: str) -> int:
        """The id of a name, else of the only label or the only local name (`works_for` of `http://x.org/works_for`).

        `AmbiguousName` lists the names that share a label or local name, `UnknownName` offers the nearest ones.
        """
        if not isinstance(name, str):
            raise GraphError(
                f"the {self.kind} {name!r} is no string; expected a name. Of an id, names[{name!r}] is the name."
            )
        if name in self._ids:
            return self._ids[name]
        for index in (self._ids_by_label, self._ids_by_local_name):
            found = index.get(name, ())
            if len(found) == 1:
                return found[0]
            if found:
                raise AmbiguousName(self.kind, name, [self.names[i] for i in found])
        raise UnknownName(self.kind, name, self._nearest(name))

    def label(self, index: int) -> str:
        """What to show a person: the label where there is one, else the name."""
        label = self.labels[index] if self.labels is not None else None
        return label if label is not None else self.names[index]

    def _nearest(self, name: str, count: int = 3) -> list[str]:
        """Names and labels spelled alike, also names whose local name is."""
        local = {key: self.names[ids[0]] for key, ids in self._ids_by_local_name.items()}
        known = {**local, **{label: label for label in self._ids_by_label}, **{name: name for name in self.names}}
        shown = {key.casefold(): name for key, name in known.items()}
        folded = name.casefold()
        if folded in shown:
            return [shown[folded]]
        near_length = [key for key in shown if abs(len(key) - len(folded)) <= 3 or key.startswith(folded)]
        near = get_close_matches(folded, near_length, n=2 * count, cutoff=0.6)
        return list(dict.fromkeys(shown[key] for key in near))[:count]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    @cached_property
    def _ids_by_label(self) -> dict[str, tuple[int, ...]]:
        return _index(self.labels or ())

    @cached_property
    def _ids_by_local_name(self) -> dict[str, tuple[int, ...]]:
        return _index(local_name(name) for name in self.names)


def local_name(name: str) -> str | None:
    """The last part of an IRI or of a path such as /film/film/genre; None of other names."""
    if not (_IRI.match(name) or name.startswith("/")):
        return None
    trimmed = name.rstrip("/#")
    return unquote(re.split("[/#]" if re.search("[/#]", trimmed) else ":", trimmed)[-1]) or None


def _index(keys: Iterable[str | None]) -> dict[str, tuple[int, ...]]:
    """The places of each key that is there."""
    ids: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        if key is not None:
            ids.setdefault(key, []).append(index)
    return {key: tuple(found) for key, found in ids.items()}
