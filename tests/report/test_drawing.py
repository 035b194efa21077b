"""Charts, heat maps and the map of entities, on data made by hand."""

from __future__ import annotations

import json
import re
import struct
import zlib

import numpy as np
import pytest
import torch

from relwalk.models import build_model
from relwalk.report.charts import HEIGHT, Plot, Scale, dial, histogram, nice_ticks, tick_text
from relwalk.report.entity_map import GRID, entity_map, script_json
from relwalk.report.html import (
    DASH,
    Cell,
    absent,
    figure,
    grid,
    num,
    panel,
    paragraph,
    percent,
    phrase,
    rate,
    table,
)
from relwalk.report.png import NEGATIVE, POSITIVE, heat_png
from tests.conftest import TEST, TRAIN, VALID, make_graph


def test_a_scale_is_linear_or_logarithmic() -> None:
    assert [Scale(0, 10, 100, 200)(x) for x in (0, 5, 10)] == [100, 150, 200]
    assert [Scale(1, 100, 0, 100, log=True)(x) for x in (1, 10, 100)] == [0, 50, 100]
    assert Scale(3, 3, 0, 100)(3) == 50


def test_ticks_are_round_and_within_the_range() -> None:
    assert nice_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(-18.3, -6.9) == [-18, -16, -14, -12, -10, -8]
    assert nice_ticks(5, 5) == [5]
    assert Scale(1, 1000, 0, 1, log=True).ticks() == [1, 10, 100, 1000]
    assert tick_text(0.5, [0, 0.5, 1.0]) == "0.5" and tick_text(2000, [0, 2000]) == "2,000"


def test_points_of_a_line_stand_where_the_scale_says() -> None:
    plot = Plot((0, 10), (0, 1), "x", "y", "a line")
    plot.line([0, 10], [0, 1], "a")
    points = re.search(r'points="([^"]+)"', plot.svg())
    assert points is not None
    first, last = (tuple(map(float, p.split(","))) for p in points[1].split())
    assert first == (plot.left, HEIGHT - 44) and last == (440 - 14, 14)


def test_a_histogram_draws_every_value_and_a_dial_every_angle() -> None:
    drawn = histogram([[1.0, 1.0, 2.0]], ["z"], ["a"], "z", "three values", bins=10)
    shares = [float(s) for s in re.findall(r": ([\d.]+)%</title>", drawn)]
    assert shares == pytest.approx([66.7, 33.3])
    assert dial([0.0, 90.0, 90.0], "three").count('class="dot a"') == 3


def _pixels(png: bytes) -> np.ndarray:
    """Decode by hand: a palette with opacities, no filter."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        assert struct.unpack(">I", png[place + 8 + size : place + 12 + size])[0] == zlib.crc32(kind + content)
        chunks[kind], place = content, place + 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    colours = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
    return np.concatenate([colours, np.frombuffer(chunks[b"tRNS"], np.uint8)[:, None]], 1)[rows[:, 1:]]


def test_a_heat_map_has_the_right_pixels() -> None:
    pixels = _pixels(heat_png(np.array([[1.0, 0.0, -1.0], [0.5, 9.0, -9.0]]), 1.0))
    assert pixels.shape == (2, 3, 4)
    assert pixels[0, 0].tolist() == [*POSITIVE, 255] and pixels[0, 2].tolist() == [*NEGATIVE, 255]
    assert pixels[0, 1, 3] == 0 and abs(int(pixels[1, 0, 3]) - 128) <= 1
    assert pixels[1, 1].tolist() == [*POSITIVE, 255] and pixels[1, 2].tolist() == [*NEGATIVE, 255]
    assert _pixels(heat_png(np.zeros((1, 1)), 0.0))[0, 0, 3] == 0


def test_the_map_is_the_principal_plane_and_the_same_every_time() -> None:
    graph = make_graph(TRAIN, VALID, TEST)
    model = build_model("relwalk", 5, 2, 4, seed=0, options={})
    with torch.no_grad():
        model.entity.weight.copy_(
            torch.tensor([[0, 0, 0, 0], [8, 0, 0, 0], [4, 2, 0, 0], [4, -2, 0, 0], [4, 0, 0, 0]]).float()
        )
    made = entity_map(model, graph)
    assert made.kept == pytest.approx(1) and made.xy[:, 0].tolist() == [0, GRID, 5000, 5000, 5000]
    assert made.xy.max() <= GRID and made.xy.min() >= 0 and np.ptp(made.xy[:, 1]) == pytest.approx(GRID / 2, abs=1)
    assert entity_map(model, graph).as_json(graph) == made.as_json(graph)
    assert len(entity_map(model, graph, most=3).ids) == 3
    assert sorted(made.named.tolist()) == [0, 1, 2, 3, 4]
    one = entity_map(build_model("relwalk", 5, 2, 1, seed=0, options={}), graph)
    assert one.xy.shape == (5, 2)


def test_json_cannot_leave_its_script() -> None:
    hard = {"name": ["</script><b>", "a & b", "\u2028", "\ud800"]}
    words = script_json(hard)
    assert "<" not in words and "&" not in words and words.encode() and json.loads(words) == hard


def test_figures_never_print_what_is_no_number() -> None:
    assert num(None) == num(float("nan")) == num(float("inf")) == percent(float("nan")) == DASH
    assert num(1234.5, 1) == "1,234" and num(-0.25, 2) == "−0.25" and num(3.3e-5) == "3.3×10<sup>−5</sup>"
    assert rate(0.0004) == "&lt;0.001" and percent(0.0004, 1) == "&lt;0.1%" and percent(0, 1) == "0.0%"
    assert 'data-value="a&#34;b"' in table(["x"], [[Cell("y", 'a"b')]])


def test_what_is_not_markup_is_escaped_everywhere() -> None:
    nasty = '<b title="x">&'
    escaped = "&lt;b title=&#34;x&#34;&gt;&amp;"
    for made in (
        phrase("<em>{}</em>", nasty),
        paragraph(nasty),
        figure(nasty, nasty),
        grid([nasty]),
        panel(nasty, {nasty: nasty}),
        absent(nasty),
        table([nasty], [[Cell(nasty, nasty)]]),
    ):
        assert escaped in made and nasty not in made
    assert figure(phrase("<i>{}</i>", 1), "").count("<i>1</i>") == 1
