"""The paper's Figure 1 as a drawing of its own: how far RᵀR is from the identity, for some relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from relwalk.report.html import text
from relwalk.report.png import data_address, heat_png

TILE, GAP, TITLE, LABEL = 150, 16, 34, 20  # pixels
NAMES = ("R₁ᵀR₁", "R₂ᵀR₂")
STYLE = "svg { font: 12px system-ui, sans-serif; background: #fff; } image { image-rendering: pixelated; }"


def heat_maps_svg(grams: Mapping[str, Sequence[NDArray[np.floating]]], nus: Mapping[str, float]) -> str:
    """A row for each relation: R1ᵀR1 and R2ᵀR2, full colour at ±1, with its nu_R above."""
    width, height = GAP + 2 * (TILE + GAP), GAP + len(grams) * (TITLE + TILE + LABEL)
    parts = []
    for row, (relation, both) in enumerate(grams.items()):
        top = GAP + row * (TITLE + TILE + LABEL)
        parts.append(f'<text x="{GAP}" y="{top + 14}" font-weight="600">{text(relation)}</text>')
        parts.append(f'<text x="{GAP}" y="{top + 29}">ν = {nus[relation]:.3g}</text>')
        for column, (name, gram) in enumerate(zip(NAMES, both, strict=True)):
            x, y = GAP + column * (TILE + GAP), top + TITLE
            box = f'x="{x}" y="{y}" width="{TILE}" height="{TILE}"'
            parts.append(f'<rect {box} fill="none" stroke="#8d949b"/>')
            parts.append(f'<image {box} href="{data_address(heat_png(gram, 1.0))}"/>')
            parts.append(f'<text x="{x}" y="{y + TILE + 14}">{name}</text>')
    frame = f'viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="Heat maps of RᵀR"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame}><style>{STYLE}</style>{"".join(parts)}</svg>'
