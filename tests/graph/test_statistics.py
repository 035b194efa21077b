"""The report on a graph: every number by hand, then against slow counts, then the published facts."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relwalk.graph import description, overlap
from relwalk.graph.cardinality import cardinalities, distinct
from relwalk.graph.graph import SPLITS, Graph
from relwalk.graph.lists import Ints
from relwalk.graph.raw import COLUMNS, RawGraph, index
from relwalk.graph.statistics import (
    Leakage,
    Packing,
    PairTable,
    RelationDescription,
    RelationPair,
    describe,
    relation_pairs,
)
from relwalk.graph.vocabulary import Vocabulary

Triple = tuple[int, int, int]

ENTITIES = ("a", "b", "c", "d", "e", "alone")
RELATIONS = ("likes", "liked_by", "adores", "knows", "later", "unused")

TRAIN = """a likes b, a likes b, a likes c, b likes c,
           b liked_by a, c liked_by a, c liked_by b,
           a adores b, a adores c, b adores c,
           a knows b, b knows a, d knows d"""
VALID = "a likes e, a likes b"
TEST = """c knows d, d likes d, b likes a, a liked_by c, a likes b,
          e later c, e later b, e later b"""


def parse(text: str) -> Ints:
    words = [line.split() for line in text.split(",")]
    ids = [(ENTITIES.index(h), RELATIONS.index(r), ENTITIES.index(t)) for h, r, t in words]
    return np.array(ids, np.int32)


def make(train: Ints, valid: Ints, test: Ints, **more: Any) -> Graph:
    labels = ("Ann", None, None, None, None, None)
    entities, relations = Vocabulary("entity", ENTITIES, labels), Vocabulary("relation", RELATIONS)
    return Graph("five", entities, relations, train, valid, test, **more)


@pytest.fixture
def five() -> Graph:
    return make(
        parse(TRAIN), parse(VALID), parse(TEST), test_negatives=parse("a likes d, b likes d"), notes=("by hand",)
    )


# By hand


def test_counts(five: Graph) -> None:
    report = describe(five)
    assert (report.name, report.entities, report.relations) == ("five", 6, 6)
    assert report.triples == {"train": 13, "valid": 2, "test": 8}
    assert report.negatives == {"train": 0, "valid": 0, "test": 2}
    assert report.duplicates == {"train": 1, "valid": 0, "test": 1}
    assert report.self_loops == {"train": 1, "valid": 0, "test": 1}
    assert report.overlap == {"train and valid": 1, "train and test": 1, "valid and test": 1}
    assert report.notes == ("by hand",)


def test_unseen_and_isolated_names(five: Graph) -> None:
    report = describe(five)
    assert report.unseen.entities == 1  # e
    assert report.unseen.relations == ("later",)
    assert report.unseen.with_entity == {"train": 0, "valid": 1, "test": 3}
    assert report.unseen.with_relation == {"train": 0, "valid": 0, "test": 3}
    assert (report.isolated_entities, report.isolated_relations) == (1, 1)


def test_each_relation(five: Graph) -> None:
    assert describe(five).relation_reports == (
        RelationDescription("likes", 4, 2, 3, "N-N", 1.5, 1.5, 2, 2, 3 / 6),  # ab ba dd of ab ac bc ae dd ba
        RelationDescription("liked_by", 3, 0, 1, "N-N", 1.5, 1.5, 2, 2, 2 / 4),  # ca ac of ba ca cb ac
        RelationDescription("adores", 3, 0, 0, "N-N", 1.5, 1.5, 2, 2, 0.0),
        RelationDescription("knows", 3, 0, 1, "1-1", 1.0, 1.0, 3, 3, 3 / 4),  # ab ba dd of ab ba dd cd
        RelationDescription("later", 0, 0, 3, "1-N", 2.0, 1.0, 1, 2, 0.0),  # classed from test
        RelationDescription("unused", 0, 0, 0, "1-1", 0.0, 0.0, 0, 0, 0.0),
    )
    assert describe(five).classes == {"1-1": 2, "1-N": 1, "N-1": 0, "N-N": 3}


def test_leakage(five: Graph) -> None:
    report = describe(five)
    assert report.leakage == Leakage(
        symmetric=2,  # b likes a, a liked_by c
        inverse=3,  # d likes d (knows), b likes a (adores, knows), a likes b (liked_by, knows)
        inverse_relation=1,  # a likes b (liked_by)
        other_relation=4,  # d likes d, b likes a, a liked_by c, a likes b
    )
    assert report.leakage_shares == {
        "symmetric": 0.25,
        "inverse": 0.375,
        "inverse_relation": 0.125,
        "other_relation": 0.5,
    }


def test_pairs_of_relations(five: Graph) -> None:
    report = describe(five)
    assert report.inverse_relations == (
        RelationPair("likes", "liked_by", 3, 1.0),
        RelationPair("liked_by", "adores", 3, 1.0),
    )
    assert report.duplicate_relations == (RelationPair("likes", "adores", 3, 1.0),)
    assert report.crowded_pairs == 0


def test_degree(five: Graph) -> None:
    degree = describe(five).degree
    assert degree.most_connected == (("Ann", 14), ("b", 14), ("c", 9), ("d", 5), ("e", 4))
    assert (degree.mean, degree.median, degree.max) == (46 / 6, 7.0, 14)


def test_cardinality_is_cut_at_one_and_a_half() -> None:
    text = """a likes b, a likes c,
              a liked_by b, c liked_by b,
              a adores b, a adores c, d adores b, d adores c,
              a knows b, a knows c, b knows d, c knows a, d knows e"""  # knows: 5 tails of 4 heads, 1.25
    graph = make(parse(text), parse("a later b"), parse("b later c"))
    assert cardinalities(graph) == ("1-N", "N-1", "N-N", "1-1", "1-1", "1-1")


def test_overlap_must_exceed_eighty_percent_of_both_relations() -> None:
    four_of_five = "a likes b, a likes c, a likes d, a likes e, b likes c, "
    same = "a adores b, a adores c, a adores d, a adores e"
    graph = make(parse(four_of_five + same), parse("a likes b"), parse("a likes b"))
    assert describe(graph).duplicate_relations == ()  # 4 / 5 is not more than 0.8
    graph = make(parse(four_of_five + same + ", b adores c, b adores d"), graph.valid, graph.test)
    (pair,) = describe(graph).duplicate_relations
    assert (pair.shared, pair.overlap) == (5, 5 / 6)


def test_self_loops_are_their_own_reversal() -> None:
    graph = make(parse("a likes a, a adores a, b likes b, b adores b"), parse("c likes c"), parse("a likes a"))
    report = describe(graph)
    assert report.inverse_relations == (RelationPair("likes", "adores", 2, 1.0),)
    assert report.duplicate_relations == (RelationPair("likes", "adores", 2, 1.0),)
    assert report.leakage == Leakage(symmetric=1, inverse=1, inverse_relation=1, other_relation=1)


def test_a_graph_of_train_alone_has_no_holes() -> None:
    none = np.zeros((0, 3), np.int32)
    report = describe(make(parse("a likes b"), none, none))
    assert report.triples == {"train": 1, "valid": 0, "test": 0}
    assert set(report.leakage_shares.values()) == {0.0}
    assert "no test split" in str(report)
    json.dumps(report.as_dict(), allow_nan=False)


# The printed page and the dictionary


def test_the_dictionary_survives_json(five: Graph) -> None:
    plain = describe(five).as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["relation_reports"][0]["tails_per_head"] == 1.5
    assert plain["degree"]["most_connected"][0] == ["Ann", 14]


def test_the_page_shows_the_numbers(five: Graph) -> None:
    page = str(describe(five))
    assert "five: 6 entities, 6 relations" in page
    assert "train has (t, r, h)                             2  25.0%" in page
    assert "in valid or test, never in train: 1 entity, 1 relation" in page
    assert "most connected: Ann (14), b (14), c (9), d (5), e (4)" in page
    assert "by hand" in page


def test_the_page_fits_a_terminal_whatever_the_names() -> None:
    size = 60
    relations = tuple(f"/{'very/long/path/' * 20}{i}" for i in range(size))
    entities = tuple("word " * 60 + str(i) for i in range(size))
    pairs = [(i, r, (i + 1) % size) for i in range(size) for r in (i, (i + 1) % size)]
    graph = Graph("long", Vocabulary("entity", entities), Vocabulary("relation", relations), np.array(pairs, np.int32))
    lines = str(describe(graph)).splitlines()
    assert max(map(len, lines)) <= 100
    assert not any(line != line.rstrip() for line in lines)
    assert any("and 35 more" in line for line in lines)


def test_crowded_pairs_are_left_out_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    train = parse(TRAIN.replace(", d knows d", ""))  # a and b have 5 links, a and c 3, b and c 3
    graph = make(train, parse(VALID), parse(TEST))
    assert describe(graph).crowded_pairs == 0
    assert len(describe(graph).inverse_relations) == 2
    monkeypatch.setattr(overlap, "CROWD", 3)
    monkeypatch.setattr(description, "CROWD", 3)
    report = describe(graph)
    assert report.crowded_pairs == 1
    assert report.inverse_relations == ()  # 2 / 3 are left
    assert "1 pair of entities with more than 3 links" in str(report)


# Against slow counts

triple = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
graphs = st.builds(
    lambda *parts: make(*(np.array(part, np.int32).reshape(-1, 3) for part in parts)),
    st.lists(triple, min_size=1, max_size=60),
    st.lists(triple, max_size=10),
    st.lists(triple, max_size=10),
)


def rows(triples: Ints) -> list[Triple]:
    return [(h, r, t) for h, r, t in triples.tolist()]


def slow_pairs(train: set[Triple], *, turned: bool) -> dict[tuple[int, int], int]:
    links = {r: {(h, t) for h, r2, t in train if r2 == r} for r in range(len(RELATIONS))}
    others = {r: {(t, h) for h, t in pairs} for r, pairs in links.items()} if turned else links
    shared = {(a, b): len(links[a] & others[b]) for a in links for b in links if a < b}
    return {(a, b): n for (a, b), n in shared.items() if n > 0.8 * max(len(links[a]), len(links[b]))}


def slow_leakage(train: set[Triple], test: list[Triple]) -> Leakage:
    inverses = slow_pairs(train, turned=True)

    def others(h: int, r: int, t: int) -> list[int]:
        return [r2 for h2, r2, t2 in train if (h2, t2) == (h, t) and r2 != r]

    def by_inverse(h: int, r: int, t: int) -> bool:
        return any((min(r, r2), max(r, r2)) in inverses for r2 in others(t, r, h))

    return Leakage(
        symmetric=sum((t, r, h) in train for h, r, t in test),
        inverse=sum(bool(others(t, r, h)) for h, r, t in test),
        inverse_relation=sum(by_inverse(h, r, t) for h, r, t in test),
        other_relation=sum(bool(others(h, r, t)) for h, r, t in test),
    )


def as_counts(table: PairTable) -> dict[tuple[int, int], int]:
    couples = zip(table.first.tolist(), table.second.tolist(), strict=True)
    return dict(zip(couples, table.shared.tolist(), strict=True))


@given(graphs, st.booleans(), st.sampled_from([1, 7, 1 << 20]))
def test_relation_pairs_are_those_of_sets(graph: Graph, with_table: bool, block: int) -> None:
    packing = Packing.with_table(graph) if with_table else Packing.from_graph(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "BLOCK", block)
        found = relation_pairs(distinct(packing.keys(graph.train)), packing)
    train = set(rows(graph.train))
    assert as_counts(found.inverse) == slow_pairs(train, turned=True)
    assert as_counts(found.duplicate) == slow_pairs(train, turned=False)


@given(graphs)
def test_leakage_is_that_of_sets(graph: Graph) -> None:
    assert describe(graph).leakage == slow_leakage(set(rows(graph.train)), rows(graph.test))


@given(graphs)
def test_packing_with_and_without_a_table_agree(graph: Graph) -> None:
    for packing in (Packing.from_graph(graph), Packing.with_table(graph)):
        keys = packing.keys(graph.triples)
        turned = packing.keys(np.ascontiguousarray(graph.triples[:, ::-1]))
        assert len(distinct(keys)) == len(set(rows(graph.triples)))
        assert np.array_equal(packing.reverse(keys), turned)
        assert np.array_equal(packing.relation(keys), graph.triples[:, 1])


def test_keys_that_would_overflow_get_a_table(five: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = describe(five)
    monkeypatch.setattr(Packing, "from_graph", Packing.with_table)
    assert describe(five) == expected


@given(graphs)
def test_relations_are_those_of_sets(graph: Graph) -> None:
    train, every = set(rows(graph.train)), set(rows(graph.triples))
    for relation, row in enumerate(describe(graph).relation_reports):
        used = {x for x in train if x[1] == relation} or {x for x in every if x[1] == relation}
        heads, tails = Counter(h for h, _, _ in used), Counter(t for _, _, t in used)
        assert (row.heads, row.tails) == (len(heads), len(tails))
        assert row.tails_per_head == len(used) / max(len(heads), 1)
        assert row.heads_per_tail == len(used) / max(len(tails), 1)
        own = {x for x in every if x[1] == relation}
        assert row.symmetric == sum((t, r, h) in own for h, r, t in own) / max(len(own), 1)


@given(graphs)
@settings(max_examples=50)
def test_unseen_duplicates_and_overlap_are_those_of_sets(graph: Graph) -> None:
    report = describe(graph)
    parts = {split: rows(graph.split(split)) for split in SPLITS}
    seen = {x for h, _, t in parts["train"] for x in (h, t)}
    new = {x for h, _, t in parts["valid"] + parts["test"] for x in (h, t)} - seen
    assert report.unseen.entities == len(new)
    for split, triples in parts.items():
        assert report.unseen.with_entity[split] == sum(bool({h, t} & new) for h, _, t in triples)
        assert report.duplicates[split] == len(triples) - len(set(triples))
    assert report.overlap["train and test"] == len(set(parts["train"]) & set(parts["test"]))


# The published facts


def benchmark(name: str) -> Graph:
    folder = os.environ.get("RELWALK_DATA")
    if not folder:
        pytest.skip("RELWALK_DATA is not set: a folder with wn18rr/train.txt, fb15k-237/train.txt, ...")
    frames: dict[str, pl.DataFrame] = {split: read(Path(folder) / name / f"{split}.txt") for split in SPLITS}
    return index(RawGraph(name, frames))


def read(path: Path) -> pl.DataFrame:
    schema = dict.fromkeys(COLUMNS, pl.String)
    return pl.read_csv(path, separator="\t", has_header=False, schema=schema, quote_char=None)


def test_wn18rr_as_published() -> None:
    report = describe(benchmark("wn18rr"))
    assert (report.entities, report.relations) == (40_943, 11)
    assert report.triples == {"train": 86_835, "valid": 3_034, "test": 3_134}
    assert report.unseen.with_entity["test"] == 210
    assert round(report.leakage_shares["symmetric"], 3) == 0.347
    symmetric = {row.name for row in report.relation_reports if row.symmetric > 0.9}
    assert symmetric == {"_derivationally_related_form", "_verb_group", "_similar_to"}


def test_fb15k_237_as_published() -> None:
    report = describe(benchmark("fb15k-237"))
    assert (report.entities, report.relations) == (14_541, 237)
    assert report.triples == {"train": 272_115, "valid": 17_535, "test": 20_466}
    assert report.unseen.with_entity["test"] == 28
    # Toutanova and Chen (2015) dropped every test triple whose entities train links directly.
    assert set(asdict(report.leakage).values()) == {0}
    assert sum(report.classes.values()) == 237
