"""Kind `files`: a graph in some layout, damaged or changed harmlessly, given to `read_graph`."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import zstandard

from relwalk.errors import RelWalkError
from relwalk.graph import read
from relwalk.graph.formats import FORMATS
from relwalk.graph.graph import Graph
from relwalk.graph.write import write_graph
from tools.campaign.fault import Fault, attempt, check_message, shorten
from tools.campaign.graphs import GRAPHS, LAYOUTS, Layout, Named, named, prepared, united
from tools.campaign.mutations import BYTES, HARMLESS_TEXT, LINES
from tools.campaign.oracle import check_nothing_silent
from tools.campaign.place import Place
from tools.campaign.tree import Odd, Tree, write_tree

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 1),
    ".zst": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}
PARTS = ("train", "valid", "dev", "test", "labels", "g.")  # what may always be packed; id maps by name or not at all
SELDOM = {"parquet": 0.2}  # as often as another layout: it takes much longer to read
BESIDE = {"README.txt": b"a\tb\n", ".DS_Store": b"\0\0\0\1Bud1", "notes.md": b"# notes\n"}
BOMB = 1 << 32  # bytes, unpacked


def check(rng: Random, place: Place) -> None:
    layout_name, tree, expected = _choose(rng, place)
    layout = LAYOUTS[layout_name]
    if rng.random() < 0.2:
        if layout.file and rng.random() < 0.1:
            outcome, refusable = _through_pipe(layout_name, tree, place), False
        else:
            tree, refusable = _harmless(rng, layout, tree, place)
            outcome = _read(rng, tree, layout, place, {})
        _check_unharmed(outcome, layout, expected, refusable)
        return
    tree = _damaged(rng, layout, tree, place)
    options = _options(rng, layout_name, place)
    outcome = _read(rng, tree, layout, place, options)
    if isinstance(outcome, RelWalkError):
        check_message(outcome, ["'g'", str(place.folder / "g"), *tree])
    else:
        if options.get("on_bad_line") != "skip":
            check_nothing_silent(outcome, _path(tree, layout, place))
        if rng.random() < 0.2:
            _check_round_trip(rng, outcome, place)


def _choose(rng: Random, place: Place) -> tuple[str, Tree, Named]:
    while True:
        number, layout = (
            rng.randrange(GRAPHS),
            rng.choices(list(LAYOUTS), [SELDOM.get(name, 1.0) for name in LAYOUTS])[0],
        )
        found = prepared(place.base, number, layout)
        if found is not None:
            place.say(f"graph {number} as {layout}")
            return layout, dict(found[0]), found[1]


def _path(tree: Tree, layout: Layout, place: Place) -> Path:
    """The folder, or the one file of the layout under the name it has now."""
    folder = place.folder / "g"
    return folder / next((name for name in tree if name.startswith("g.")), layout.file) if layout.file else folder


def _read(rng: Random, tree: Tree, layout: Layout, place: Place, options: dict[str, Any]) -> Graph | RelWalkError:
    """Written, then read; every fourth case is read twice, and the second reading must say the same."""
    write_tree(tree, place.folder / "g")
    path = _path(tree, layout, place)
    outcome = attempt(lambda: read.read_graph(path, **options))
    if rng.random() < 0.25:
        again = attempt(lambda: read.read_graph(path, **options))
        if _summary(outcome) != _summary(again):
            raise Fault("two readings of the same files differ", f"{_summary(outcome)} and {_summary(again)}")
    return outcome


def _summary(outcome: Graph | RelWalkError) -> str:
    if isinstance(outcome, RelWalkError):
        return f"{type(outcome).__name__}: {outcome}"
    return f"{outcome} {outcome.fingerprint} {' | '.join(outcome.notes)}"


def _check_unharmed(outcome: Graph | RelWalkError, layout: Layout, expected: Named, refusable: bool) -> None:
    if isinstance(outcome, RelWalkError):
        if not refusable:
            raise Fault("a harmless change is refused", shorten(str(outcome)))
        return
    found = layout.holds(outcome)
    if found != expected:
        parts = [part for part in {*found, *expected} if found.get(part) != expected.get(part)]
        raise Fault("a harmless change gives another graph", f"it differs in {', '.join(sorted(parts))}")


def _check_round_trip(rng: Random, graph: Graph, place: Place) -> None:
    """What was read can be written and read again; only names may be refused."""
    format = rng.choice(["parquet", "plain", "libkge", "openke", "nt"])
    place.say(f"written as {format}")
    out = place.folder / f"again.{format}"
    written = attempt(lambda: write_graph(graph, out, format))
    if isinstance(written, RelWalkError):
        return
    again = attempt(lambda: read.read_graph(out))
    if isinstance(again, RelWalkError):
        raise Fault("what relwalk wrote it does not read", shorten(str(again)))
    one, other = united(named(graph)), united(named(again))
    negatives = graph.valid_negatives is not None or graph.test_negatives is not None
    if not negatives and one["all"] != other["all"]:
        raise Fault("what relwalk wrote it reads otherwise", f"{len(one['all'])} and {len(other['all'])} triples")


def _options(rng: Random, layout: str, place: Place) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.25:
        options["on_bad_line"] = "skip"
    if rng.random() < 0.2:
        options["format"] = layout if rng.random() < 0.7 else rng.choice(list(FORMATS))
    if LAYOUTS[layout].file and rng.random() < 0.1:
        options |= {"valid": rng.choice([0.0, 0.5, 0.9]), "test": 0.05, "seed": rng.randrange(5)}
    if options:
        place.say(f"read with {options}")
    return options


def _harmless(rng: Random, layout: Layout, tree: Tree, place: Place) -> tuple[Tree, bool]:
    """Other bytes of the same graph; and whether relwalk may refuse them, which only packed id maps allow."""
    changed, refusable = dict(tree), False
    if layout.text:
        names = list(HARMLESS_TEXT) if layout.file not in ("g.nt", "g.ttl") else ["unchanged", "CR LF", "blank lines"]
        how = rng.choice(names)
        place.say(f"harmless: {how}")
        changed = {name: HARMLESS_TEXT[how](rng, _bytes(content)) for name, content in tree.items()}
        if rng.random() < 0.4:
            everything = rng.random() < 0.5
            refusable = any(name.endswith((".del", "2id.txt")) or (everything and ".dict" in name) for name in tree)
            changed = _packed(rng, changed, place, everything)
    if not layout.file and rng.random() < 0.3:
        changed |= BESIDE
        place.say("other files beside")
    return dict(rng.sample(list(changed.items()), len(changed))), refusable  # in another order


def _bytes(content: bytes | Odd) -> bytes:
    assert isinstance(content, bytes)
    return content


def _packed(rng: Random, tree: Tree, place: Place, everything: bool) -> Tree:
    """The triples, or all files, as .gz or .zst."""
    ending = rng.choice(list(PACKERS))
    place.say(f"{'all' if everything else 'triples'} packed as {ending}")
    chosen = {name for name, data in tree.items() if isinstance(data, bytes) and (everything or name.startswith(PARTS))}
    return {
        n + ending * (n in chosen): PACKERS[ending](_bytes(data)) if n in chosen else data for n, data in tree.items()
    }


def _through_pipe(layout: str, tree: Tree, place: Place) -> Graph | RelWalkError:
    """One file as a shell's `<(zcat g.tsv.gz)` gives it, its format said."""
    place.say("through a pipe")
    out, into = os.pipe()
    try:
        os.write(into, _bytes(tree[LAYOUTS[layout].file]))  # fits into the pipe, whose reader comes later
        os.close(into)
        return attempt(lambda: read.read_graph(f"/dev/fd/{out}", format=layout))
    finally:
        os.close(out)


