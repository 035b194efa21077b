"""Ways to damage bytes: each takes random numbers and bytes, and gives other bytes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes], bytes]

MARKS = [b"\0", b"\t", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x1b[2J", b'"']
MARKS += [b",", b" ", b"\x1a", b"#", b"\\", b"<", b">", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x0c", b"PAR1"]
FIELDS = [b"", b"-1", b"0", b"1", b"+1", b"2147483648", b"9223372036854775808", b"-9223372036854775809", b"1e3", b"1.0"]
FIELDS += [
    b"nan",
    b"null",
    b"NA",
    b"?",
    b" ",
    b"head",
    b"\xff",
    b"\0",
    b"\x1b[31m",
    b"a" * 300,
    "\u0661".encode(),
    b"--",
]
FIELDS += [b"9" * 40, b"<http://x/y>", b"_:b", b'"quoted"', b'"', b"\xef\xbb\xbf", b"a\tb", b"a\nb"]


def flip_bits(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64]) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def cut_out(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice([1, 2, 10, 100]) :]


def repeat_a_part(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    part = data[start : start + rng.choice([1, 8, 64, 512])]
    return data[:start] + part * rng.choice([2, 3, 50]) + data[start:]


def overwrite_a_part(rng: Random, data: bytes) -> bytes:
    start, noise = rng.randrange(len(data) + 1), rng.randbytes(rng.choice([1, 4, 32]))
    return data[:start] + noise + data[start + len(noise) :]


def insert_a_mark(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(MARKS) * rng.choice([1, 1, 2, 20]) + data[start:]


def append_noise(rng: Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.choice([1, 16, 1000]))


def empty(rng: Random, data: bytes) -> bytes:
    return b""


def a_huge_field(rng: Random, data: bytes) -> bytes:
    start, times = rng.randrange(len(data) + 1), rng.choice([5_000, 5_000, 5_000, 200_000])
    return data[:start] + rng.choice([b"x", b"9", b"\t", b"\0", b"\xc3\xa9"]) * times + data[start:]


BYTES: dict[str, Mutation] = {
    "flip bits": flip_bits,
    "truncate": truncate,
    "cut out": cut_out,
    "repeat a part": repeat_a_part,
    "overwrite a part": overwrite_a_part,
    "insert a mark": insert_a_mark,
    "append noise": append_noise,
    "empty": empty,
    "a huge field": a_huge_field,
}


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def duplicate_a_line(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return b"\n".join(lines)


def remove_a_line(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def swap_lines(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _in_some_lines(change: Callable[[Random, list[bytes]], list[bytes]]) -> Mutation:
    """One line, a few, or all of them, each as fields between its tabs or commas."""

    def mutation(rng: Random, data: bytes) -> bytes:
        lines, rate = _lines(data), rng.choice([0.0, 0.0, 0.3, 1.0])
        chosen = rng.randrange(len(lines))
        mark = b"\t" if b"\t" in data else b"," if b"," in data else b" "
        for number, line in enumerate(lines):
            if line and (number == chosen or rng.random() < rate):
                lines[number] = mark.join(change(rng, line.split(mark)))
        return b"\n".join(lines)

    return mutation


def _replace(rng: Random, fields: list[bytes]) -> list[bytes]:
    fields[rng.randrange(len(fields))] = rng.choice(FIELDS)
    return fields


def _swap(rng: Random, fields: list[bytes]) -> list[bytes]:
    rng.shuffle(fields)
    return fields


def _drop(rng: Random, fields: list[bytes]) -> list[bytes]:
    del fields[rng.randrange(len(fields))]
    return fields


def _add(rng: Random, fields: list[bytes]) -> list[bytes]:
    fields.insert(rng.randrange(len(fields) + 1), rng.choice(FIELDS))
    return fields


def another_line(rng: Random, data: bytes) -> bytes:
    lines = _lines(data)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice([b"\t", b","]).join(rng.choices(FIELDS, k=rng.randrange(6))))
    return b"\n".join(lines)


def mixed_line_ends(rng: Random, data: bytes) -> bytes:
    ends = [b"\n", b"\r\n", b"\r", b"\n\n", b"\r\r\n"]
    return b"".join(line + rng.choice(ends) for line in _lines(data))


def another_encoding(rng: Random, data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode(
        rng.choice(["utf-16", "utf-16-le", "utf-32", "latin-1", "cp500"]), "replace"
    )


def another_separator(rng: Random, data: bytes) -> bytes:
    return data.replace(b"\t", rng.choice([b",", b" ", b";", b"|", b"\t\t", b"\0"]))


LINES: dict[str, Mutation] = {
    "duplicate a line": duplicate_a_line,
    "remove a line": remove_a_line,
    "swap lines": swap_lines,
    "another line": another_line,
    "replace a field": _in_some_lines(_replace),
    "swap fields": _in_some_lines(_swap),
    "drop a field": _in_some_lines(_drop),
    "add a field": _in_some_lines(_add),
    "mixed line ends": mixed_line_ends,
    "another encoding": another_encoding,
    "another separator": another_separator,
}


def crlf(rng: Random, data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def byte_order_mark(rng: Random, data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def blank_lines(rng: Random, data: bytes) -> bytes:
    """Never before the first line, which may be a heading or a count."""
    first, *rest = _lines(data)
    return b"\n".join([first, *(b"\n" * rng.choice([0, 0, 1]) + line for line in rest)])


def no_last_line_end(rng: Random, data: bytes) -> bytes:
    return data.removesuffix(b"\n")


def unchanged(rng: Random, data: bytes) -> bytes:
    return data


HARMLESS_TEXT: dict[str, Mutation] = {
    "unchanged": unchanged,
    "CR LF": crlf,
    "byte order mark": byte_order_mark,
    "blank lines": blank_lines,
    "no last line end": no_last_line_end,
}
