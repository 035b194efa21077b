"""Judgements of people on predicted links, kept beside a run.

A file that only grows, a line of JSON for each word that was said, on the disk before it is answered. A line that a
kill cut short is no judgement; what was said before it stays.
"""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relwalk.graph.graph import Graph
from relwalk.graph.judgements import COLUMNS, Judgement, last_words, read_judgements

FILE = "judgements.jsonl"


class Judgements:
    """What was said of the links of a run; may be asked and added to by several threads."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._said: list[Judgement] = []
        self._times: dict[tuple[str, str, str], str] = {}
        if self.path.exists():
            self._mend()
            self._said = read_judgements(self.path)
            self._times = _times(self.path)

    def _mend(self) -> None:
        """Cut off a last line that has no end, so that the next one begins at the start of a line."""
        content = self.path.read_bytes()
        if content and not content.endswith(b"\n"):
            with self.path.open("rb+") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def add(self, judgement: Judgement) -> None:
        """Keep one: it is on the disk when this returns."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({**judgement.as_dict(), "time": time}, ensure_ascii=False) + "\n"
        with self._lock:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, line.encode("utf-8", "replace"))
                os.fsync(handle)
            finally:
                os.close(handle)
            self._said.append(judgement)
            self._times[judgement.triple] = time

    def listing(self, graph: Graph) -> list[dict[str, Any]]:
        """What counts of each link, with labels and times."""
        return [self._row(one, graph) for one in last_words(list(self._said)).values()]

    def _row(self, one: Judgement, graph: Graph) -> dict[str, Any]:
        def label(words: Any, name: str) -> str:
            return words.label(words.id(name)) if name in words else name

        return {
            **one.as_dict(),
            "time": self._times.get(one.triple),
            "head_label": label(graph.entities, one.head),
            "relation_label": label(graph.relations, one.relation),
            "tail_label": label(graph.entities, one.tail),
        }

    def as_tsv(self) -> str:
        """A table for `relwalk train --judged`; what is put off is left out."""
        text = io.StringIO()
        rows = csv.writer(text, delimiter="\t", lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(tuple(one.as_dict().values()) for one in self._decided())
        return text.getvalue()

    def as_jsonl(self, graph: Graph) -> str:
        return "".join(json.dumps(self._row(one, graph), ensure_ascii=False) + "\n" for one in self._decided())

    def _decided(self) -> list[Judgement]:
        return [one for one in last_words(list(self._said)).values() if one.verdict != "later"]


def _times(path: Path) -> dict[tuple[str, str, str], str]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return {(one["head"], one["relation"], one["tail"]): str(one.get("time", "")) for one in lines}
