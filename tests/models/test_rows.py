"""A process that keeps some of the entities begins with the numbers that they have among all."""

from __future__ import annotations

import pytest
import torch

from relwalk.models import build_model, tables
from relwalk.models.tables import normal_rows, only_rows


@pytest.mark.parametrize("entities", [3, 16, 33, 47, 48, 100])
@pytest.mark.parametrize("dim", [1, 7, 8])
def test_some_rows_are_those_of_all(entities: int, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BLOCK", 16)
    whole = normal_rows(entities, dim, torch.Generator().manual_seed(1))
    some = torch.arange(0, entities, 3)
    generator = torch.Generator().manual_seed(1)
    with only_rows(some):
        part = normal_rows(entities, dim, generator)
    assert torch.equal(part, whole[some])
    after = torch.Generator().manual_seed(1)
    normal_rows(entities, dim, after)
    assert torch.equal(generator.get_state(), after.get_state())  # what is drawn next is the same as well


@pytest.mark.parametrize(
    "model", ["relwalk", "distmult", "complex", "cp", "rescal", "transe", "transd", "unstructured"]
)
def test_models_are_made_of_the_rows_alone(model: str) -> None:
    whole, some = build_model(model, 40, 3, 8, seed=0, options={}), torch.tensor([0, 7, 39])
    with only_rows(some):
        part = build_model(model, 40, 3, 8, seed=0, options={})
    rows = {id(table.weight) for table in whole.tables()}
    for (name, weights), others in zip(whole.named_parameters(), part.parameters(), strict=True):
        assert torch.equal(weights[some] if id(weights) in rows else weights, others), name
