"""The embedded graph is true, readable and fairly split."""

from __future__ import annotations

import re
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from relwalk.graph.datasets import DATASETS, locate

Triple = tuple[str, str, str]
PARTS = ("train", "valid", "test")
SYMMETRIC = ("borders", "near")


@pytest.fixture(scope="module")
def world() -> dict[str, list[Triple]]:
    return {part: read(locate("world") / f"{part}.tsv") for part in PARTS}


@pytest.fixture(scope="module")
def facts(world: dict[str, list[Triple]]) -> set[Triple]:
    return {fact for part in PARTS for fact in world[part]}


def read(path: Path) -> list[Triple]:
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]  # type: ignore[misc]


def names(triples: list[Triple] | set[Triple]) -> set[str]:
    return {name for head, _, tail in triples for name in (head, tail)}


def test_is_package_data_with_its_attribution() -> None:
    folder = resources.files("relwalk.graph") / "world"
    assert Path(str(folder)) == locate("world")
    assert "CC BY 4.0" in (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert sum(file.stat().st_size for file in locate("world").iterdir()) < 700_000


def test_counts_are_those_promised(world: dict[str, list[Triple]], facts: set[Triple]) -> None:
    promised = DATASETS["world"]
    assert [len(world[part]) for part in PARTS] == [promised.train, promised.valid, promised.test]
    assert len(names(facts)) == promised.entities
    assert len({relation for _, relation, _ in facts}) == promised.relations
    assert 5_000 <= len(facts) <= 20_000


def test_every_line_has_three_clean_names(world: dict[str, list[Triple]]) -> None:
    for part in PARTS:
        for fact in world[part]:
            assert len(fact) == 3
            assert all(name and name == name.strip() and name.isprintable() for name in fact)


def test_no_triple_occurs_twice_and_the_parts_are_disjoint(world: dict[str, list[Triple]], facts: set[Triple]) -> None:
    assert len(facts) == sum(len(world[part]) for part in PARTS)


def test_train_knows_every_held_out_name(world: dict[str, list[Triple]]) -> None:
    for part in ("valid", "test"):
        assert names(world[part]) <= names(world["train"])
        assert {fact[1] for fact in world[part]} == {fact[1] for fact in world["train"]}


def test_names_are_unique_even_without_case(facts: set[Triple]) -> None:
    assert max(Counter(name.casefold() for name in names(facts)).values()) == 1


def test_names_are_names_and_not_codes(facts: set[Triple]) -> None:
    assert not [name for name in names(facts) if re.fullmatch(r"[A-Z]{2,3}|[a-z]{2,3}|\d+", name)]


def test_every_entity_has_one_kind(facts: set[Triple]) -> None:
    """A city, a currency, a language ... never share a name."""
    kinds = {
        "city": {h for h, r, _ in facts if r == "city_in"},
        "country": {h for h, r, _ in facts if r == "on_continent"},
        **{r: {t for _, s, t in facts if s == r} for r in ("on_continent", "uses_currency", "speaks")},
        "zone": {t for _, r, t in facts if r in ("in_time_zone", "has_time_zone")},
        "calling zone": {t for _, r, t in facts if r == "calling_zone"},
    }
    assert sum(len(kind) for kind in kinds.values()) == len(names(facts))


def test_symmetric_relations_are_complete_and_split_in_pairs(world: dict[str, list[Triple]]) -> None:
    for part in PARTS:
        pairs = {fact for fact in world[part] if fact[1] in SYMMETRIC}
        assert pairs == {(tail, relation, head) for head, relation, tail in pairs}
        assert all(head != tail for head, _, tail in pairs)


def test_a_held_out_fact_can_be_guessed(world: dict[str, list[Triple]]) -> None:
    """Its entities keep two facts in train, and a held-out answer is the answer to something else there."""
    train = world["train"]
    degree = Counter(name for head, _, tail in train for name in (head, tail))
    answers = Counter((relation, tail) for _, relation, tail in train)
    known = set(train)
    for head, relation, tail in world["valid"] + world["test"]:
        assert degree[head] >= 2 and degree[tail] >= 2
        if relation == "capital_of":
            assert (head, "city_in", tail) in known
        elif relation not in (*SYMMETRIC, "has_time_zone"):
            assert answers[relation, tail] >= 2


def test_a_country_has_one_capital_and_a_city_one_country(facts: set[Triple]) -> None:
    for relation, column in (("capital_of", 2), ("capital_of", 0), ("city_in", 0), ("on_continent", 0)):
        assert max(Counter(fact[column] for fact in facts if fact[1] == relation).values()) == 1


@pytest.mark.parametrize(
    "fact",
    [
        ("Paris", "capital_of", "France"),
        ("Mexico City", "capital_of", "Mexico"),
        ("Singapore (city)", "capital_of", "Singapore"),
        ("Astana", "capital_of", "Kazakhstan"),
        ("France", "borders", "Germany"),
        ("Germany", "borders", "France"),
        ("France", "uses_currency", "Euro"),
        ("Japan", "uses_currency", "Yen"),
        ("Ecuador", "uses_currency", "US Dollar"),
        ("France", "speaks", "French"),
        ("Brazil", "speaks", "Portuguese"),
        ("Switzerland", "speaks", "Romansh"),
        ("Kenya", "on_continent", "Africa"),
        ("Marseille", "city_in", "France"),
        ("Marseille", "in_time_zone", "Europe/Paris"),
        ("France", "has_time_zone", "Europe/Paris"),
        ("Canada", "calling_zone", "Calling zone +1"),
        ("Vienna", "near", "Bratislava"),
    ],
)
def test_well_known_facts(fact: Triple, facts: set[Triple]) -> None:
    assert fact in facts


@pytest.mark.parametrize(
    "fact",
    [
        ("Albania", "borders", "Serbia"),
        ("Cuba", "borders", "United States"),
        ("Brazil", "speaks", "French"),
        ("Bulgaria", "uses_currency", "Bulgarian Lev"),
    ],
)
def test_what_the_source_says_and_is_not_so(fact: Triple, facts: set[Triple]) -> None:
    assert fact not in facts
