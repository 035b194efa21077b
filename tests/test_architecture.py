"""One arrow: a folder imports only what stands before it."""

from __future__ import annotations

import ast
from pathlib import Path

import relwalk

SOURCE = Path(relwalk.__file__).parent
# training and evaluation are siblings: both may see what stands before them, neither the other.
ALLOWED = {
    "graph": {"graph"},
    "models": {"models"},
    "training": {"graph", "models", "training"},
    "evaluation": {"graph", "models", "evaluation"},
    "theory": {"graph", "models", "training", "evaluation", "theory"},
    "report": {
        *("graph", "models", "training", "evaluation", "theory"),
        *("run", "prediction", "experiment", "generation", "report"),
    },
}
EVERYWHERE = {"errors", "files", ""}


def imports(path: Path) -> set[str]:
    """The parts of relwalk a module imports, anywhere in it: "" is the package itself (its version)."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {(*name.split("."), "")[1] for name in names if name.split(".")[0] == "relwalk"}
    return found


def test_folders_import_only_what_stands_before_them() -> None:
    for folder, allowed in ALLOWED.items():
        for path in (SOURCE / folder).rglob("*.py"):
            extra = imports(path) - allowed - EVERYWHERE
            assert not extra, f"{path.relative_to(SOURCE)} imports {sorted(extra)}"


def test_nothing_but_the_command_line_imports_the_command_line() -> None:
    for path in SOURCE.rglob("*.py"):
        if "cli" not in path.parts and path.name != "__main__.py":
            assert "cli" not in imports(path), path


def test_no_pickle_in_or_out() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text and "torch.load(" not in text and "allow_pickle=True" not in text, path
