"""A trial whose learning curve is poor is ended early, and its time goes to others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from relwalk.evaluation.comparison import Moment
from relwalk.evaluation.tuning import Trial

WARM = 0.2  # share of its epochs before which a trial is not judged
LEAST = 3  # finished trials that it takes to judge by


def verdict(trial: Trial, curve: Sequence[Moment], others: Sequence[Trial]) -> str:
    """Why a trial should end here; nothing while it is as good as half of the finished ones were at this point.

    A point is a share of a trial's epochs, at which its best figure so far counts. Rates that fall late win late, so
    trials are held against those of the same schedule.
    """
    schedule = trial.tried.get("schedule")
    rivals = [t for t in others if t.status == "finished" and t.curve and t.tried.get("schedule") == schedule]
    if not curve or not trial.epochs or len(rivals) < LEAST:
        return ""
    share = curve[-1].epoch / trial.epochs
    if share < WARM or share >= 1:
        return ""
    best, bar = reached(curve, trial.epochs, share), median(reached(t.curve, t.epochs, share) for t in rivals)
    if best >= bar:
        return ""
    return f"after {share:.0%} of its epochs valid MRR {best:.4f}, where half of {len(rivals)} had {bar:.4f} or more"


def reached(curve: Sequence[Moment], epochs: int, share: float) -> float:
    """The best figure of a curve up to a share of the epochs; before its first one, a part of that."""
    points = [(m.epoch / max(epochs, 1), m.valid_mrr or 0.0) for m in curve]
    before = [mrr for at, mrr in points if at <= share + 1e-9]
    first_at, first = points[0]
    return max(before) if before else first * share / first_at
