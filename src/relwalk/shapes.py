"""What a graph looks like, and how RelWalk is trained on one that looks so: no graph is known by its name.

The path of the decay was chosen on valid, one seed each, over a few cuts of the benchmarks and made-up graphs
(`tools/subgraphs.py`); dimension and dropout follow single probes and were hardly compared; for blocks see `NUMBERS`.
`make bench-recipes` holds the result against a search on graphs that it was not chosen on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relwalk.graph.graph import Graph
from relwalk.memory import FLOAT, available_memory
from relwalk.models.relwalk import RelWalk
from relwalk.training.candidates import ALL_UP_TO
from relwalk.training.common import CommonSettings

BATCH = 1024  # questions a step; a small graph has fewer, so that an epoch has some steps
LEAST_BATCH = 128
STEPS_AN_EPOCH = 8
STEPS = 4000  # of a training, about: a small graph has them in more epochs
EPOCHS = (12, 200)
LONG = 50  # epochs that can walk a wide path at constant rates, with dropout; fewer need rates that fall
TRIPLES = 260  # that a large graph shows of an entity in all epochs, about: a dense one has them in fewer
VALIDATIONS = 40
PATIENCE = VALIDATIONS // 3  # on a wide path: what a third of it has not improved, weaker decay does not either

DIMS = (256, 128)
EPOCH_WORK = 5e12  # operations of an epoch beyond which the smaller dim is taken: about a minute of two cores

# Where an epoch over all entities is too long for the largest dim and they have few triples, a step draws so many of
# them, and the time goes into more dimensions: 30 epochs of WN18RR with 512 took 36 s of one core each, 40 with 128 and
# all of them 87 s, at valid MRR .477 and .470 (of parts of valid that are not the same). On a dense graph, where rivals
# are many, it cost much: .310 in place of .340 (FB15k-237, 2,048 drawn).
DRAWN = 4096
DRAWN_DIMS = (512, 256, 128)
DRAWN_STEPS = 3000  # more dimensions learn in fewer: the best of those 30 epochs was the 25th, the 15th all but as good
COPIES = 6  # of the entities that training may hold in the memory there is

# Numbers of the relations' matrices for each triple, at most: with more of them, blocks. Chosen on valid, d = 256, seed
# 0, on three small public graphs: MRR by the width of a block, in brackets how many numbers that is for each triple.
#
#     width                  256           32           16            8            4            2
#     UMLS             .8995 (578)   .9111 (72)            -    .9210 (18)    .9268 (9)    .9252 (5)
#     UMLS, seed 1               -            -            -    .9210 (18)    .9201 (9)            -
#     Kinships                   -            -   .8511 (12)            -    .8552 (3)    .8290 (2)
#     Nations                    -            -            -    .6346 (71)   .6904 (35)   .7524 (18)
NUMBERS = 20
NARROWEST = 2  # coordinates of a block: planes that are turned or mirrored

# Hidden dimensions, equal lengths, a bias and DURA were chosen on valid, seed 0: MRR of the recipe without hidden
# dimensions and with all of it, default otherwise; in brackets triples an entity. F is `tools/subgraphs.py fb15k-237
# --entities 2000`, W `tools/subgraphs.py wn18rr --entities 3000 --how snowball`, the cut that of BIASED, and the last
# two are of `tools/subgraphs.py terms --entities 100 --seed 1` and `types --entities 150 --seed 1`.
#
#     Nations (114)    .7913  .8196        the cut (14)      .2492  .2567
#     Kinships (82)    .8563  .8531        world (3)         .6277  .6416
#     UMLS (39)        .9210  .9298        W (1)             .4492  .4608
#     F (28)           .4406  .4579        terms (64)        .7252  .7251
#                                          types (23)        .8953  .8961
#
# Kinships and terms with a path that began with .1, as all had at first; where there are few entities it begins with
# less since (Nations, UMLS and types had .7958, .9355 and .8938 before). Test was looked at then: it was higher with
# hidden dimensions on all of these, by .003 to .032, F aside, which was not finished.
#
# Equal lengths are what counts (F, 14 epochs, d = 256, DURA .1 to .01: .4101 without them, .4454 with), and so is the
# rate where epochs are few (F, 12 epochs, d = 64: .4174 at 1, .4365 at 2, .4331 at 3; without hidden dimensions .3912
# at 1, .3947 at 2). On a graph drawn from the paper's own model, where long vectors are likely ones, they cost (.1398
# without, .1215 with).
MANY = 2000  # entities from which a path begins in full: of 20, in 200 triples each, vectors fell to zero by .1
SHORT_RATE = 2.0  # of the model's own rate, where few epochs with falling rates have to do
BEGINS = (0.1, 0.2)  # the decay that a path begins with, at least and at most
ENDS = (0.003, 0.12)  # the same where it ends
FEW = 5.0  # triples an entity, about, up to which a path stays strong
DROPOUT = 0.2
DENSE = 8.0  # triples an entity from which dropout serves, in a long training: it learns more slowly

# Without hidden dimensions relations have a bias from so many triples an entity, and where steps draw entities: on a
# small sparse graph it brought nothing. Valid MRR of the recipe before it had hidden dimensions, without and with a
# bias, of seed 0 (and 1); in brackets triples an entity; the cut is
# `tools/subgraphs.py fb15k-237 --entities 3500 --share 0.5 --seed 5`.
#
#     Nations (114)                          .7524, .7274     .7845, .7871
#     Kinships (82)                          .8511            .8538
#     UMLS (39)                              .9210            .9211
#     FB15k-237 (19)                         .3404            .3430
#     the cut (14), 20 epochs                .2370            .2374
#     world (3)                              .6279, .6324     .6284, .6271
#     WN18RR (2), 4,096 drawn, 30 epochs     .4725            .4753
BIASED = DENSE


@dataclass(frozen=True)
class Shape:
    """What of a graph a recipe goes by."""

    entities: int
    relations: int
    triples: int  # of train
    questions: int  # distinct (h, R, ?) and (?, R, t) of train
    selects: bool = True  # there are valid triples, to tell the best epoch by

    @classmethod
    def from_graph(cls, graph: Graph) -> Shape:
        questions = sum(len(known.keys) for known in graph.known_in_train.values())
        return cls(len(graph.entities), len(graph.relations), len(graph.train), questions, len(graph.valid) > 0)

    @property
    def density(self) -> float:
        """Triples an entity."""
        return self.triples / self.entities


def by_shape(shape: Shape, dim: int | None = None, hidden: bool = True) -> dict[str, Any]:
    """The settings and options of RelWalk for a graph of that shape; `dim` is that one, where one is given.

    Relations have hidden dimensions and entities equal lengths, for which DURA is the regularizer that serves; where
    these are not wanted (`hidden`) it is l2. It falls from strong to weak, and the best epoch on valid says where it
    serves. A small graph has epochs enough for a wide path at constant rates, until nothing gets better. The few of a
    large one walk a narrow path to its end, where graphs of such a density were best, with rates that fall by a cosine
    from high ones; of a sparse one steps draw entities, for more dimensions in less time. Relations with more numbers
    in their matrices than the triples can tell get blocks.
    """
    drawn = choose_drawn(shape, dim)
    d = dim if dim is not None else choose_dim(shape, drawn)
    batch = choose_batch(shape)
    epochs = choose_epochs(shape, batch, DRAWN_STEPS if drawn else STEPS)
    long = epochs >= LONG and shape.selects  # where nothing tells the best, the end has to be good
    begin, end = choose_decay(shape, wide=long, hidden=hidden)
    blocks = choose_blocks(shape, d)
    biased = hidden or drawn or shape.density >= BIASED
    return {
        "dim": d,
        **({"candidates_per_step": drawn} if drawn else {}),
        **({"blocks": blocks} if blocks > 1 else {}),
        **({"hidden": True, "equal_lengths": True} if hidden else {}),
        **({"relation_bias": True} if biased else {}),
        **({"l2": 0.0, "dura": begin} if hidden else {"l2": begin}),
        "decay_end": round(end / begin, 4),
        "entity_dropout": DROPOUT if shape.density >= DENSE and long else 0.0,
        "schedule": "constant" if long else "cosine",
        **({"lr": SHORT_RATE * RelWalk.lr} if hidden and not long else {}),
        "epochs": epochs,
        "batch_size": batch,
        "validate_every": often(epochs),
        **({"patience": PATIENCE} if long else {}),
    }


LONG_DIMS = (512, 384, 256, 128)
LONG_WORK = 9e14  # operations of a long training: about three hours of two cores, as fast as EPOCH_WORK has it
LONG_EPOCHS = (40, 200)


def for_long(shape: Shape, dim: int | None = None, hidden: bool = True) -> dict[str, Any]:
    """The settings and options of RelWalk for a training of hours: what `by_shape` gives with more dimensions, and as
    many epochs as the time allows, with rates that fall. Settings that a search finds better are written here."""
    d = dim if dim is not None else choose_long_dim(shape)
    usual = by_shape(shape, d, hidden)
    usual.pop("patience", None)  # rates fall to the end
    work = _epoch_work(shape, d, usual.get("candidates_per_step", 0))
    epochs = max(usual["epochs"], round(_between(*LONG_EPOCHS, LONG_WORK / work)))
    dropout = DROPOUT if shape.density >= DENSE else 0.0
    return {
        **usual,
        "schedule": "cosine",
        "entity_dropout": dropout,
        "epochs": epochs,
        "validate_every": often(epochs),
    }


def choose_long_dim(shape: Shape) -> int:
    """The largest dimension with which the fewest epochs fit into the time."""
    return _largest_dim(shape, LONG_DIMS, LONG_WORK / LONG_EPOCHS[0])


def often(epochs: int) -> int:
    """Epochs between two validations: the best of a path is to be met."""
    return max(1, epochs // VALIDATIONS)


def explain(shape: Shape, dim: int, options: Mapping[str, Any], settings: CommonSettings) -> str:
    """What was chosen, by the graph's shape or by hand, in a line."""
    blocks = options.get("blocks", 1)
    parts = f" in {blocks} blocks" if blocks > 1 else ""
    bias = ", a bias of each relation" if options.get("relation_bias") else ""
    hidden = ", hidden dimensions" if options.get("hidden") else ""
    name, weight = max(((name, getattr(settings, name)) for name in ("dura", "l2", "n3")), key=lambda pair: pair[1] > 0)
    falls = f" falling to {weight * settings.decay_end:.2g}" if settings.decay_end != 1 else ""
    dropout = f", entity dropout {settings.entity_dropout:g}" if settings.entity_dropout else ""
    length = f"{settings.epochs:,} epochs" if settings.budget is None else f"{settings.seconds:g} s"
    return (
        f"recipe: {shape.density:.2g} triples an entity and {shape.relations:,} relations: dim {dim}{parts}{hidden}"
        f"{bias}, {name} {weight:.2g}{falls}{dropout}, {length}, "
        f"the best on valid kept (--dim, --{name}, ... choose otherwise)"
    )


