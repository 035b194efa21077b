"""Names by name, by label, by the last part of an IRI; what is ambiguous is listed, what is near is offered."""

from __future__ import annotations

import numpy as np
import pytest

from relwalk.errors import AmbiguousName, GraphError, UnknownName
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary, local_name

NAMES = (
    "http://x.org/ns#works_for",
    "http://x.org/ns/knows",
    "http://y.org/knows",
    "urn:x:likes",
    "/film/film/genre",
    "AC/DC",
    "http://x.org/lives%20in/",
    "genre",
)


@pytest.fixture
def names() -> Vocabulary:
    return Vocabulary("relation", NAMES, (*[None] * 5, "likes", None, None))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("works_for", 0),
        ("http://x.org/ns#works_for", 0),
        ("lives in", 6),
        ("genre", 7),  # a whole name wins over a local one
        ("likes", 5),  # and so does a label
    ],
)
def test_a_name_is_found_by_its_last_part(names: Vocabulary, name: str, found: int) -> None:
    assert names.id(name) == found


def test_a_last_part_that_several_share_lists_them(names: Vocabulary) -> None:
    with pytest.raises(AmbiguousName, match=r"2 relations are called 'knows': 'http://x.org/ns/knows', 'http://y.org"):
        names.id("knows")
    many = Vocabulary("entity", tuple(f"http://x.org/{n}/a" for n in range(9)))
    with pytest.raises(AmbiguousName, match=r"9 entities are called 'a'.* and 4 more"):
        many.id("a")


def test_what_is_spelled_alike_is_offered_by_its_whole_name(names: Vocabulary) -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'http://x.org/ns#works_for'"):
        names.id("work_for")
    with pytest.raises(UnknownName, match=r"Did you mean 'http://x.org/ns#works_for'"):
        names.id("Works_For")


def test_names_that_are_no_iris_have_no_last_part(names: Vocabulary) -> None:
    with pytest.raises(UnknownName):
        names.id("DC")
    assert [local_name(name) for name in ("a", "x:a", "AC/DC", "a b:c/d")] == [None] * 4


def test_a_name_that_is_no_string() -> None:
    with pytest.raises(GraphError, match="the entity 3 is no string"):
        Vocabulary("entity", ("a",)).id(3)  # type: ignore[arg-type]


def test_a_graph_is_shown_in_one_line(world: Graph) -> None:
    assert repr(world) == f"<Graph {world}>" and "\n" not in repr(world)
    assert len(repr(world.entities)) < 80
    page = world._repr_html_()
    assert "<table>" in page and f"{len(world.train):,}" in page and len(page) < 2000


def test_a_graph_in_a_notebook_escapes_what_it_shows() -> None:
    names = Vocabulary("entity", ("a", "b")), Vocabulary("relation", ("r",))
    graph = Graph("<script>", *names, train=np.array([[0, 0, 1]], np.int32), notes=("<b>",))
    assert "<script>" not in graph._repr_html_() and "<b>" not in graph._repr_html_()
