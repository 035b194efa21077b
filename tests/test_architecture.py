"""One arrow: every module stands in one layer, and imports only its own layer and those before it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import relwalk
from relwalk.experiment import train
from relwalk.graph.graph import Graph

SOURCE = Path(relwalk.__file__).parent


def under(folder: str, names: str) -> tuple[str, ...]:
    """A folder and the modules in it."""
    return (folder, *(f"{folder}.{name}" for name in names.split()))


# From the first to the last; within a layer modules may import each other.
LAYERS: dict[str, tuple[str, ...]] = {
    "base": (
        "",
        *["checks", "devices", "display", "errors", "exponentials", "faults", "files", "greatest", "launch", "machine"],
        *["mapped", "memory", "progress", "space", "together"],
    ),
    "graph": under(
        "graph",
        "answers cardinality datasets description download graph lists judgements overlap raw read split statistics "
        "texts vocabulary walks whole write",
    )
    + under(
        "graph.formats",
        "base columns encoding folder frame headings layout limits memory named numbered openke parquet pipe "
        "quoted rdf rdf_parser single source table trial trial_child zstd",
    ),
    "models": under(
        "models",
        "base blocks complex compressed compressor conve cp decomposition distances distmult factored hidden keys "
        "lowrank norms ntn orthogonal ote quantised reciprocal relation_matmul relwalk rescal rotate size structured "
        "tables transd transe transg transr tucker unstructured",
    ),
    "settings": under(
        "training",
        "all_entities bce candidates common kbgan likelihood negative_sampling negatives objectives precision rates "
        "regularizers schedule settings sigmoid softmax",
    )[1:],
    "probabilities": ("evaluation.candidate_features", "evaluation.probabilities"),
    "runs": under("runs", "checkpoint folder graph_files record run shard_files tensor_file"),
    "answers": ("answers", "candidates", "exports", "key_index", "prediction", "vector_files", "walk2vec"),
    "training": under(
        "training",
        "averaging checkpoint display footprint memory optim optimizers orthogonal_adagrad prepare start "
        "stopping trainer",
    ),
    "evaluation": under(
        "evaluation",
        "baselines calibration classification combination comparison confidence_fit estimate judged labelled logistic "
        "metrics probability_check probability_fit questions ranking records result score_blocks scores share_fit "
        "trained triple_features truth tuning",
    ),
    "sharded": under("sharded", "answers checkpoint fitting likelihood processes ranking shards view world"),
    "discovery": under(
        "discovery", "best doubtful duplicates evidence judged links neighbours questions shares sweep table"
    ),
    "compression": under("compression", "compress curve search"),
    "theory": under(
        "theory",
        "analyse closed_loop concentration correlation generate lemma orthogonality partition relation_similarity "
        "sphere sweep theorem walk",
    ),
    "report": under(
        "report",
        "anchors charts comparison components entity_map facts geometry heat_maps html page paper png probability "
        "results sections theorem tuning",
    ),
    "experiment": (
        "recipes",
        "shapes",
        "keywords",
        "catalogue",
        "children",
        "comparing",
        "comparing_child",
        "config",
        "generation",
        "planning",
        "experiment",
        "synthetic",
        "reporting",
        "testing",
        *under("tuning", "child display folder pacing pruning sampler space toml tune"),
        *under("reproduction", "child choice markdown measure page parts record reproduce result rows table write"),
    ),
    "serve": under(
        "serve",
        "app batching curation entity guard limits map_child map_maker mapping measures neighbourhood opened paths "
        "problems relation relearn server service spelling watch why",
    )
    + under("serve.routes", "entities judgements links maps predictions relations runs"),
    "cli": (
        "__main__",
        *under(
            "cli",
            "app compare compress console discover failures graphs load models options printable queries report "
            "reproduce runs serve streams theory training tune",
        ),
    ),
}
ORDER = list(LAYERS)
TRAINS = (["training"], ["experiment"])
SIBLINGS = {("evaluation", "training")}  # neither sees the other; the order of the list covers the other way


def name_of(path: Path) -> str:
    """A file as a module, without "relwalk.": "" is the package itself."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def layers_of(module: str) -> list[str]:
    return [layer for layer, modules in LAYERS.items() for name in modules if name == module]


def imports(path: Path) -> set[str]:
    """The modules of relwalk that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by dots"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {module_named(name) for name in names if name.split(".")[0] == "relwalk"}
    return found


def module_named(name: str) -> str:
    """relwalk.graph.read.read_graph -> graph.read."""
    own = name.removeprefix("relwalk").removeprefix(".")
    while own not in MODULES:
        own = own.rpartition(".")[0]
    return own


def test_every_module_stands_in_one_layer() -> None:
    assert {module: layers_of(module) for module in MODULES if len(layers_of(module)) != 1} == {}


def test_every_name_of_a_layer_is_a_module() -> None:
    assert [name for listed in LAYERS.values() for name in listed if name not in MODULES] == []


@pytest.mark.parametrize("module", [module for module in MODULES if module != ""])
def test_a_module_imports_only_its_layer_and_those_before_it(module: str) -> None:
    (own,) = layers_of(module)
    for imported in imports(MODULES[module]):
        (other,) = layers_of(imported)
        assert ORDER.index(other) <= ORDER.index(own), f"{module} ({own}) imports {imported} ({other})"
        assert (own, other) not in SIBLINGS, f"{module} imports {imported}, its sibling"


def test_the_package_itself_imports_nothing_before_it_is_asked() -> None:
    code = "import sys, relwalk; print([m for m in sys.modules if m.startswith('relwalk.')])"
    assert python(code) == "[]"


def test_a_report_trains_nothing() -> None:
    for module in MODULES:
        if layers_of(module) == ["report"]:
            assert not [name for name in imports(MODULES[module]) if layers_of(name) in TRAINS], module


def test_answers_load_nothing_that_trains(five: Graph, tmp_path: Path) -> None:
    train(five, dim=4, epochs=1, out=tmp_path / "run", threads=1)
    ask = "run = relwalk.load_run(sys.argv[1]); relwalk.predict(run, head='a', relation='likes')"
    loaded = python(f"import sys, relwalk; {ask}; print(*sys.modules)", str(tmp_path / "run")).split()
    ours = {name.removeprefix("relwalk.") for name in loaded if name.startswith("relwalk.")}
    assert {"prediction", "runs.run"} <= ours
    assert sorted(name for name in ours - {"training"} if layers_of(name) in TRAINS) == []


def test_a_service_starts_without_what_answers_do_not_need() -> None:
    """They take 70 MB and a second: those who ask for what needs them wait for them."""
    heavy = "('faiss', 'openTSNE', 'polars', 'pyoxigraph', 'scipy')"
    assert python(f"import sys, relwalk.serve.server; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_a_training_loads_no_parser_that_its_graph_does_not_need() -> None:
    code = "import sys, relwalk; relwalk.read_graph('world'); relwalk.train; print('pyoxigraph' in sys.modules)"
    assert python(code) == "False"


def python(code: str, *arguments: str) -> str:
    """What a process of its own prints."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_no_pickle_in_or_out() -> None:
    for path in MODULES.values():
        text = path.read_text()
        assert "import pickle" not in text and "torch.load(" not in text and "allow_pickle=True" not in text, path
