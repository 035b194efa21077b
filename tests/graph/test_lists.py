"""Lists and KnownAnswers against dictionaries of sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relwalk.graph.answers import SIDES, KnownAnswers, Side, arguments
from relwalk.graph.lists import Ints, Lists

ENTITIES, RELATIONS = 6, 3

cells = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=40)
rows_of_8 = st.lists(st.integers(-1, 7), max_size=20)
triples_of_6 = st.lists(
    st.tuples(
        st.integers(0, ENTITIES - 1),
        st.integers(0, RELATIONS - 1),
        st.integers(0, ENTITIES - 1),
    ),
    max_size=40,
)

Triple = tuple[int, int, int]


def grouped(pairs: list[tuple[int, int]]) -> Lists:
    table = np.array(pairs, np.int32).reshape(-1, 2)
    return Lists.group(table[:, 0], table[:, 1], 8)


def by_hand(pairs: list[tuple[int, int]], key: int) -> list[int]:
    return sorted({value for k, value in pairs if k == key})


def array(triples: list[Triple]) -> Ints:
    return np.array(triples, np.int32).reshape(-1, 3)


def known(triples: list[Triple], side: Side, entity: int, relation: int) -> list[int]:
    if side == "tail":
        return sorted({t for h, r, t in triples if (h, r) == (entity, relation)})
    return sorted({h for h, r, t in triples if (t, r) == (entity, relation)})


@given(cells)
def test_each_list_holds_the_distinct_values_of_its_key(pairs: list[tuple[int, int]]) -> None:
    lists = grouped(pairs)
    assert len(lists) == 8
    assert [lists[key].tolist() for key in range(8)] == [by_hand(pairs, key) for key in range(8)]
    assert lists.values.dtype == np.int32
    assert lists.offsets.dtype == np.int64


@given(cells)
def test_lengths_and_rows_describe_the_flat_values(pairs: list[tuple[int, int]]) -> None:
    lists = grouped(pairs)
    assert lists.lengths.tolist() == [len(by_hand(pairs, key)) for key in range(8)]
    assert lists.row_of_each_value().tolist() == [key for key in range(8) for _ in by_hand(pairs, key)]


@given(cells, rows_of_8)
def test_take_follows_the_rows_and_leaves_minus_one_empty(pairs: list[tuple[int, int]], rows: list[int]) -> None:
    taken = grouped(pairs).take(np.array(rows, np.int64))
    assert len(taken) == len(rows)
    expected = [by_hand(pairs, row) if row >= 0 else [] for row in rows]
    assert [taken[place].tolist() for place in range(len(rows))] == expected


def test_values_and_keys_may_be_of_any_integer_type() -> None:
    lists = Lists.group(np.array([1, 0, 1], np.int8), np.array([100, 7, 50], np.int16), 2)
    assert [lists[row].tolist() for row in range(2)] == [[7], [50, 100]]


def test_large_keys_and_values_do_not_overflow() -> None:
    top = 2**31 - 2
    lists = Lists.group(np.array([999_999, 0], np.int32), np.array([top, top - 1], np.int32), 1_000_000)
    assert lists[999_999].tolist() == [top]
    assert lists[0].tolist() == [top - 1]


@given(triples_of_6, st.sampled_from(SIDES))
def test_answers_are_those_of_a_dictionary(triples: list[Triple], side: Side) -> None:
    answers = KnownAnswers.from_triples(array(triples), side, RELATIONS)
    queries = [(entity, relation) for entity in range(ENTITIES) for relation in range(RELATIONS)]
    entities, relations = np.array(queries).T
    lists = answers.lookup(entities, relations)
    assert [lists[place].tolist() for place in range(len(queries))] == [
        known(triples, side, *query) for query in queries
    ]


@given(triples_of_6, st.sampled_from(SIDES))
def test_a_query_without_an_answer_has_no_row(triples: list[Triple], side: Side) -> None:
    answers = KnownAnswers.from_triples(array(triples), side, RELATIONS)
    for entity in range(ENTITIES):
        for relation in range(RELATIONS):
            (row,) = answers.rows(np.array([entity]), np.array([relation])).tolist()
            assert (row == -1) == (not known(triples, side, entity, relation))
    assert (np.diff(answers.keys) > 0).all()


@given(triples_of_6)
def test_arguments_are_the_heads_and_tails_of_each_relation(triples: list[Triple]) -> None:
    for side, place in (("head", 0), ("tail", 2)):
        lists = arguments(array(triples), "head" if side == "head" else "tail", RELATIONS)
        expected = [sorted({x[place] for x in triples if x[1] == r}) for r in range(RELATIONS)]
        assert [lists[r].tolist() for r in range(RELATIONS)] == expected