def choose_decay(shape: Shape, *, wide: bool, hidden: bool) -> tuple[float, float]:
    """Where the path of the decay begins and ends: weaker, the more triples an entity has. A wide one goes on to a
    third. By DURA, which counts an entity up to twice, vectors would not leave zero where there are few epochs, or few
    entities to tell apart: a narrow path begins with half, and one of few entities with less.
    """
    many = shape.density / FEW
    half = 2 if hidden and not wide else 1
    weaker = min(1.0, math.log(max(2, shape.entities)) / math.log(MANY)) if hidden else 1.0
    end = min(ENDS[1] / half, 0.1 / many**1.5) / (3 if wide else 1)
    begin = round(_between(*BEGINS, 0.3 / many) / half * weaker, 3)
    return begin, min(begin, max(ENDS[0], end))


def choose_drawn(shape: Shape, dim: int | None = None) -> int:
    """How many entities a step draws; 0: as many as are usual, all of them unless there are very many."""
    long = _epoch_work(shape, DIMS[0] if dim is None else dim) > EPOCH_WORK
    return DRAWN if long and shape.density < FEW and 2 * DRAWN < shape.entities <= ALL_UP_TO else 0


def choose_dim(shape: Shape, drawn: int = 0) -> int:
    """The largest dimension whose epochs are not too long."""
    return _largest_dim(shape, DRAWN_DIMS if drawn else DIMS, EPOCH_WORK, drawn)


