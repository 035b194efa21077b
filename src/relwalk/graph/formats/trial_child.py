"""A program of its own, run by `trial`: reads Parquet files and tells one line of JSON about each."""

from __future__ import annotations

import json
import sys

import polars as pl


def attempt(path: str, limit: int) -> dict[str, int | str]:
    """The rows that a file announces, and the error of reading them; they are not read when they are too many."""
    try:
        rows = int(pl.scan_parquet(path, glob=False, hive_partitioning=False).select(pl.len()).collect().item())
        if rows <= limit:
            pl.read_parquet(path, glob=False, hive_partitioning=False)
        return {"rows": rows}
    except pl.exceptions.PanicException:
        return {"error": "its pages are damaged"}
    except Exception as error:
        return {"error": str(error) or type(error).__name__}


if __name__ == "__main__":
    words = sys.argv[1:]
    for path, limit in zip(words[::2], words[1::2], strict=True):
        sys.stdout.write(json.dumps(attempt(path, int(limit))) + "\n")
        sys.stdout.flush()
