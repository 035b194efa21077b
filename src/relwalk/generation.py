"""A generated graph on disk: the files to learn from, and beside them the model that drew it, as a run."""

from __future__ import annotations

from pathlib import Path

from relwalk.errors import RunError
from relwalk.graph.write import write_graph
from relwalk.models.relwalk import RelWalk
from relwalk.runs.folder import begin
from relwalk.runs.record import GraphRecord, ModelRecord, RunRecord
from relwalk.runs.run import Run, finish_run, load_run, write_new
from relwalk.theory.generate import Generated
from relwalk.training.settings import TrainingSettings

TRUTH = "truth"  # the folder of the true model


def save_generated(generated: Generated, out: Path, *, force: bool = False) -> list[Path]:
    """train, valid and test as text, names in their order, and the run `truth`, which every verb on runs reads."""
    graph, model = generated.graph, generated.model
    files = write_graph(graph, out, "rotate", force=force)
    record = RunRecord(
        recipe="generated",
        graph=GraphRecord(
            name=graph.name,
            source="relwalk generate",
            fingerprint=graph.fingerprint,
            entities=len(graph.entities),
            relations=len(graph.relations),
            notes=graph.notes,
        ),
        model=ModelRecord(name="relwalk", dim=model.dim),
        training=TrainingSettings.model_validate({}),
    )

    def write(folder: Path) -> None:
        finish_run(folder, write_new(folder, record, graph), model, {"step_size": generated.step_size})

    with begin(out / TRUTH, write, force=force):
        pass  # all of it is written at once
    return [*files, out / TRUTH]


def load_generated(path: Path) -> Generated:
    """What `save_generated` wrote: the folder, or the run `truth` in it."""
    run = load_run(path / TRUTH if (path / TRUTH).is_dir() else path)
    step_size = run.record.metrics.get("step_size")
    if run.record.recipe != "generated" or not isinstance(run.model, RelWalk) or not isinstance(step_size, float):
        raise RunError(f"{path} is not a generated graph. Give the folder that `relwalk generate` made.")
    return Generated(run.graph, run.model, step_size)


def load_truth_of(run: Run, path: Path) -> Generated:
    """The generated graph that a run learned; another one is refused."""
    generated = load_generated(path)
    if run.graph.entities.names != generated.graph.entities.names:
        raise RunError(f"{path} drew another graph than the run learned. Train on it: relwalk train {path}")
    return generated