def _largest_dim(shape: Shape, dims: Sequence[int], work: float, drawn: int = 0) -> int:
    """The largest whose epochs take no more operations than that, and whose entities fit into memory with what training
    holds beside them; else the last."""
    room = available_memory()
    for dim in dims:
        fits = room is None or COPIES * FLOAT * shape.entities * dim <= room
        if fits and _epoch_work(shape, dim, drawn) <= work:
            return dim
    return dims[-1]


def _epoch_work(shape: Shape, dim: int, drawn: int = 0) -> float:
    """Operations of an epoch over all entities, or over so many drawn ones in each step."""
    return 6.0 * shape.questions * (drawn or shape.entities) * dim


def choose_batch(shape: Shape) -> int:
    """A power of two that makes some steps of an epoch."""
    return min(BATCH, max(LEAST_BATCH, _power_of_two(shape.questions / STEPS_AN_EPOCH)))


def choose_epochs(shape: Shape, batch: int, steps: int = STEPS) -> int:
    """As many as make so many steps: a small graph has them for nothing. Of a large one a pass takes long, and the more
    triples an entity has, the more a pass teaches of it."""
    epochs = _between(*EPOCHS, steps * batch / shape.questions)
    return round(epochs if epochs >= LONG else _between(EPOCHS[0], epochs, TRIPLES / shape.density))


def choose_blocks(shape: Shape, dim: int) -> int:
    """As few equal blocks as keep the numbers of all relations' matrices within what the triples can tell."""
    width = max(NARROWEST, NUMBERS * shape.triples / (shape.relations * dim))
    widths = [w for w in range(2, dim + 1) if dim % w == 0 and w <= width]
    return dim // max(widths, default=dim)


def _between(least: float, most: float, number: float) -> float:
    return min(most, max(least, number))


def _power_of_two(number: float) -> int:
    return 1 << max(0, math.floor(math.log2(max(1.0, number))))
