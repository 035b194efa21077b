"""Everything that a page says, measured once: the sections only write it down."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from relwalk.answers import Answer
from relwalk.compression.curve import Curve, curve
from relwalk.errors import GraphError, RelWalkError, RunError, UnknownName
from relwalk.evaluation.baselines import popularity, random_order
from relwalk.evaluation.classification import ClassificationResult, classify
from relwalk.evaluation.estimate import Absent, Floats, own_generator
from relwalk.evaluation.metrics import RankMetrics
from relwalk.evaluation.ranking import CandidateRule, rank
from relwalk.evaluation.result import RankingResult
from relwalk.graph.answers import SIDES
from relwalk.graph.graph import Graph
from relwalk.models.base import ProductScorer, Scorer
from relwalk.models.relwalk import RelWalk
from relwalk.prediction import predict
from relwalk.progress import each_once
from relwalk.runs.checkpoint import Epoch
from relwalk.runs.folder import HISTORY
from relwalk.runs.run import Run
from relwalk.theory.analyse import Analysis, analyse
from relwalk.theory.closed_loop import ClosedLoop
from relwalk.theory.concentration import NOT_RELWALK
from relwalk.theory.orthogonality import Orthogonality
from relwalk.theory.partition import log_partition
from relwalk.theory.sphere import uniform_directions
from relwalk.theory.theorem import NO_THEOREM, log_probs

Tell = Callable[[str], None]
SHOWN, QUESTIONS, PAIRS = 3, 6, 90  # relations drawn, sample questions, triples of each kind in the scatter
CURVE_TRIPLES = 500  # that the accuracy over K is measured on
NO_TEST = "graph {!r} has no test triples to judge the model by."


@dataclass(frozen=True)
class Figures:
    """One protocol: the model's ranks, and what stands beside them."""

    result: RankingResult
    random: RankMetrics
    popularity: RankMetrics | None


@dataclass(frozen=True)
class Question:
    """A test question, the model's best answers, and where the true one stood."""

    head: str | None
    relation: str
    tail: str | None
    truth: str
    truth_name: str
    answers: tuple[Answer, ...]
    rank: float
    candidates: int


@dataclass(frozen=True)
class Partition:
    """Z / mean over random directions, for one relation's head (Z_c) and tail (Z_c')."""

    relation: int
    head: Floats
    tail: Floats


@dataclass(frozen=True)
class Pairs:
    """log p(h, t | R) of triples: by Monte Carlo, and by the theorem."""

    truth: Floats
    theorem: Floats
    true: NDArray[np.bool_]
    titles: tuple[str, ...]


@dataclass(frozen=True)
class Loop:
    """A closed loop, and in words which model learned what."""

    found: ClosedLoop
    about: str


@dataclass(frozen=True)
class Facts:
    """What the sections read."""

    run: Run
    analysis: Analysis
    seed: int
    directions: int
    shown: tuple[int, ...]  # relations drawn in detail
    figures: dict[str, Figures] | Absent  # by candidate rule
    classification: ClassificationResult | Absent
    history: tuple[Epoch, ...] | Absent
    questions: tuple[Question, ...] | Absent
    partitions: tuple[Partition, ...] | Absent
    pairs: Pairs | Absent
    loop: Loop | Absent
    curve: Curve | Absent

    @property
    def graph(self) -> Graph:
        return self.run.graph

    @property
    def model(self) -> Scorer:
        return self.run.model


def gather(
    run: Run,
    loop: Loop | Absent,
    analysis: Analysis | None,
    relations: Sequence[int],
    directions: int,
    seed: int,
    tell: Tell,
) -> Facts:
    """Measure all but the closed loop, which is given."""
    graph, model = run.graph, run.model
    figures: dict[str, Figures] | Absent = Absent(NO_TEST.format(graph.name))
    if len(graph.test):
        figures = {rule: _figures(run, rule, tell) for rule in ("all", "argument")}
    tell("classifying true and false triples")
    classification = _classification(run, seed)
    if analysis is None:
        theory = each_once(lambda part: tell(f"theory: {part}"))
        analysis = analyse(run, directions=directions, seed=seed, progress=theory)
    shown = tuple(relations) or _telling_relations(graph, analysis)
    tell("accuracy over the number of components")
    over_components = _curve(run)
    tell("partition functions and theorem of " + ", ".join(graph.relations.label(r) for r in shown))
    return Facts(
        run=run,
        analysis=analysis,
        seed=seed,
        directions=directions,
        shown=shown,
        figures=figures,
        classification=classification,
        history=_history(run),
        questions=_questions(run, figures, seed),
        partitions=_partitions(model, shown, directions, seed),
        pairs=_pairs(run, shown, seed),
        loop=loop,
        curve=over_components,
    )


def _figures(run: Run, rule: CandidateRule, tell: Tell) -> Figures:
    tell(f"ranking test, candidates: {rule}")
    result = rank(run.model, run.graph, "test", candidates=rule)
    return Figures(result, random_order(result), popularity(run.graph, rule))


