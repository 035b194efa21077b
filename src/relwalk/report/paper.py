"""What the paper and others report, to stand beside the figures of a run. Every value carries its source.

The paper ranks RelWalk among the entities of the relation's argument ("argument"); the figures of the other systems it
quotes from their papers, where all entities are candidates ("all").
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from relwalk.evaluation.metrics import RankMetrics

TABLE_2 = "the paper, Table 2"


@dataclass(frozen=True)
class Published:
    """Figures of a system on a data set, by one protocol, as somebody reports them. What is not reported is None."""

    dataset: str
    system: str  # as it is called in print
    model: str  # as it is listed here; "" for one that is not
    candidates: str  # "all", "argument", or "classification": accuracy on the data set's own false triples
    source: str
    mrr: float | None = None
    mr: float | None = None
    hits_at_1: float | None = None
    hits_at_3: float | None = None
    hits_at_10: float | None = None
    accuracy: float | None = None

    def figures(self) -> dict[str, float | None]:
        """Its figures by the names of a record."""
        ranking = {"mrr": self.mrr, "mr": self.mr, "hits@1": self.hits_at_1, "hits@3": self.hits_at_3}
        return {"accuracy": self.accuracy} if self.accuracy is not None else {**ranking, "hits@10": self.hits_at_10}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


_DETTMERS = f"{TABLE_2}, from Dettmers et al. 2018"
_OWN = f"{TABLE_2}, from its own paper"
_LINKS: tuple[tuple[str, str, str, tuple[float | None, ...], tuple[float | None, ...]], ...] = (
    # system, model, source, FB15k-237, WN18RR: MRR, MR, H@1, H@3, H@10
    (
        "TransE",
        "transe",
        f"{TABLE_2}, from Nguyen et al.",
        (0.294, 347, None, None, 0.465),
        (0.226, 3384, None, None, 0.50),
    ),
    ("TransD", "transd", f"{TABLE_2}, from KBGAN", (0.280, None, None, None, 0.453), (None, None, None, None, 0.43)),
    ("DistMult", "distmult", _DETTMERS, (0.241, 254, 0.155, 0.263, 0.419), (0.430, 5110, 0.39, 0.44, 0.49)),
    ("ComplEx", "complex", _DETTMERS, (0.247, 339, 0.158, 0.275, 0.428), (0.440, 5261, 0.41, 0.46, 0.51)),
    ("ConvE", "conve", _OWN, (0.325, 244, 0.237, 0.356, 0.501), (0.430, 4187, 0.40, 0.44, 0.52)),
    ("CP-N3", "cp", _OWN, (0.360, None, None, None, 0.540), (0.470, None, None, None, 0.54)),
    ("RelWalk", "relwalk", TABLE_2, (0.329, 105, 0.243, 0.354, 0.502), (0.451, 3232, 0.42, 0.47, 0.51)),
)
_WANG = f"{TABLE_2}, from Wang et al. 2014"
_JUDGED: tuple[tuple[str, str, str, float], ...] = (  # FB13
    ("Structured", "structured", _WANG, 0.752),
    ("TransE", "transe", _WANG, 0.815),
    ("TransR", "transr", _OWN, 0.825),
    ("TransG", "transg", _OWN, 0.873),
    ("NTN", "ntn", _OWN, 0.872),
    ("RelWalk", "relwalk", TABLE_2, 0.886),
)
_LINK_SETS = ("fb15k-237", "wn18rr")

# Table 2 in the order of its lines.
PAPER_TABLE: tuple[Published, ...] = tuple(
    Published(dataset, system, model, "argument" if model == "relwalk" else "all", source, *figures)
    for place, dataset in enumerate(_LINK_SETS)
    for system, model, source, *both in _LINKS
    for figures in [both[place]]
) + tuple(
    Published("fb13", system, model, "classification", source, accuracy=accuracy)
    for system, model, source, accuracy in _JUDGED
)

PAPER: dict[str, RankMetrics] = {
    p.dataset: RankMetrics(
        p.mrr or 0.0, p.mr or 0.0, float("nan"), p.hits_at_1 or 0.0, p.hits_at_3 or 0.0, p.hits_at_10 or 0.0, 0
    )
    for p in PAPER_TABLE
    if p.model == "relwalk" and p.candidates == "argument"
}
PAPER_ACCURACY = {p.dataset: p.accuracy for p in PAPER_TABLE if p.model == "relwalk" and p.accuracy is not None}

# Table 3: H@10, nu_R, sigma_c, sigma_c', and the root of the sum of their squares, of the relations of WN18RR.
PAPER_CONDITIONS: dict[str, dict[str, tuple[float, float, float, float, float]]] = {
    "wn18rr": {
        "_hypernym": (0.188, 3.249, 68.89, 64.41, 94.31),
        "_derivationally_related_form": (0.955, 1.690, 63.44, 65.33, 91.07),
        "_instance_hypernym": (0.541, 0.362, 63.11, 64.56, 90.28),
        "_also_see": (0.670, 0.234, 70.76, 61.51, 93.76),
        "_member_meronym": (0.281, 4.389, 63.78, 66.09, 91.84),
        "_synset_domain_topic_of": (0.513, 0.727, 65.66, 65.48, 92.73),
        "_has_part": (0.247, 0.548, 66.21, 66.50, 93.84),
        "_member_of_domain_usage": (0.688, 0.045, 65.24, 63.16, 90.81),
        "_member_of_domain_region": (0.442, 0.065, 67.53, 66.31, 94.64),
        "_verb_group": (0.974, 0.038, 64.22, 63.19, 90.09),
        "_similar_to": (1.000, 0.111, 63.67, 63.96, 90.25),
    }
}
# Its last line: Pearson of H@10 with the other four columns.
PAPER_CORRELATIONS = {"wn18rr": (-0.51, -0.39, -0.49, -0.70)}
# The relations of Figure 1.
PAPER_HEAT_MAPS = {"wn18rr": ("_also_see", "_similar_to", "_hypernym", "_member_meronym")}
