"""Small graphs with plain, foreign and odd names, written in every layout that relwalk reads."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyoxigraph as ox

from relwalk.errors import GraphError
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.graph.write import WRITERS, write_graph
from tools.campaign.tree import Tree, read_tree

GRAPHS = 12
_FOREIGN = "München 東京 São_Tomé Ελλάδα Київ القاهرة दिल्ली 🙂 e\u0301 ﬁn ß İ Å Ω ひ ñ ø ž ł þ"
_ODD = ["NA", "null", "1", "-1", "+", "a b", " c", "d ", "e,f", 'g"h', "i#j", "\\k", "%20", "?", "\x1b[31mred"]
_ODD += ["\x7f", "a\u2028b", "a\ufeffb", "<x>", "x" * 600]
STYLES = {
    "plain": [f"e{number}" for number in range(20)],
    "foreign": _FOREIGN.split(" "),
    "odd": _ODD,
    "addresses": [f"http://example.org/a/{number}#x" for number in range(20)],
}
HEADINGS = [None, ("head", "relation", "tail"), ("subject", "predicate", "object")]

Named = dict[str, list[list[str]]]


def random_graph(number: int) -> Graph:
    """The same number, the same graph: a handful of entities with train, valid, test, negatives, maybe labels."""
    rng = Random(f"graph {number}")
    style = list(STYLES.values())[number % len(STYLES)]
    entities = rng.sample(style, rng.randrange(4, 20))
    relations = [f"r{i}" for i in range(rng.randrange(1, 5))]

    def triples(count: int) -> Any:
        rows = {
            (rng.randrange(len(entities)), rng.randrange(len(relations)), rng.randrange(len(entities)))
            for _ in range(count)
        }
        return np.array(sorted(rows, key=lambda _: rng.random()), np.int32).reshape(-1, 3)

    labels = tuple(f"label {i}" if rng.random() < 0.7 else None for i in range(len(entities)))
    return Graph(
        name="g",
        entities=Vocabulary("entity", tuple(entities), labels if number % 3 == 0 else None),
        relations=Vocabulary("relation", tuple(relations)),
        train=triples(rng.randrange(8, 40)),
        valid=triples(rng.randrange(2, 8)),
        test=triples(rng.randrange(2, 8)),
        valid_negatives=triples(4),
        test_negatives=triples(4),
    )


def named(graph: Graph, *, negatives: bool = True) -> Named:
    """The triples of each part by name, sorted, and the labels of the entities in them: what no reading may change."""
    names, relations = graph.entities.names, graph.relations.names
    parts = {part: ids.tolist() for part, ids in graph.parts().items() if negatives or "negatives" not in part}
    found = {part: sorted([names[h], relations[r], names[t]] for h, r, t in rows) for part, rows in parts.items()}
    labels = graph.entities.labels or (None,) * len(names)
    used = {entity for rows in parts.values() for head, _, tail in rows for entity in (head, tail)}
    return found | {"labels": sorted([names[i], str(labels[i])] for i in used if labels[i] is not None)}


@dataclass(frozen=True)
class Layout:
    """One way to lay a graph on disk: how it is written, and what of a graph it holds."""

    write: Callable[[Graph, Path], None]
    file: str = ""  # its one file; none: a folder
    text: bool = True  # made of lines
    negatives: bool = False
    labels: bool = True
    numbered: bool = False  # it lists the names in the order of their ids

    def holds(self, graph: Graph) -> Named:
        """What a reading of this layout must give back of a graph. One file without parts is one set of triples."""
        found = named(graph, negatives=self.negatives)
        if not self.labels:
            found["labels"] = []
        if self.numbered:
            found["entities"] = [[name] for name in graph.entities]
        return united(found) if self.file else found


def united(found: Named) -> Named:
    """All parts as one, each triple once."""
    triples = {tuple(row) for part, rows in found.items() if part != "labels" for row in rows}
    return {"all": [list(row) for row in sorted(triples)], "labels": found["labels"]}


def _ours(format: str) -> Callable[[Graph, Path], None]:
    def write(graph: Graph, folder: Path) -> None:
        single = WRITERS[format].single
        write_graph(graph, folder / f"g.{format}" if single else folder, format)

    return write


def _rows(graph: Graph) -> Iterator[tuple[str, ...]]:
    for head, relation, tail in graph.triples.tolist():
        yield graph.entities.names[head], graph.relations.names[relation], graph.entities.names[tail]


def _headed(graph: Graph, rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    heading = HEADINGS[len(graph.train) % len(HEADINGS)]
    return [*([heading] if heading else []), *rows]


def _write_tsv(graph: Graph, folder: Path) -> None:
    text = "".join("\t".join(row) + "\n" for row in _headed(graph, _rows(graph)))
    (folder / "g.tsv").write_bytes(text.encode())


def _write_csv(graph: Graph, folder: Path) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(_headed(graph, _rows(graph)))
    (folder / "g.csv").write_bytes(buffer.getvalue().encode())


def _write_ttl(graph: Graph, folder: Path) -> None:
    aside = folder / "aside.nt"
    write_graph(graph, aside, "nt")
    prefixes = {"ex": "http://example.org/a/", "rw": "urn:relwalk:"}
    turtle = ox.serialize(
        (quad.triple for quad in ox.parse(path=aside, format=ox.RdfFormat.N_TRIPLES)),
        format=ox.RdfFormat.TURTLE,
        prefixes=prefixes,
    )
    aside.unlink()
    (folder / "g.ttl").write_bytes(turtle or b"")


LAYOUTS: dict[str, Layout] = {
    "plain": Layout(_ours("plain")),
    "rotate": Layout(_ours("rotate"), numbered=True),
    "openke": Layout(_ours("openke"), negatives=True, numbered=True),
    "libkge": Layout(_ours("libkge"), numbered=True),
    "socher": Layout(_ours("socher"), negatives=True),
    "parquet": Layout(_ours("parquet"), text=False, negatives=True),
    "nt": Layout(_ours("nt"), file="g.nt"),
    "ttl": Layout(_write_ttl, file="g.ttl"),
    "tsv": Layout(_write_tsv, file="g.tsv", labels=False),
    "csv": Layout(_write_csv, file="g.csv", labels=False),
}


def prepare(base: Path) -> None:
    """Every graph in every layout that can hold its names, below a folder."""
    for number in range(GRAPHS):
        graph = random_graph(number)
        for name, layout in LAYOUTS.items():
            folder = base / str(number) / name
            folder.mkdir(parents=True)
            try:
                layout.write(graph, folder)
            except GraphError:  # it has a name that this layout cannot hold, and says so
                folder.rmdir()
                continue
            (base / str(number) / f"{name}.json").write_text(json.dumps(layout.holds(graph)))


@cache
def prepared(base: Path, number: int, layout: str) -> tuple[Tree, Named] | None:
    """The files of a graph in a layout and what they hold; None where the layout cannot hold it."""
    folder = base / str(number) / layout
    if not folder.is_dir():
        return None
    return read_tree(folder), json.loads((base / str(number) / f"{layout}.json").read_text())
