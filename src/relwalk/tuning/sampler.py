"""Optuna decides what is tried next, from all that was tried (tree-structured Parzen estimators), and says afterwards
what mattered. It keeps nothing: every question is asked of a study made anew from the trials."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from relwalk.errors import RelWalkError
from relwalk.evaluation.tuning import Trial
from relwalk.space import Among, Search, rounded

AT_RANDOM = 8  # the first trials, the default recipe among them, before the estimators have anything to go by
CHANGED = 0.4  # share of the settings that those change
JUDGED = 8  # trials from which on it is said what mattered
QUANTILE = 0.25  # of the trials, whose settings are held against those of all


def find_optuna() -> Any:
    """Optuna, which comes with an extra."""
    try:
        import optuna
    except ImportError as error:
        raise RelWalkError(
            f"settings are searched by Optuna, which cannot be imported here ({error}). "
            "Install it: pip install 'relwalk[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def ask(space: Mapping[str, Search], usual: Mapping[str, Any], trials: Sequence[Trial], seed: int) -> dict[str, Any]:
    """What to try next. The same trials and the same seed give the same; it is another one for every trial.

    The first trials stay near the default recipe, and change some of its settings at random: far from it, most of what
    a whole box of settings holds is worse.
    """
    optuna = find_optuna()
    drawn_by = (seed * 1_000_003 + len(trials) + 1) % 2**32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(
            seed=drawn_by,
            n_startup_trials=AT_RANDOM,
            multivariate=True,
            group=True,
            constant_liar=True,  # keeps away from what other processes are at
        )
        study = _study(optuna, space, trials, sampler)
        params = study.ask(_distributions(optuna, space)).params
    drawn = {name: _decoded(search, params[name]) for name, search in space.items()}
    if sum(trial.status != "running" for trial in trials) >= AT_RANDOM:
        return drawn
    changed = _some(list(space), random.Random(drawn_by))
    return {name: value if name in changed else usual.get(name) for name, value in drawn.items()}


def _some(names: Sequence[str], chance: random.Random) -> set[str]:
    """Each with the same chance, and at least one."""
    return {name for name in names if chance.random() < CHANGED} or {chance.choice(list(names))}


def importance(space: Mapping[str, Search], trials: Sequence[Trial]) -> dict[str, float]:
    """How much each setting decides whether a trial is among the best (PED-ANOVA), as shares, the largest first.

    Empty where there are too few trials to say.
    """
    optuna = find_optuna()
    judged = [trial for trial in trials if trial.status != "running"]
    if len(judged) < JUDGED or not any(trial.valid_mrr for trial in judged):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = _study(optuna, space, judged, optuna.samplers.RandomSampler(seed=0), whole=True)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=QUANTILE)
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    found = {name: float(share) for name, share in found.items() if math.isfinite(share)}
    return found if sum(found.values()) > 0 else {}


def _study(
    optuna: Any, space: Mapping[str, Search], trials: Sequence[Trial], sampler: Any, *, whole: bool = False
) -> Any:
    """The trials as Optuna has them. With `whole`, those that were pruned count with the figure they had."""
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(optuna, space)
    for trial in trials:
        params = {
            name: _encoded(search, trial.tried[name])
            for name, search in space.items()
            if trial.tried.get(name) is not None  # the default recipe leaves some to the model
        }
        own = {name: distributions[name] for name in params}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=own, **_outcome(optuna, trial, whole)))
    return study


def _outcome(optuna: Any, trial: Trial, whole: bool) -> dict[str, Any]:
    """What came of a trial. A failed one counts as the worst, so that the next ones keep away from there."""
    states, value = optuna.trial.TrialState, trial.valid_mrr or 0.0
    if trial.status == "running":
        return {"state": states.RUNNING}
    if trial.status == "pruned" and not whole:
        share = trial.curve[-1].epoch / max(trial.epochs, 1) if trial.curve else 0.0
        return {"state": states.PRUNED, "intermediate_values": {round(100 * share): value}}
    return {"state": states.COMPLETE, "value": 0.0 if trial.status == "failed" else value}


def _distributions(optuna: Any, space: Mapping[str, Search]) -> dict[str, Any]:
    return {name: _distribution(optuna.distributions, search) for name, search in space.items()}


def _distribution(kinds: Any, search: Search) -> Any:
    if isinstance(search, Among):
        return kinds.CategoricalDistribution(search.choices)
    if search.scale == "powers":
        return kinds.IntDistribution(round(math.log2(search.low)), round(math.log2(search.high)))
    return kinds.FloatDistribution(search.low, search.high, log=search.scale == "log")


def _encoded(search: Search, value: Any) -> Any:
    near = search.nearest(value)
    powers = not isinstance(search, Among) and search.scale == "powers"
    return round(math.log2(near)) if powers else near


def _decoded(search: Search, value: Any) -> Any:
    if isinstance(search, Among):
        return value
    return 2**value if search.scale == "powers" else min(max(rounded(value), search.low), search.high)
