"""The map: made once, kept with the run, and neighbours stay neighbours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.runs.run import load_run
from relwalk.serve.app import create_app
from relwalk.serve.mapping import FILE, GRID, EntityMap, load_map, make_map, save_map
from relwalk.serve.opened import Opened, Shelf, open_folder
from tests.serve.conftest import API, Client


class Clusters(torch.nn.Module):
    """Stands for a model whose vectors lie in ten clusters."""

    def __init__(self, each: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        centres = torch.randn(10, 16, generator=generator)
        self.cluster = torch.arange(10).repeat_interleave(each)
        self.points = centres[self.cluster] + 0.1 * torch.randn(10 * each, 16, generator=generator)

    def vectors(self) -> torch.Tensor:
        return self.points


def test_neighbours_stay_neighbours(world: Graph) -> None:
    model, told = Clusters(40), []
    few = Graph(
        name="few",
        entities=type(world.entities)("entity", world.entities.names[:400]),
        relations=world.relations,
        train=np.zeros((1, 3), np.int32),
    )
    found = make_map(model, few, progress=lambda done, total, what: told.append((done, total)))  # type: ignore[arg-type]
    xy = found.xy.astype(float)
    apart = ((xy[:, None] - xy[None]) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    near = model.cluster.numpy()[apart.argsort(1)[:, :10]]
    assert (near == model.cluster.numpy()[:, None]).mean() > 0.95
    assert found.xy.min() == 0 and found.xy.max() == GRID
    assert told and all(0 <= done <= total for done, total in told) and told == sorted(told)


@pytest.mark.parametrize("entities", [1, 2, 5, 13])
def test_small_graphs_have_a_map_too(entities: int, five: Graph) -> None:
    names = tuple(f"e{i}" for i in range(entities))
    graph = Graph(
        name="few",
        entities=type(five.entities)("entity", names),
        relations=five.relations,
        train=np.zeros((1, 3), np.int32),
    )
    model = Clusters(2)
    model.points = model.points[:entities]
    found = make_map(model, graph)  # type: ignore[arg-type]
    assert found.xy.shape == (entities, 2) and np.isfinite(found.xy).all()


def test_a_map_is_of_one_run_alone(tmp_path: Path) -> None:
    save_map(tmp_path, EntityMap(np.arange(3, dtype=np.uint32), np.zeros((3, 2), np.uint16)), "one")
    assert load_map(tmp_path, "one", 3) is not None
    assert load_map(tmp_path, "other", 3) is None and load_map(tmp_path, "one", 2) is None
    (tmp_path / FILE).write_bytes(b"x" * 40)
    assert load_map(tmp_path, "one", 3) is None


def made(opened: Opened) -> tuple[Client, dict]:
    """Ask for the map and wait for it."""
    app = create_app(Shelf([opened]))
    client = Client(app)

    async def wait() -> None:
        service = app.state.service
        assert service.maps.begin(opened).state == "making"
        assert service.maps.begin(opened).what == "starting", "once is enough"
        while service.maps.progress(opened).state == "making":
            await asyncio.sleep(0.05)
        await service.maps.close()

    asyncio.run(wait())
    return client, client.ask("/map")


def test_it_is_made_when_asked_for_and_kept(five: Graph, tmp_path: Path) -> None:
    train(five, dim=4, epochs=1, threads=1, out=tmp_path / "run")
    client, state = made(open_folder(tmp_path / "run", "run"))
    assert (state["state"], state["points"], state["entities"]) == ("ready", 5, 5)
    assert {one["name"] for one in state["named"]} == set("abcde") and state["roles"]
    points = client.get(f"{API}/map/points").content
    assert len(points) == 9 * 5 and np.frombuffer(points, "<u4", 5).tolist() == [0, 1, 2, 3, 4]
    again = Client(create_app(Shelf([open_folder(tmp_path / "run", "run")])))
    assert again.ask("/map")["state"] == "ready" and again.get(f"{API}/map/points").content == points
    assert load_run(tmp_path / "run").graph.name == "hand", "the folder is still that of a run"


def test_a_map_that_cannot_be_kept_says_why(five: Graph, tmp_path: Path) -> None:
    train(five, dim=4, epochs=1, threads=1, out=tmp_path / "run")
    opened = open_folder(tmp_path / "run", "run")
    (tmp_path / "run" / "weights.safetensors").write_bytes(b"gone")
    _, state = made(opened)
    assert state["state"] == "failed" and "weights.safetensors" in state["what"]
