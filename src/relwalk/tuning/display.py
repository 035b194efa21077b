"""What is shown of a search under way: each trial that ended, and how far it is, with the best so far."""

from __future__ import annotations

import time
from collections.abc import Sequence

from relwalk.evaluation.tuning import Trial, best_of, cells, tried_words
from relwalk.progress import MINUTE, Line, Screen, clock_time, duration
from relwalk.tuning.folder import Study

OFTEN = 0.5  # seconds between two looks


class TuningDisplay:
    """Tells of trials on a screen; those that were there before are not told again."""

    def __init__(self, screen: Screen, study: Study, budget: float) -> None:
        self.screen, self.budget = screen, budget
        self.told: set[int] | None = None
        self.last = float("-inf")
        screen.say(f"searching {', '.join(study.space)} of {study.model}, {duration(budget)} in all")
        for name, reason in study.left_out.items():
            screen.say(f"  {name} is not searched: {reason}")

    def due(self) -> bool:
        """Whether it is time for another look at the trials: each is read from its file."""
        return time.monotonic() >= self.last + OFTEN

    def show(self, trials: Sequence[Trial], spent: float) -> None:
        self.last = time.monotonic()
        if self.told is None:
            self.told = {t.number for t in trials if t.status != "running"}
            if self.told:
                self.screen.say(f"{len(self.told)} trials are there already, after {duration(spent)}")
        best = best_of(trials)
        for trial in trials:
            if trial.status != "running" and trial.number not in self.told:
                self.told.add(trial.number)
                self.screen.say(_told(trial, trials))
        left = max(0.0, self.budget - spent)
        running = [t for t in trials if t.status == "running"]
        others = (_standing(best), *(_running(t) for t in running))
        line = Line(f"{len(trials)} trials", others, f"ETA {clock_time(left)}", min(1.0, spent / self.budget))
        self.screen.show(line, MINUTE)


def _told(trial: Trial, trials: Sequence[Trial]) -> str:
    _, mrr, epochs, took, _ = cells(trial)
    what = tried_words(trial, trials)
    what = f"the default recipe: {what}" if trial.number == 1 else what
    if trial.status == "failed":
        return f"trial {trial.number} failed: {trial.reason}  [{what}]"
    ended = f", pruned: {trial.reason}" if trial.status == "pruned" else ""
    standing = _standing(best_of(trials))
    return f"trial {trial.number}: valid MRR {mrr or '-'} ({standing})  {epochs} epochs, {took}{ended}  [{what}]"


def _standing(best: Trial | None) -> str:
    return f"best {best.valid_mrr:.4f}, trial {best.number}" if best is not None else "no best yet"


def _running(trial: Trial) -> str:
    done = trial.curve[-1].epoch if trial.curve else 0
    mrr = f" {trial.valid_mrr:.4f}" if trial.valid_mrr is not None else ""
    return f"trial {trial.number}: {done}/{trial.epochs or '?'} epochs{mrr}"
