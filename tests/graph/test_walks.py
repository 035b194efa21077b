"""Walks against probabilities worked out by hand: chi-square tests with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from relwalk.errors import GraphError
from relwalk.graph import walks
from relwalk.graph.walks import END, BiasedWalker, Corpus, TripleWalker, UniformWalker, Walker
from tests.conftest import make_graph

A, B, C, D, E = range(5)
# a, b and c are a triangle and d hangs on c; two triples link a and b, one links b to itself, e is in none.
TRIANGLE = make_graph([(A, 0, B), (B, 1, A), (B, 0, B), (A, 0, C), (C, 1, B), (D, 0, C)])


def assert_frequencies(found: np.ndarray, expected: dict[int, float]) -> None:
    """The values occur as often as these weights say, and no other does."""
    values, weights = list(expected), np.array(list(expected.values()))
    counts = np.array([(found == value).sum() for value in values])
    assert counts.sum() == len(found) > 3000
    assert chisquare(counts, weights / weights.sum() * len(found)).pvalue > 1e-3


def draw(walker: Walker, start: int, length: int, seed: int = 0) -> np.ndarray:
    return walker.draw(np.full(30_000, start, np.int32), length, np.random.default_rng(seed))


def test_a_uniform_step_goes_to_each_neighbour_alike() -> None:
    walker = UniformWalker(TRIANGLE)
    assert walker.starts.tolist() == [A, B, C, D]
    found = draw(walker, C, 3)
    assert_frequencies(found[:, 1], {A: 1, B: 1, D: 1})
    assert_frequencies(found[found[:, 1] == A, 2], {B: 1, C: 1})  # two triples link a and b, once
    assert (found[found[:, 1] == D, 2] == C).all()


@pytest.mark.parametrize("tries", [0, 1, 8])
@pytest.mark.parametrize(("p", "q"), [(0.25, 4), (4, 0.25), (0.1, 0.5), (2, 3), (50, 100), (1, 1)])
def test_a_biased_step_weighs_the_way_back_and_the_way_out(
    monkeypatch: pytest.MonkeyPatch, p: float, q: float, tries: int
) -> None:
    monkeypatch.setattr(walks, "TRIES", tries)
    found = draw(BiasedWalker(TRIANGLE, p, q), A, 3)
    assert_frequencies(found[:, 1], {B: 1, C: 1})  # the first step has no way back yet
    assert_frequencies(found[found[:, 1] == C, 2], {A: 1 / p, B: 1, D: 1 / q})
    assert_frequencies(found[found[:, 1] == B, 2], {A: 1 / p, C: 1})


def test_blocks_change_no_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "BLOCK", 64)
    monkeypatch.setattr(walks, "TRIES", 0)
    found = draw(BiasedWalker(TRIANGLE, 0.5, 2), A, 3)
    assert_frequencies(found[found[:, 1] == C, 2], {A: 2, B: 1, D: 0.5})


def test_a_biased_walk_ends_also_where_hardly_anything_is_kept() -> None:
    line = make_graph([(i, 0, i + 1) for i in range(4)])
    found = BiasedWalker(line, 1e6, 1e6).draw(np.arange(5, dtype=np.int32), 50, np.random.default_rng(0))
    assert (np.abs(np.diff(found, axis=1)) == 1).all()


def test_a_walk_along_triples_names_relations_and_ends_at_a_sink() -> None:
    graph = make_graph([(A, 0, B), (A, 1, B), (A, 0, C), (B, 1, D)])
    likes, knows = 5, 6
    walker = TripleWalker(graph)
    assert walker.starts.tolist() == [A, B]
    found = draw(walker, A, 4)
    assert found.shape[1] == 7
    steps = found[:, 1] * 10 + found[:, 2]
    assert_frequencies(steps, {likes * 10 + B: 1, knows * 10 + B: 1, likes * 10 + C: 1})
    by_b = found[:, 2] == B
    assert (found[by_b, 3:] == [knows, D, END, END]).all()
    assert (found[~by_b, 3:] == END).all()


def test_a_walk_along_inverse_triples_has_tokens_of_their_own() -> None:
    graph = make_graph([(A, 0, B), (C, 1, B)])
    likes, likes_back, knows_back = 5, 7, 8
    found = draw(TripleWalker(graph, inverse=True), A, 3)
    assert (found[:, :3] == [A, likes, B]).all()
    assert_frequencies(found[:, 3] * 10 + found[:, 4], {likes_back * 10 + A: 1, knows_back * 10 + C: 1})


@pytest.mark.parametrize("block", [1, 64, 1 << 22])
def test_a_corpus_is_the_same_whenever_it_is_read(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(walks, "BLOCK", block)
    corpus = Corpus(TripleWalker(TRIANGLE), walks=3, length=4, seed=7)
    sentences = list(corpus)
    assert sentences == list(corpus) != list(Corpus(corpus.walker, 3, 4, seed=8))
    assert len(sentences) == corpus.sentences == 12
    assert sorted(sentence[0] for sentence in sentences) == sorted([A, B, C, D] * 3)
    assert all(END not in sentence and len(sentence) >= 3 for sentence in sentences)
    tokens = [token for sentence in sentences for token in sentence]
    assert corpus.counts(7).tolist() == [tokens.count(token) for token in range(7)]


def test_a_graph_of_loops_has_nothing_to_walk_along() -> None:
    with pytest.raises(GraphError, match="links no two different entities"):
        UniformWalker(make_graph([(A, 0, A)]))
