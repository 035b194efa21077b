"""Text that is no UTF-8, told by its first bytes."""

from __future__ import annotations

from pathlib import Path

from relwalk.errors import GraphError

START = 4096  # bytes to look at
MARKS = {  # byte order marks; the longer ones first
    b"\xff\xfe\x00\x00": "UTF-32LE",
    b"\x00\x00\xfe\xff": "UTF-32BE",
    b"\xff\xfe": "UTF-16LE",
    b"\xfe\xff": "UTF-16BE",
}
PACKED = {b"\x1f\x8b": (".gz", "gzip"), b"\x28\xb5\x2f\xfd": (".zst", "zstd")}


def check_encoding(path: Path, start: bytes) -> None:
    """Refuse UTF-16, UTF-32 and packed bytes by name, from the start of what should be UTF-8 text."""
    for magic, (suffix, kind) in PACKED.items():
        if start.startswith(magic):
            raise GraphError(
                f"{path}: found a {kind} file; expected text. Add {suffix} to its name, or unpack it first."
            )
    encoding = next((name for mark, name in MARKS.items() if start.startswith(mark)), None) or _by_zeros(start)
    if encoding is not None:
        raise GraphError(
            f"{path}: found {encoding} text; expected UTF-8. "
            f"Save it as UTF-8: iconv -f {encoding} -t UTF-8 {path.name} > converted{path.suffix}"
        )


def _by_zeros(start: bytes) -> str | None:
    """Text without a byte order mark: most characters of most files are below 256, so that their other bytes are 0."""
    if len(start) < 8:
        return None
    zeros = [start[place::4].count(0) / len(start[place::4]) for place in range(4)]
    some, none = [share > 0.5 for share in zeros], [share < 0.1 for share in zeros]
    if all(some[1:]) and none[0]:
        return "UTF-32LE"
    if all(some[:3]) and none[3]:
        return "UTF-32BE"
    if some[1] and some[3] and none[0] and none[2]:
        return "UTF-16LE"
    if some[0] and some[2] and none[1] and none[3]:
        return "UTF-16BE"
    return None
