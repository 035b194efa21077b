"""The verbs on the theory: analyse, walk, generate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relwalk.checks import DIM, DIRECTIONS
from relwalk.cli import console, options, runs

if TYPE_CHECKING:
    from relwalk.runs.run import Run
    from relwalk.theory.closed_loop import ClosedLoop


def analyse(
    run: options.RunFolder,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these: orthogonality, similarity, concentration, lemma, correlation, theorem, limits, "
            "calibration."
        ),
    ] = None,
    directions: Annotated[
        int, typer.Option(min=10, max=DIRECTIONS, help="Knowledge vectors drawn from the sphere.")
    ] = 1000,
    sample: Annotated[int, typer.Option(min=2, help="Entities sampled for the paper's sigma.")] = 10_000,
    truth: options.Truth = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything drawn.")] = 0,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Measure every assumption and consequence of the theory on a trained run."""
    from relwalk.theory.analyse import analyse as measure

    loaded = runs.open_run(run, device=device, anyway=anyway)
    loop = _closed_loop(loaded, truth, seed) if truth is not None else None
    found = measure(
        loaded.model,
        loaded.graph,
        directions=directions,
        sample=sample,
        seed=seed,
        parts=part,
        progress=True,
    )
    if as_json:
        closed = {"closed_loop": loop.as_dict()} if loop is not None else {}
        about = {"run": str(run), **runs.state_of(loaded)}
        typer.echo(json.dumps({**about, **found.as_dict(), **closed}, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(str(found) + (f"\n\nclosed loop\n{loop}" if loop is not None else ""))


def walk(
    run: options.RunFolder,
    start: Annotated[
        str | None, typer.Option(help="The entity the walkers begin at; none: triples along a slow c.")
    ] = None,
    relation: Annotated[str | None, typer.Option(help="Hold the relation: every step takes this one.")] = None,
    hold: Annotated[str, typer.Option(help="nothing, or entity: begin every step at the start.")] = "nothing",
    steps: Annotated[int, typer.Option(min=1, help="Triples of a path.")] = 5,
    paths: Annotated[int, typer.Option(min=1, help="Walkers.")] = 10,
    step_size: Annotated[float, typer.Option(help="How far c moves within a triple.")] = 0.1,
    temperature: Annotated[float, typer.Option(help="Divides every score: below 1 walks nearer to the best.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the walk.")] = 0,
    anyway: options.Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Sample paths by name from the learned model: the paper's generative process, run forwards."""
    from relwalk.theory.walk import walk as draw

    loaded = runs.open_run(run, anyway=anyway)
    found = draw(
        loaded.model,
        loaded.graph,
        start=start,
        relation=relation,
        hold=hold,  # type: ignore[arg-type]
        steps=steps,
        paths=paths,
        step_size=step_size,
        temperature=temperature,
        seed=seed,
    )
    runs.say(loaded, found, as_json)


def generate(
    out: Annotated[Path, typer.Option(help="The folder to write: train, valid, test, and the true model in truth/.")],
    entities: Annotated[int, typer.Option(min=2, help="How many entities.")] = 200,
    relations: Annotated[int, typer.Option(min=1, help="How many relations.")] = 4,
    triples: Annotated[int, typer.Option(min=1, help="How many distinct triples.")] = 10_000,
    dim: Annotated[int, typer.Option(min=1, max=DIM, help="Dimension of the true model.")] = 16,
    entity_scale: Annotated[
        float, typer.Option(help="Length of the entities over √d: below 2 little is to be seen.")
    ] = 3.0,
    step_size: Annotated[float, typer.Option(help="How far c moves within a triple.")] = 0.01,
    valid: options.ValidShare = 0.1,
    test: options.TestShare = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the model and of its triples.")] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw a whole graph from a RelWalk with known embeddings, to learn from and compare with."""
    from relwalk.errors import RefusedOverwrite
    from relwalk.generation import save_generated
    from relwalk.graph.write import in_the_way
    from relwalk.theory.generate import generate as draw

    if not force and in_the_way(out):  # before anything is drawn
        raise RefusedOverwrite(out)
    generated = draw(
        entities,
        relations,
        triples,
        dim,
        entity_scale=entity_scale,
        step_size=step_size,
        valid=valid,
        test=test,
        seed=seed,
    )
    files = save_generated(generated, out, force=force)
    console.note(str(generated))
    typer.echo(json.dumps({"out": str(out), "files": [str(file) for file in files]}) if as_json else str(out))


def _closed_loop(run: Run, truth: Path, seed: int) -> ClosedLoop:
    from relwalk.generation import load_truth_of
    from relwalk.theory.closed_loop import closed_loop

    console.note("closed loop")
    return closed_loop(load_truth_of(run, truth), run.model, seed=seed)