def _damaged(rng: Random, layout: Layout, tree: Tree, place: Place) -> Tree:
    if layout.text and rng.random() < 0.3:
        if rng.random() < 0.5:  # damaged, then packed
            tree = _one_damage(rng, layout, tree, place)
        tree = _packed(rng, tree, place, rng.random() < 0.5)
        if rng.random() < 0.003:
            return _bomb(rng, tree, place)
        layout = Layout(layout.write, layout.file, text=False)
    for _ in range(rng.choice([1, 1, 2, 3])):
        tree = _one_damage(rng, layout, tree, place)
    return tree


def _one_damage(rng: Random, layout: Layout, tree: Tree, place: Place) -> Tree:
    if rng.random() < 0.12:
        how = rng.choice(list(TREES))
        place.say(how)
        return TREES[how](rng, dict(tree))
    names = [name for name, content in tree.items() if isinstance(content, bytes)]
    if not names:
        return tree
    name, kinds = rng.choice(names), BYTES | LINES if layout.text else BYTES
    how = rng.choice(list(kinds))
    place.say(f"{how} in {name}")
    return tree | {name: kinds[how](rng, _bytes(tree[name]))}


def _remove(rng: Random, tree: Tree) -> Tree:
    if len(tree) > 1:
        del tree[rng.choice(list(tree))]
    return tree


def _odd(rng: Random, tree: Tree) -> Tree:
    """A pipe that nobody writes to may keep the reader of a single file waiting, as it would any program."""
    kinds = list(Odd) if len(tree) > 1 else [Odd.FOLDER, Odd.BROKEN, Odd.LOOP]
    return tree | {rng.choice(list(tree)): rng.choice(kinds)}


def _exchange(rng: Random, tree: Tree) -> Tree:
    one, other = rng.choice(list(tree)), rng.choice(list(tree))
    return tree | {one: tree[other], other: tree[one]}


def _twice(rng: Random, tree: Tree) -> Tree:
    name = rng.choice(list(tree))
    content, ending = tree[name], rng.choice([".gz", ".zst"])
    return tree | {name + ending: PACKERS[ending](content) if isinstance(content, bytes) else content}


def _misnamed(rng: Random, tree: Tree) -> Tree:
    name = rng.choice(list(tree))
    stem, _, _ = name.partition(".")
    return {
        (stem + rng.choice([".txt", ".tsv", ".gz", ".zst", ".TSV", ".csv", ""]) if n == name else n): c
        for n, c in tree.items()
    }


TREES: dict[str, Callable[[Random, Tree], Tree]] = {
    "a file is missing": _remove,
    "no file where one should be": _odd,
    "two files exchanged": _exchange,
    "a file twice": _twice,
    "a file misnamed": _misnamed,
}


def _bomb(rng: Random, tree: Tree, place: Place) -> Tree:
    """A small file that unpacks to gigabytes of a byte, or of lines."""
    names = [name for name in tree if name.endswith((".gz", ".zst"))]
    if not names:  # what was to be packed is no file any more
        return tree
    name = rng.choice(names)
    what = rng.choice([b"\0", b"a\tr\tb\n", b"\n"])
    place.say(f"{name} unpacks to {BOMB >> 30} GB")
    return tree | {name: _bomb_bytes(Path(name).suffix, what)}


@cache
def _bomb_bytes(ending: str, what: bytes) -> bytes:
    piece = (what * (1 << 25))[: 1 << 25]
    packed = zstandard.ZstdCompressor(level=1).compress(piece) if ending == ".zst" else gzip.compress(piece, 9)
    return packed * (BOMB >> 25)
