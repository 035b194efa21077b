"""Heat maps as PNG in a data address, written with nothing but zlib.

A pixel is one of two colours, for positive and negative, and its opacity is the size of the number: zero is the
page itself, so the same picture serves a light page and a dark one.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

POSITIVE, NEGATIVE = (13, 148, 136), (217, 119, 6)  # the page's accent, and its opposite
LEVELS = 127  # opacities of each sign: 255 colours, so that a pixel is one byte


def heat_png(values: NDArray[np.floating], limit: float) -> bytes:
    """A matrix as a picture, one pixel an entry; ±`limit` is full colour."""
    scaled = np.clip(np.asarray(values, np.float64) / (limit or 1.0), -1, 1)
    index = (np.rint(scaled * LEVELS) + LEVELS).astype(np.uint8)  # 127 is zero
    colours = [NEGATIVE] * LEVELS + [POSITIVE] * (LEVELS + 1)
    opacity = [round(255 * abs(k - LEVELS) / LEVELS) for k in range(2 * LEVELS + 1)]
    height, width = index.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), index], axis=1)  # 0: no filter
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(part for colour in colours for part in colour)),
            _chunk(b"tRNS", bytes(opacity)),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def data_address(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
