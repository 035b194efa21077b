"""Entity vectors from random walks: DeepWalk, node2vec and RDF2vec.

Walks over the training triples are read as the sentences of a text, entities as its words, and word2vec (gensim's, the
extra `relwalk[walks]`) learns a vector for each: entities that are met together have vectors that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relwalk.checks import DIM, check_number, check_seed, check_whole
from relwalk.display import Shown
from relwalk.errors import RelWalkError, choose
from relwalk.graph.graph import Graph
from relwalk.graph.read import read_graph
from relwalk.graph.walks import BiasedWalker, Corpus, TripleWalker, UniformWalker, Walker
from relwalk.memory import FLOAT, refuse_beyond_memory
from relwalk.progress import OnProgress, Progress, shown

LONGEST = 5000  # entities on a walk: gensim cuts a sentence after 10,000 tokens
BIAS = (1e-6, 1e6)  # of p and q
TELL = 1000  # walks between two reports of progress


@dataclass(frozen=True)
class Method:
    """A way to walk, and what word2vec is told. Skip-gram predicts by a tree of all tokens (hierarchical softmax), or
    against some drawn at random."""

    paper: str
    walker: Callable[..., Walker]  # of a graph and the method's own options
    walks: int  # from each entity
    length: int  # entities on a walk, its start among them
    window: int  # tokens to each side
    negatives: int  # 0: hierarchical softmax
    options: tuple[str, ...] = ()


# Walks, length and window of our own, for a few seconds on a small graph: not the papers' settings.
METHODS: dict[str, Method] = {
    "deepwalk": Method("Perozzi, Al-Rfou, Skiena: KDD 2014", UniformWalker, 10, 40, 5, 0),
    "node2vec": Method("Grover, Leskovec: KDD 2016", BiasedWalker, 10, 40, 5, 5, ("p", "q")),
    "rdf2vec": Method("Ristoski, Paulheim: ISWC 2016", TripleWalker, 200, 5, 5, 5, ("inverse",)),
}


@dataclass(frozen=True, eq=False, repr=False)
class WalkVectors(Shown):
    """A vector for every entity of a graph; zeros for one that no walk met."""

    graph: Graph
    vectors: NDArray[np.float32]  # (entities, dim)
    method: str
    settings: dict[str, Any]  # walks, length, window, epochs, seed, and the method's own

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def unmet(self) -> int:
        """How many entities no walk met."""
        return int((~self.vectors.any(1)).sum())

    def as_dict(self) -> dict[str, Any]:
        about = {"graph": self.graph.name, "entities": len(self.vectors), "unmet": self.unmet}
        return {**about, "method": self.method, "dim": self.dim, **self.settings}

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        unmet = f"; zeros for {self.unmet:,} that no walk met" if self.unmet else ""
        return f"{self.method} of {self.graph.name}: {len(self.vectors):,} entities, dim {self.dim}, {settings}{unmet}"


def walk_vectors(
    graph: Graph | Any,
    method: str = "deepwalk",
    *,
    dim: int = 128,
    walks: int | None = None,
    length: int | None = None,
    window: int | None = None,
    epochs: int = 1,
    p: float | None = None,
    q: float | None = None,
    inverse: bool | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> WalkVectors:
    """Vectors of a graph's entities, by a method of METHODS: `deepwalk`, `node2vec` or `rdf2vec`.

    `walks` start at each entity, over `length` entities each; tokens up to `window` apart are learned together, in
    `epochs` passes over all walks. What is not given is the method's. node2vec alone has `p` and `q` (1 each): a higher
    p goes back less, a higher q stays nearer. RDF2vec alone has `inverse`: walk triples backwards too. Only triples of
    train are walked. The same seed gives the same vectors, on one core.
    """
    chosen = choose("method", method, METHODS)
    check_whole("dim", dim, most=DIM)
    settings = {
        "walks": check_whole("walks", chosen.walks if walks is None else walks),
        "length": check_whole("length", chosen.length if length is None else length, 2, LONGEST),
        "window": check_whole("window", chosen.window if window is None else window, most=2 * LONGEST),
        "epochs": check_whole("epochs", epochs),
        "seed": check_seed(seed),
    }
    own = _own_options(method, chosen, {"p": p, "q": q, "inverse": inverse})
    Word2Vec = _engine()
    graph = graph if isinstance(graph, Graph) else read_graph(graph)
    tokens = len(graph.entities) + (2 * len(graph.relations) if method == "rdf2vec" else 0)
    refuse_beyond_memory(3 * FLOAT * tokens * dim, f"{tokens:,} vectors of {dim:,} numbers", "Take a smaller --dim.")
    corpus = Corpus(chosen.walker(graph, **own), settings["walks"], settings["length"], seed)
    with shown(progress) as report:
        model = Word2Vec(
            vector_size=dim,
            window=settings["window"],
            min_count=1,
            sample=0,  # every meeting counts, also with an entity that is met often
            sg=1,
            hs=int(chosen.negatives == 0),
            negative=chosen.negatives,
            workers=1,  # more threads would move the same vectors in an order of their own
            seed=int(np.random.SeedSequence([seed, dim]).generate_state(1)[0]),
        )
        report(0, 1, "walking")
        counts = corpus.counts(tokens)
        model.build_vocab_from_freq({token: int(counts[token]) for token in np.flatnonzero(counts).tolist()})
        model.train(
            _Told(corpus, epochs, report), total_examples=corpus.sentences, total_words=int(counts.sum()), epochs=epochs
        )
    vectors = np.zeros((tokens, dim), np.float32)
    vectors[model.wv.index_to_key] = model.wv.vectors
    return WalkVectors(graph, vectors[: len(graph.entities)], method, {**settings, **own})


def _own_options(method: str, chosen: Method, given: dict[str, Any]) -> dict[str, Any]:
    """The options that the method alone has, each checked; one of another method is refused."""
    for name, value in given.items():
        if value is not None and name not in chosen.options:
            others = " or ".join(other for other, m in METHODS.items() if name in m.options)
            raise RelWalkError(f"{name} means nothing to {method}. Say --method {others}, or leave it out.")
    own: dict[str, Any] = {}
    for name in chosen.options:
        if name == "inverse":
            own[name] = bool(given[name])
        else:
            own[name] = check_number(name, 1.0 if given[name] is None else given[name], *BIAS)
    return own


def _engine() -> Any:
    """word2vec, which comes with an extra."""
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise RelWalkError(
            f"vectors from walks are learned by gensim, which cannot be imported here ({error}). "
            "Install it: pip install 'relwalk[walks]'"
        ) from error
    return Word2Vec


class _Told:
    """A corpus that tells how far it has been read, in all epochs together."""

    def __init__(self, corpus: Corpus, epochs: int, report: OnProgress) -> None:
        self.corpus, self.report = corpus, report
        self.done, self.total = 0, epochs * corpus.sentences

    def __iter__(self) -> Iterator[list[int]]:
        for walk in self.corpus:
            yield walk
            self.done += 1
            if self.done % TELL == 0:
                self.report(self.done, self.total, "learning from walks")
