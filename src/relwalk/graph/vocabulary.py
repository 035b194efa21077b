"""Names <-> ids, frozen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from urllib.parse import unquote

from relwalk.errors import AmbiguousName, GraphError, UnknownName
from relwalk.graph.texts import TextIndex

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|[^/\s]+[:/#])\S+")  # http://x.org/a, urn:x:a


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """The entities or the relations of a graph: id `i` is called `names[i]`.

    `labels`, where a data set has them, are readable names ("breathe.v.01" for "00001740"). A lookup
    tries names first, then labels, then local names: the last parts of IRIs.
    """

    kind: str  # "entity" or "relation": what an error message calls it
    names: Sequence[str]  # frozen: a tuple, or `Texts`
    labels: Sequence[str | None] | None = None

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
        return isinstance(name, str) and bool(self._ids.places(name))

    def id(self, name: str) -> int:
        """The id of a name, else of the only label or the only local name (`works_for` of `http://x.org/works_for`).

        `AmbiguousName` lists the names that share a label or local name, `UnknownName` offers the nearest ones.
        """
        if not isinstance(name, str):
            raise GraphError(
                f"the {self.kind} {name!r} is no string; expected a name. Of an id, names[{name!r}] is the name."
            )
        if places := self._ids.places(name):
            return places[-1]
        for index in (self._ids_by_label, self._ids_by_local_name):
            found = index.places(name)
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
        known: dict[str, str] = {}
        for whole in self.names:
            if (local := local_name(whole)) is not None:
                known.setdefault(local, whole)
        known |= {label: label for label in self.labels or () if label is not None}
        known |= {name: name for name in self.names}
        shown = {key.casefold(): name for key, name in known.items()}
        folded = name.casefold()
        if folded in shown:
            return [shown[folded]]
        near_length = [key for key in shown if abs(len(key) - len(folded)) <= 3 or key.startswith(folded)]
        near = get_close_matches(folded, near_length, n=2 * count, cutoff=0.6)
        return list(dict.fromkeys(shown[key] for key in near))[:count]

    @cached_property
    def _ids(self) -> TextIndex:
        return TextIndex(self.names, len(self), self.names.__getitem__)

    @cached_property
    def _ids_by_label(self) -> TextIndex:
        labels = self.labels or ()
        return TextIndex(labels, len(labels), labels.__getitem__)

    @cached_property
    def _ids_by_local_name(self) -> TextIndex:
        return TextIndex(map(local_name, self.names), len(self), lambda place: local_name(self.names[place]))


def local_name(name: str) -> str | None:
    """The last part of an IRI or of a path such as /film/film/genre; None of other names."""
    if not (_IRI.match(name) or name.startswith("/")):
        return None
    trimmed = name.rstrip("/#")
    return unquote(re.split("[/#]" if re.search("[/#]", trimmed) else ":", trimmed)[-1]) or None
