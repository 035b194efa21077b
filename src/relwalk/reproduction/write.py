"""A reproduction as files: Markdown, JSON and a page."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from relwalk.files import write_atomically
from relwalk.report.html import Cell, joined, name_cell, phrase, table, text, title, whole_page
from relwalk.reproduction.markdown import PROTOCOLS, part_markdown, target_markdown
from relwalk.reproduction.result import Reproduction
from relwalk.reproduction.table import by_dataset, heading


def write_reproduction(found: Reproduction, folder: Path, figures: Path) -> Reproduction:
    """Write the files of a reproduction into its folder; the same with their names."""
    paths = [folder / f"{found.target}{ending}" for ending in (".md", ".json", ".html")]
    found = replace(found, files=tuple(map(str, paths)))
    drawings = os.path.relpath(figures, folder)
    words = f"# {found.target}\n\n{target_markdown(found.target, found.records, found.lines, drawings)}\n"
    content = json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n"
    for path, made in zip(paths, (words, content, _page(found, figures)), strict=True):
        write_atomically(path, made.encode("utf-8", "replace"))
    return found


def _page(found: Reproduction, figures: Path) -> str:
    parts: list[Markup] = []
    for dataset, lines in by_dataset(found.lines).items():
        cells = [line.cells() for line in lines]
        rows = [[name_cell(system), *(Cell(text(cell)) for cell in rest)] for system, *rest in cells]
        parts += [title(dataset), table(heading(lines), rows)]
    for record in found.records:
        drawing = figures / f"{record.name}-{found.target}.svg"
        if drawing.is_file():
            parts.append(phrase("<figure>{}</figure>", Markup(drawing.read_text())))
        if found.target != "table2":
            parts.append(phrase("<pre>{}</pre>", part_markdown(found.target, record, "figures")))
    return whole_page("reproduce.html", target=found.target, words=PROTOCOLS, parts=joined(parts))
