"""relwalk: knowledge-graph embeddings whose scores are probabilities.

import relwalk

graph = relwalk.read_graph("world")
run = relwalk.train(graph, epochs=50, out="runs/world")
print(relwalk.rank(run))
print(relwalk.predict(run, head="France", relation="borders"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from relwalk.answers import Answer, Answers
    from relwalk.comparing import compare
    from relwalk.compression.compress import Compressed, compress
    from relwalk.discovery.doubtful import DoubtfulTriples, doubtful
    from relwalk.discovery.duplicates import Duplicates, duplicates
    from relwalk.discovery.links import Discovery, discover
    from relwalk.errors import RelWalkError
    from relwalk.evaluation.classification import ClassificationResult, classify
    from relwalk.evaluation.comparison import Comparison
    from relwalk.evaluation.ranking import rank
    from relwalk.evaluation.result import RankingResult
    from relwalk.evaluation.tuning import Tuning
    from relwalk.experiment import resume, train
    from relwalk.exports import export
    from relwalk.graph.graph import Graph
    from relwalk.graph.read import read_graph
    from relwalk.graph.statistics import describe
    from relwalk.graph.write import write_graph
    from relwalk.models import RelWalk, Scorer
    from relwalk.prediction import predict, predict_many
    from relwalk.reporting import make_report
    from relwalk.reproduction.reproduce import reproduce
    from relwalk.runs.run import Run, load_run
    from relwalk.theory.analyse import Analysis, analyse
    from relwalk.theory.closed_loop import closed_loop
    from relwalk.theory.generate import generate
    from relwalk.theory.walk import walk
    from relwalk.tuning.tune import tune
    from relwalk.walk2vec import WalkVectors, walk_vectors

# Where each public name lives. Imported on first use, so that `relwalk --help` does not wait for torch.
_HOMES = {
    "Analysis": "relwalk.theory.analyse",
    "Answer": "relwalk.answers",
    "Answers": "relwalk.answers",
    "ClassificationResult": "relwalk.evaluation.classification",
    "Comparison": "relwalk.evaluation.comparison",
    "Compressed": "relwalk.compression.compress",
    "Discovery": "relwalk.discovery.links",
    "DoubtfulTriples": "relwalk.discovery.doubtful",
    "Duplicates": "relwalk.discovery.duplicates",
    "Graph": "relwalk.graph.graph",
    "RankingResult": "relwalk.evaluation.result",
    "RelWalk": "relwalk.models",
    "RelWalkError": "relwalk.errors",
    "Run": "relwalk.runs.run",
    "Scorer": "relwalk.models",
    "Tuning": "relwalk.evaluation.tuning",
    "WalkVectors": "relwalk.walk2vec",
    "analyse": "relwalk.theory.analyse",
    "classify": "relwalk.evaluation.classification",
    "closed_loop": "relwalk.theory.closed_loop",
    "compare": "relwalk.comparing",
    "compress": "relwalk.compression.compress",
    "describe": "relwalk.graph.statistics",
    "discover": "relwalk.discovery.links",
    "doubtful": "relwalk.discovery.doubtful",
    "duplicates": "relwalk.discovery.duplicates",
    "export": "relwalk.exports",
    "generate": "relwalk.theory.generate",
    "load_run": "relwalk.runs.run",
    "make_report": "relwalk.reporting",
    "predict": "relwalk.prediction",
    "predict_many": "relwalk.prediction",
    "rank": "relwalk.evaluation.ranking",
    "read_graph": "relwalk.graph.read",
    "reproduce": "relwalk.reproduction.reproduce",
    "resume": "relwalk.experiment",
    "train": "relwalk.experiment",
    "tune": "relwalk.tuning.tune",
    "walk": "relwalk.theory.walk",
    "walk_vectors": "relwalk.walk2vec",
    "write_graph": "relwalk.graph.write",
}

__all__ = [
    "Analysis",
    "Answer",
    "Answers",
    "ClassificationResult",
    "Comparison",
    "Compressed",
    "Discovery",
    "DoubtfulTriples",
    "Duplicates",
    "Graph",
    "RankingResult",
    "RelWalk",
    "RelWalkError",
    "Run",
    "Scorer",
    "Tuning",
    "WalkVectors",
    "analyse",
    "classify",
    "closed_loop",
    "compare",
    "compress",
    "describe",
    "discover",
    "doubtful",
    "duplicates",
    "export",
    "generate",
    "load_run",
    "make_report",
    "predict",
    "predict_many",
    "rank",
    "read_graph",
    "reproduce",
    "resume",
    "train",
    "tune",
    "walk",
    "walk_vectors",
    "write_graph",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'relwalk' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
