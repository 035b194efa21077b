"""How often a new link of such a share is a fact: the facts of valid, which training did not see, among the others.

A sweep over all questions gives new links and, by the same rule, the shares of valid's facts. If the graph lacks M
facts like the V of valid, M / V times as many as valid has at a share are to be expected among the new links there:

    confidence(share) = (M / V) · facts of valid at that share / new links at that share,   at most 1, and rising

"At that share" is a bin of `BIN` new links or more, one of them counted twice for safety; bins are then pooled until
confidences rise with the share (isotonic regression). So the confidences of the links from c upwards have a mean of
at least c, and as many of them are facts: nothing is assumed of the model but that valid is like what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from relwalk.discovery.best import Doubles

BIN = 20  # new links in a bin, at least


@dataclass(frozen=True, eq=False)
class ShareToConfidence:
    """Confidence as steps: that of a share is `confidence[i]` for the greatest `least[i]` that is not above it."""

    least: Doubles  # (bins,) ascending
    confidence: Doubles  # (bins,) ascending

    def __call__(self, shares: Doubles) -> Doubles:
        place = np.searchsorted(self.least, shares, side="right") - 1
        found: Doubles = np.where(place >= 0, self.confidence[np.maximum(place, 0)], 0.0)
        return found


def fit_confidence(new: Doubles, facts: Doubles, missing_to_facts: float) -> ShareToConfidence:
    """From the shares of all new links down to the least of them, and of the facts; M / V.  # (new,), (facts,)"""
    if len(new) == 0:
        return ShareToConfidence(np.zeros(1), np.zeros(1))
    falling = np.sort(new)[::-1]
    least = np.unique(falling[np.minimum(np.arange(BIN - 1, len(new) + BIN - 1, BIN), len(new) - 1)])
    counted = facts[facts >= least[0]]
    links = np.bincount(np.searchsorted(least, new, side="right") - 1, minlength=len(least))
    held = np.bincount(np.searchsorted(least, counted, side="right") - 1, minlength=len(least))
    rates = np.minimum(1.0, missing_to_facts * held / links) * links / (links + 1)
    return ShareToConfidence(least, isotonic_regression(rates, weights=links.astype(np.float64)).x)