def _curve(run: Run) -> Curve | Absent:
    """On some of the test triples: there are thirty curves' points to rank them for."""
    by_relation = isinstance(run.model, ProductScorer) and run.model.keys_by_relation  # turns all entities for each
    try:
        return curve(run, triples=CURVE_TRIPLES // 5 if by_relation else CURVE_TRIPLES, progress=False)
    except RelWalkError as error:
        return Absent(str(error))


def _classification(run: Run, seed: int) -> ClassificationResult | Absent:
    try:
        return classify(run.model, run.graph, seed=seed)
    except GraphError as error:
        return Absent(str(error))


def _history(run: Run) -> tuple[Epoch, ...] | Absent:
    file = run.path / HISTORY if run.path is not None else None
    if file is None or not file.is_file():
        return Absent(f"the run keeps no {HISTORY}, so there is no learning curve to draw.")
    try:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        read = [(int(r["epoch"]), float(r["loss"]), float(r.get("seconds", 0)), r.get("metric")) for r in rows]
        epochs = tuple(
            Epoch(number, loss, seconds, None if metric is None else float(metric))
            for number, loss, seconds, metric in read
            if math.isfinite(loss)
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise RunError(f"{file} is not the history of a training ({error!r}). Restore it, or remove it.") from error
    return epochs if epochs else Absent(f"{HISTORY} holds no epoch yet.")


def _telling_relations(graph: Graph, analysis: Analysis) -> tuple[int, ...]:
    """The two most frequent relations, and the one that is least orthogonal (or the next most frequent)."""
    order = np.argsort(-np.bincount(graph.train[:, 1], minlength=len(graph.relations)), kind="stable").tolist()
    matrices = analysis.parts.get("orthogonality")
    if isinstance(matrices, Orthogonality):
        defect = [max(r.defect_r1 or 0, r.defect_r2 or 0, r.defect_m) for r in matrices.relations]
        order = [*order[: SHOWN - 1], int(np.argmax(defect)), *order[SHOWN - 1 :]]
    return tuple(dict.fromkeys(order))[:SHOWN]


def _questions(run: Run, figures: dict[str, Figures] | Absent, seed: int) -> tuple[Question, ...] | Absent:
    """Test questions of as many relations as there are, heads and tails in turn."""
    if isinstance(figures, Absent):
        return figures
    graph, result = run.graph, figures["all"].result
    order = np.random.default_rng(seed).permutation(len(result.triples))
    relation = result.triples[order, 1]
    turn = [int((relation[:i] == r).sum()) for i, r in enumerate(relation[:2000])]  # how many of its kind came before
    found = []
    for number, place in enumerate(order[np.argsort(turn, kind="stable")][:QUESTIONS].tolist()):
        h, r, t = result.triples[place].tolist()
        side = "tail" if number % 2 == 0 else "head"
        given, asked = (h, t) if side == "tail" else (t, h)
        name, about = graph.entities.names[given], graph.relations.names[r]
        answers = predict(run, relation=about, k=5, **{"head" if side == "tail" else "tail": name})
        ranks = result.ranks[side]  # type: ignore[index]
        found.append(
            Question(
                head=graph.entities.label(h) if side == "tail" else None,
                relation=graph.relations.label(r),
                tail=graph.entities.label(t) if side == "head" else None,
                truth=graph.entities.label(asked),
                truth_name=graph.entities.names[asked],
                answers=answers.answers,
                rank=float(ranks.by_rule("realistic")[place]),
                candidates=int(ranks.candidates[place]),
            )
        )
    return tuple(found)


@torch.no_grad()
def _partitions(model: Scorer, shown: tuple[int, ...], directions: int, seed: int) -> tuple[Partition, ...] | Absent:
    if not isinstance(model, RelWalk):
        return Absent(NOT_RELWALK.format(model.title))
    model = model.unfold()
    c = uniform_directions(directions, model.dim, own_generator(seed, "concentration"), model.blocks)
    entity = model.vectors().detach().cpu()

    def relative(R: torch.Tensor) -> Floats:
        log_z = log_partition(entity, c @ R.detach().cpu().T).numpy()
        z = np.exp(log_z - log_z.max())
        return np.asarray(z / z.mean())

    return tuple(Partition(r, *(relative(model.dense(side, r)) for side in SIDES)) for r in shown)


@torch.no_grad()
def _pairs(run: Run, shown: tuple[int, ...], seed: int) -> Pairs | Absent:
    """True triples of the shown relations and as many random pairs, each with both values of log p."""
    model, graph = run.model, run.graph
    if not isinstance(model, RelWalk):
        return Absent(NO_THEOREM.format(model.title))
    model = model.unfold()
    generator, rng = own_generator(seed, "scatter"), np.random.default_rng(seed)
    entity, label = model.vectors().detach().cpu(), graph.entities.label
    truth, theorem, kinds, titles = [], [], [], []
    for r in shown:
        own = graph.triples[graph.triples[:, 1] == r]
        if len(own) == 0:
            continue
        own = own[rng.permutation(len(own))[: max(1, PAIRS // len(shown))]].astype(np.int64)
        strange = rng.integers(0, len(entity), (len(own), 2))
        heads, tails = (np.concatenate([own[:, k], strange[:, k // 2]]) for k in (0, 2))
        ids = (torch.from_numpy(heads), torch.from_numpy(tails))
        R1, R2 = (model.dense(side, r).detach().cpu() for side in SIDES)
        draws: dict[str, Any] = {"blocks": model.blocks, "step": 0.01, "directions": 64, "draws": 32}
        found = log_probs(entity, R1, R2, *ids, bias=model.bias_of(r), generator=generator, **draws)
        truth.append(found.truth)
        theorem.append(found.theorem)
        kinds.append(np.arange(len(heads)) < len(own))
        name = graph.relations.label(r)
        titles += [f"{label(h)} · {name} · {label(t)}" for h, t in zip(heads.tolist(), tails.tolist(), strict=True)]
    if not truth:
        return Absent("no triple uses the chosen relations.")
    return Pairs(np.concatenate(truth), np.concatenate(theorem), np.concatenate(kinds), tuple(titles))


def relation_id(graph: Graph, name: str) -> int | None:
    """The id of a relation that an analysis names; None when it is of another graph."""
    try:
        return graph.relations.id(name)
    except UnknownName:
        return None
