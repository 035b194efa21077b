"""What `reproduce` found: a frozen value that prints itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relwalk.display import Shown, caption, html_table
from relwalk.reproduction.markdown import target_markdown
from relwalk.reproduction.record import ResultRecord
from relwalk.reproduction.table import Line, by_dataset, heading, table2_lines


@dataclass(frozen=True, repr=False)
class Reproduction(Shown):
    """A table or figure of the paper made again: the records of its rows."""

    target: str
    records: tuple[ResultRecord, ...]
    path: str | None = None  # of its folder
    files: tuple[str, ...] = ()

    @property
    def lines(self) -> list[Line]:
        """Every system of the paper's table for these data sets, published figure and ours side by side."""
        return table2_lines(self.records, list(dict.fromkeys(record.dataset for record in self.records)))

    def as_dict(self) -> dict[str, Any]:
        rows = [
            {"record": r.name, "status": r.status, "reason": r.reason, "theory": r.theory.get(self.target)}
            for r in self.records
        ]
        about = {"target": self.target, "path": self.path, "files": list(self.files)}
        return {**about, "rows": rows, "lines": [line.as_dict() for line in self.lines]}

    def summary(self) -> str:
        done = sum(record.status == "finished" for record in self.records)
        return f"{self.target}: {done} of {len(self.records)} rows"

    def _repr_html_(self) -> str:
        tables = [
            caption(dataset) + html_table(heading(lines), [line.cells() for line in lines])
            for dataset, lines in by_dataset(self.lines).items()
        ]
        return caption(self.summary()) + "".join(tables)

    def __str__(self) -> str:
        return target_markdown(self.target, self.records, self.lines)
