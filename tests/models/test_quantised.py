"""Entity tables of codes: near what they were made from, and decoded only where they are asked for."""

from __future__ import annotations

import pytest
import torch

from relwalk.errors import RelWalkError
from relwalk.models.quantised import ENTITY_FORMATS, CodedTable, empty_table, from_int8, places, to_int8

FAR = {"float16": 1e-3, "bfloat16": 8e-3, "int8": 0.02, "pq": 0.45}  # the most that is lost of a vector's length


def rows(entities: int = 400, dim: int = 12) -> torch.Tensor:
    return 2 * torch.randn(entities, dim, generator=torch.Generator().manual_seed(entities))


def table(format: str, numbers: torch.Tensor, size: int = 6) -> CodedTable:
    return ENTITY_FORMATS[format](numbers, size)


@pytest.mark.parametrize("format", ENTITY_FORMATS)
def test_a_table_is_near_what_it_was_made_from(format: str) -> None:
    numbers = rows()
    made = table(format, numbers)
    lost = (made() - numbers).norm(dim=1) / numbers.norm(dim=1)
    assert float(lost.max()) < FAR[format]
    torch.testing.assert_close(made().norm(dim=1), numbers.norm(dim=1), rtol=2e-2, atol=0)


@pytest.mark.parametrize("format", ENTITY_FORMATS)
def test_some_rows_are_rows_of_all(format: str) -> None:
    made = table(format, rows())
    some = torch.tensor([[7, 0], [399, 7]])
    assert made(some).shape == (2, 2, 12)
    assert torch.equal(made(some), made()[some])
    assert made().dtype == torch.float32
    assert made(some[:0]).shape == (0, 2, 12)


@pytest.mark.parametrize("format", ENTITY_FORMATS)
@pytest.mark.parametrize(("dim", "size"), [(12, 6), (12, 5), (7, 7), (5, 1)])
def test_an_empty_table_has_the_place_that_a_full_one_needs(format: str, dim: int, size: int) -> None:
    full, empty = table(format, rows(dim=dim), size), empty_table(format, 400, dim, size)  # type: ignore[arg-type]
    shapes = [{n: (t.dtype, t.shape) for n, t in x.state_dict().items()} for x in (full, empty)]
    assert shapes[0] == shapes[1]
    empty.load_state_dict(full.state_dict())
    assert torch.equal(empty(), full())


def test_int8_uses_all_of_its_steps_and_no_more() -> None:
    numbers = torch.tensor([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [1e-20, 2e-20, 0.0], [1e20, 0.0, -1e20]])
    codes, scale = to_int8(numbers)
    assert codes.dtype == torch.int8 and int(codes.abs().max()) <= 127
    step = numbers.abs().amax(1, keepdim=True) / 127
    assert bool(((from_int8(codes, scale) - numbers).abs() <= 1.02 * step).all())


def test_product_quantisation_keeps_rows_that_are_centroids() -> None:
    """As few different rows as there are centroids are kept but for the rounding of float16."""
    few = rows(entities=100)
    torch.testing.assert_close(table("pq", few)(), few, rtol=0, atol=6e-3)


def test_product_quantisation_is_better_the_more_bytes_it_has() -> None:
    numbers = rows(entities=2000)
    lost = [float((table("pq", numbers, size)() - numbers).norm()) for size in (2, 3, 6, 12)]
    assert lost == sorted(lost, reverse=True)
    assert torch.equal(table("pq", numbers).weight, table("pq", numbers).weight)  # the same every time


def test_parts_differ_by_one_number_at_most() -> None:
    assert places(7, 3).tolist() == [[0, 1, -1], [2, 3, -1], [4, 5, 6]]
    for dim in range(1, 20):
        for parts in range(1, dim + 1):
            kept = places(dim, parts).flatten()
            assert kept[kept >= 0].tolist() == list(range(dim))


@pytest.mark.parametrize("format", ["float16", "pq"])
def test_numbers_that_do_not_fit_are_refused(format: str) -> None:
    with pytest.raises(RelWalkError, match="float16 cannot hold"):
        table(format, 1e6 * rows())
    assert bool(table("int8", 1e6 * rows())().isfinite().all())
