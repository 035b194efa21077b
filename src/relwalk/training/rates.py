"""The learning rate of a training that was given none."""

from __future__ import annotations

import math

from relwalk.training.all_entities import AllEntitiesSettings
from relwalk.training.common import CommonSettings, ObjectiveSettings

SAMPLED_BATCH = 1024  # questions a step up to which a model's own rate serves sampled sums as well


def usual_rate(own: float, settings: CommonSettings, objective: ObjectiveSettings) -> float:
    """The rate of the entities when none is given, from the model's own for Adagrad.

    A model's rate measures its vectors. Adam's steps are as long as Adagrad's first ones, so its rate goes with that;
    a gradient grows as vectors shrink, so the rate of SGD goes with its square. The factors are from `world`
    (likelihood, d = 32, 10 epochs, one seed, valid MRR). Adam .3: RelWalk .56 (at .1 .49), the others .29 to .57 (at .1
    .10 to .48). SGD .3: none diverged, as RelWalk and TransE did at 1; it is slow, RelWalk .05, and DistMult, ComplEx
    and RESCAL had not begun to learn.

    A larger batch takes fewer steps, each as long; with sums over all entities that serves (FB15k-237, d = 64, batches
    of 4096, valid MRR after 2 epochs: .248 at rate 1, .231 at .5), with sampled ones it overshoots (.136 and .169).
    """
    lr = {"adam": 0.3 * own, "sgd": 0.3 * own**2}.get(settings.optimizer, own)
    sampled = isinstance(objective, AllEntitiesSettings) and objective.candidates_per_step
    if not sampled or settings.batch_size is None:
        return lr
    return lr * min(1.0, math.sqrt(SAMPLED_BATCH / settings.batch_size))
