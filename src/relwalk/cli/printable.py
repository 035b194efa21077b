"""Text from anywhere, made safe to show: a name must not drive the terminal that prints it."""

from __future__ import annotations

import re

# Control characters but tab and line feed (C0, DEL, C1), marks that reorder a line, and other ends of a line.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with every such character as \\uXXXX, which is also how JSON would write it."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The same on a single line."""
    return printable(text).replace("\n", "\\n")
