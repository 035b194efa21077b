"""Names in, names out: the most probable tails, heads or relations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relwalk.errors import RelWalkError
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.run import Run


@dataclass(frozen=True)
class Answer:
    """One candidate: its score, its conditional probability, and whether the graph already says so."""

    name: str
    label: str
    score: float
    probability: float
    known: bool


@dataclass(frozen=True)
class Answers:
    """The best answers to one question, best first; prints itself."""

    head: str | None
    relation: str | None
    tail: str | None
    answers: tuple[Answer, ...]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"answers": [asdict(answer) for answer in self.answers]}

    def __str__(self) -> str:
        question = " ".join(f"{part}" if part is not None else "?" for part in (self.head, self.relation, self.tail))
        width = max([12, *(len(answer.label) for answer in self.answers)])
        rows = [
            f"  {answer.label:{width}}  {answer.probability:7.2%}  {answer.score:9.2f}"
            f"  {'known' if answer.known else 'new'}"
            for answer in self.answers
        ]
        return "\n".join([f"{question}\n  {'answer':{width}}  {'p':>7}  {'score':>9}", *rows])


def predict(
    run: Run,
    *,
    head: str | None = None,
    relation: str | None = None,
    tail: str | None = None,
    k: int = 10,
    only_new: bool = False,
) -> Answers:
    """The k most probable answers to (head, relation, ?), (?, relation, tail) or (head, ?, tail).

    Probabilities are p(t | h, R), p(h | R, t) or p(R | h, t). An entity is not offered as the answer to a question
    about itself, and takes no share of the probability, unless the graph shows the relation linking some entity to
    itself. `only_new` leaves out what the graph already says.
    """
    if k < 1:
        raise RelWalkError(f"k is {k}; expected at least 1")
    if [head, relation, tail].count(None) != 1:
        raise RelWalkError("give two of head, relation and tail: the third is predicted")
    graph = run.graph
    h, t = (graph.entities.id(name) if name is not None else None for name in (head, tail))
    r = graph.relations.id(relation) if relation is not None else None
    scores, known = _ask(run, h, r, t)
    allowed = torch.isfinite(scores)
    log_prob = torch.log_softmax(run.model.scale * scores.double(), 0)
    if only_new:
        allowed &= ~known
    best = torch.topk(torch.where(allowed, scores, -torch.inf), min(k, int(allowed.sum()))).indices
    names = graph.relations if r is None else graph.entities
    return Answers(
        head=graph.entities.label(h) if h is not None else None,
        relation=graph.relations.label(r) if r is not None else None,
        tail=graph.entities.label(t) if t is not None else None,
        answers=tuple(
            Answer(names.names[i], names.label(i), float(scores[i]), float(log_prob[i].exp()), bool(known[i]))
            for i in best.tolist()
        ),
    )


@torch.inference_mode()
def _ask(run: Run, h: int | None, r: int | None, t: int | None) -> tuple[Tensor, Tensor]:
    """The score of every candidate (-inf for one that cannot be the answer), and which are known."""
    graph, model = run.graph, run.model
    device = next(model.parameters()).device
    if r is None:
        assert h is not None and t is not None
        scores = model.score_relations(_one(h, device), _one(t, device))[0]
        linked = (graph.triples[:, 0] == h) & (graph.triples[:, 2] == t)
        return scores.cpu(), _mask(graph.triples[linked, 1], len(graph.relations))
    if t is None:
        assert h is not None
        given, side = h, "tail"
        scores = model.score_tails(_one(h, device), _one(r, device))[0]
    else:
        given, side = t, "head"
        scores = model.score_heads(_one(r, device), _one(t, device))[0]
    scores = scores.cpu().clone()
    if not _links_to_itself(graph, r):
        scores[given] = -torch.inf
    return scores, _known(graph, side, given, r)  # type: ignore[arg-type]


def _known(graph: Graph, side: Side, given: int, relation: int) -> Tensor:
    lists = graph.known[side].to(np.array([given]), np.array([relation]))
    return _mask(lists.values, len(graph.entities))


def _links_to_itself(graph: Graph, relation: int) -> bool:
    own = graph.triples[graph.triples[:, 1] == relation]
    return bool((own[:, 0] == own[:, 2]).any())


def _mask(ids: np.ndarray[Any, np.dtype[np.int32]], size: int) -> Tensor:
    mask = torch.zeros(size, dtype=torch.bool)
    mask[torch.from_numpy(ids.astype(np.int64))] = True
    return mask


def _one(index: int, device: torch.device) -> Tensor:
    return torch.tensor([index], device=device)
