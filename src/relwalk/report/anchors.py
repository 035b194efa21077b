"""What others report with settings of their best, all entities ranked: what a result has to be held against.

Every source was read but for those that say "recalled".
"""

from __future__ import annotations

from relwalk.report.paper import Published

_LIBKGE = "LibKGE's README"
_FB, _WN = "fb15k-237", "wn18rr"
_ALL: tuple[tuple[str, str, str, str, float, float | None, float | None], ...] = (
    # data set, system, model, source, MRR, H@1, H@10
    (_FB, "TransE", "transe", _LIBKGE, 0.313, 0.221, 0.497),
    (_WN, "TransE", "transe", _LIBKGE, 0.228, 0.053, 0.520),
    (_FB, "DistMult", "distmult", _LIBKGE, 0.343, 0.250, 0.531),
    (_WN, "DistMult", "distmult", _LIBKGE, 0.452, 0.413, 0.530),
    (_FB, "ComplEx", "complex", _LIBKGE, 0.348, 0.253, 0.536),
    (_WN, "ComplEx", "complex", _LIBKGE, 0.475, 0.438, 0.547),
    (_FB, "RESCAL d=128", "rescal", _LIBKGE, 0.356, 0.263, 0.541),
    (_WN, "RESCAL d=128", "rescal", _LIBKGE, 0.467, 0.439, 0.517),
    (_FB, "ConvE", "conve", _LIBKGE, 0.339, 0.248, 0.521),
    (_WN, "ConvE", "conve", _LIBKGE, 0.442, 0.411, 0.504),
    (_FB, "RotatE", "rotate", _LIBKGE, 0.333, 0.241, 0.533),
    (_WN, "RotatE", "rotate", _LIBKGE, 0.477, 0.428, 0.571),
    (_FB, "TuckER", "tucker", "TuckER's README", 0.358, 0.266, 0.544),
    (_WN, "TuckER", "tucker", "TuckER's README", 0.470, 0.443, 0.526),
    (_FB, "OTE", "ote", "its paper, recalled", 0.351, None, None),
    (_WN, "OTE", "ote", "its paper, recalled", 0.485, None, None),
    (_FB, "CP-DURA d=2000", "", "KGE-DURA's README", 0.367, 0.272, 0.555),
    (_WN, "CP-DURA d=2000", "", "KGE-DURA's README", 0.478, 0.441, 0.552),
    (_FB, "RESCAL-DURA d=512", "", "KGE-DURA's README", 0.368, 0.276, 0.550),
    (_WN, "RESCAL-DURA d=256", "", "KGE-DURA's README", 0.498, 0.455, 0.577),
    (_FB, "ComplEx-N3-RP d=1000", "", "ssl-relation-prediction's README", 0.388, 0.298, 0.568),
    (_WN, "ComplEx-N3-RP d=1000", "", "ssl-relation-prediction's README", 0.488, 0.443, 0.578),
    (_FB, "HousE", "", "its paper, recalled", 0.361, None, None),
    (_WN, "HousE", "", "its paper, recalled", 0.511, None, None),
)
_QUAT = "QuatRDE's README"
ANCHORS: tuple[Published, ...] = (
    *(
        Published(dataset, system, model, "all", source, mrr=mrr, hits_at_1=first, hits_at_10=ten)
        for dataset, system, model, source, mrr, first, ten in _ALL
    ),
    Published(_FB, "QuatE", "", "argument", _QUAT, mrr=0.348, mr=87, hits_at_10=0.550),
    Published(_WN, "QuatE", "", "argument", _QUAT, mrr=0.488, mr=2314, hits_at_10=0.582),
    Published(_FB, "QuatRE", "", "argument", _QUAT, mrr=0.367, mr=88, hits_at_10=0.563),
    Published(_WN, "QuatRE", "", "argument", _QUAT, mrr=0.493, mr=1986, hits_at_10=0.592),
    Published("fb13", "TransD", "transd", "classification", "its paper, as transcribed by others", accuracy=0.891),
    Published("fb13", "DOLORES", "", "classification", "its paper, as transcribed by others", accuracy=0.893),
)
