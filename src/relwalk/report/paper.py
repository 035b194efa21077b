"""What the paper reports, to stand beside the figures of a run."""

from __future__ import annotations

from relwalk.evaluation.metrics import RankMetrics

# Table 2 of the paper: filtered, candidates from the relation's argument.
PAPER: dict[str, RankMetrics] = {
    "fb15k-237": RankMetrics(0.329, 105, float("nan"), 0.243, 0.354, 0.502, 0),
    "wn18rr": RankMetrics(0.451, 3232, float("nan"), 0.42, 0.47, 0.51, 0),
}
PAPER_ACCURACY = {"fb13": 0.886}
# Table 3 of the paper, its last line: Pearson of H@10 with nu_R, sigma_c, sigma_c', and the root of their squares.
PAPER_CORRELATIONS = {"wn18rr": (-0.51, -0.39, -0.49, -0.70)}
