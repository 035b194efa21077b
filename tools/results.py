"""Write the page of results, the form of a record, and the README's tables, from results/records.

python -m tools.results            (or: make results)
python -m tools.results --check    1 when one of them is not what the records say
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from relwalk.reproduction.choice import choice_table
from relwalk.reproduction.page import readme_table, results_page, with_part
from relwalk.reproduction.record import read_results, schema

ROOT = Path(__file__).parent.parent
README, RESULTS = ROOT / "README.md", ROOT / "results"


def documents() -> dict[Path, str]:
    """What each file that is made from the records should hold."""
    records = read_results(RESULTS / "records")
    return {
        RESULTS / "README.md": results_page(records),
        RESULTS / "record.schema.json": json.dumps(schema(), indent=1, ensure_ascii=False) + "\n",
        README: with_part(with_part(README.read_text("utf-8"), readme_table(records)), choice_table(records)),
    }


def stale() -> list[str]:
    """The files that are not what the records say."""
    found = documents()
    return [path.name for path, text in found.items() if not path.is_file() or path.read_text("utf-8") != text]


def main() -> int:
    if "--check" in sys.argv[1:]:
        print(*stale(), sep="\n")
        return int(bool(stale()))
    for path, text in documents().items():
        path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
