"""A model of one's own: the one that CONTRIBUTING.md writes, used as its reader would."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import relwalk
from relwalk.errors import RelWalkError, RunError
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph
from relwalk.models import Scorer
from relwalk.models.tables import EntityTable
from tests.entry import relwalk as command

SNIPPET = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(), re.DOTALL)[
    0
]
FAST = {"dim": 8, "epochs": 3, "batch_size": 1024, "lr": 0.5}


@pytest.fixture(scope="module")
def CP() -> type[Scorer]:
    names: dict = {"__name__": "mine"}
    exec(SNIPPET[: SNIPPET.index("\ncheck_model(")], names)
    return names["CP"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"candidates_per_step": 300}, {"objective": "margin", "margin": 2.0, "negatives": 20}, {"reciprocal": True}],
    ids=["all", "sampled", "margin", "reciprocal"],
)
def test_it_trains_ranks_saves_loads_and_predicts(
    CP: type[Scorer], world: Graph, tmp_path: Path, settings: dict
) -> None:
    run = relwalk.train(world, model=CP, **FAST, **settings)
    chance = relwalk.train(world, model=CP, **{**FAST, "lr": 1e-9, "epochs": 1}, **settings)
    assert relwalk.rank(run, split="valid").mrr > 3 * relwalk.rank(chance, split="valid").mrr
    kept = run.save(tmp_path / "run")
    assert kept.path == tmp_path / "run" and kept.record.training == run.record.training
    again = relwalk.load_run(tmp_path / "run", model=CP)
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), run.model.parameters(), strict=True))
    asked = {"head": "France", "relation": "borders", "k": 5}
    assert str(relwalk.predict(again, **asked)) == str(relwalk.predict(run, **asked))


def test_loading_a_folder_imports_nothing(CP: type[Scorer], five: Graph, tmp_path: Path) -> None:
    path = tmp_path / "run"
    relwalk.train(five, model=CP, dim=4, epochs=1, out=path)
    record = json.loads((path / "run.json").read_text())
    assert (record["model"]["name"], record["model"]["listed"]) == ("mine:CP", False)
    with pytest.raises(RunError, match=r"run\.json: it has a model of its own, mine:CP.*model=CP"):
        relwalk.load_run(path)
    assert "model=CP" in command("evaluate", path, status=1).stderr
    with pytest.raises(RunError, match="it has the model mine:CP; found model=Distances"):
        relwalk.load_run(path, model=Distances)
    with pytest.raises(RelWalkError, match=r"a model of its own, mine:CP"):
        relwalk.train(five, config=path)
    assert relwalk.train(five, config=path, model=CP).record.model.dim == 4
    longer = relwalk.resume(path, epochs=2, model=CP)
    assert longer.record.metrics["epochs"] == 2


def test_what_is_saved_is_not_overwritten_and_must_be_finished(five: Graph, tmp_path: Path) -> None:
    run = relwalk.train(five, dim=4, epochs=1).save(tmp_path / "run")
    with pytest.raises(relwalk.RelWalkError, match="exists already"):
        run.save(tmp_path / "run")
    run.save(tmp_path / "run", force=True)
    assert torch.equal(relwalk.load_run(tmp_path / "run").model.vectors(), run.model.vectors())


class Distances(Scorer):
    """-||h + r - t||, not squared: no product. With an option of its own."""

    def __init__(self, entities: int, relations: int, dim: int, *, generator: torch.Generator, size: float = 1.0):
        super().__init__(entities, relations, dim)
        self.entity = EntityTable(size * torch.randn(entities, dim, generator=generator))
        self.relation = nn.Parameter(torch.randn(relations, dim, generator=generator))

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return -(self.entity(heads) + self.relation[relations] - self.entity(tails)).norm(dim=-1)

    def score_candidates(
        self, side: Side, given: Tensor, relations: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        e, r = self.entity(candidates), self.relation[relations]
        goal = self.entity(given) + (r if side == "tail" else -r)
        return -(goal.unsqueeze(1) - e).norm(dim=-1)


def test_options_of_ones_own_are_keywords_and_others_are_refused(five: Graph) -> None:
    run = relwalk.train(five, model=Distances, size=2.0, dim=4, epochs=1)
    assert run.record.model.options == {"size": 2.0}
    assert run.record.training.objective.precision == "float32"
    with pytest.raises(RelWalkError, match="orthogonality means nothing to the model Distances, which has size"):
        relwalk.train(five, model=Distances, orthogonality="soft")
    with pytest.raises(RelWalkError, match="precision bfloat16 means nothing to Distances"):
        relwalk.train(five, model=Distances, precision="bfloat16", epochs=1)
    with pytest.raises(RelWalkError, match=r"expected one of relwalk, .* or a subclass"):
        relwalk.train(five, model=nn.Linear)
