"""The verbs on models: train, resume, evaluate, classify, predict, export."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from relwalk.cli import console, options
from relwalk.errors import RelWalkError


def train(
    graph: options.GraphSource,
    out: Annotated[Path | None, typer.Option(help="Where the run goes; runs/<graph> when not given.")] = None,
    recipe: Annotated[str, typer.Option(help="Settings that belong together: default or paper.")] = "default",
    model: Annotated[str | None, typer.Option(help="The model.")] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Dimension of the entities.")] = None,
    orthogonality: Annotated[str | None, typer.Option(help="exact, or soft: the paper's penalty.")] = None,
    lambda1: Annotated[float | None, typer.Option(help="Weight of ||R1ᵀR1 - I||² (soft).")] = None,
    lambda2: Annotated[float | None, typer.Option(help="Weight of ||R2ᵀR2 - I||² (soft).")] = None,
    reciprocal: Annotated[
        bool | None, typer.Option("--reciprocal", help="Ask for heads by an inverse of each relation (likelihood).")
    ] = None,
    start: Annotated[str | None, typer.Option(help="Where the matrices start: signs, rotations, identity.")] = None,
    objective: Annotated[str | None, typer.Option(help="likelihood, margin, hardest, mean or softmax.")] = None,
    sampler: Annotated[str | None, typer.Option(help="Negatives: uniform, bernoulli or argument.")] = None,
    negatives: Annotated[int | None, typer.Option(help="False triples per true one.")] = None,
    avoid_known: Annotated[
        bool | None, typer.Option("--avoid-known/--allow-known", help="Draw no known true triple as a negative.")
    ] = None,
    eta: Annotated[float | None, typer.Option(help="Likelihood ratio asked for: the margin is 2d log(eta).")] = None,
    margin: Annotated[float | None, typer.Option(help="The margin itself, instead of --eta.")] = None,
    l2: Annotated[float | None, typer.Option(help="Weight of the squared norms of the entities.")] = None,
    n3: Annotated[float | None, typer.Option(help="Weight of the cubed coordinates of the entities (N3).")] = None,
    label_smoothing: Annotated[
        float | None, typer.Option(help="Share of an answer spread over all entities (likelihood).")
    ] = None,
    entity_dropout: Annotated[
        float | None, typer.Option(help="Dropout on the entity a question is about (likelihood).")
    ] = None,
    query_dropout: Annotated[float | None, typer.Option(help="Dropout on the question itself (likelihood).")] = None,
    relation_weight: Annotated[
        float | None, typer.Option(help="Weight of -log p(R | h, t) beside the answers (likelihood).")
    ] = None,
    candidates_per_step: Annotated[
        int | None,
        typer.Option(help="Entities drawn for the sum of a step; 0: all; else by size (likelihood)."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Of the products: auto, float32 or bfloat16 (likelihood).")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="sgd, adagrad, rowwise-adagrad or adam.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of the entities.")] = None,
    relation_lr: Annotated[
        float | None, typer.Option(help="Learning rate of the relations (exact: of their rotations).")
    ] = None,
    clip: Annotated[float | None, typer.Option(help="Longest gradient of all free weights together.")] = None,
    schedule: Annotated[
        str | None, typer.Option(help="How the rates fall: constant, linear, cosine or plateau.")
    ] = None,
    warmup: Annotated[float | None, typer.Option(help="Epochs over which the rates rise from 0.")] = None,
    plateau_factor: Annotated[float | None, typer.Option(help="What a plateau multiplies the rates with.")] = None,
    plateau_patience: Annotated[int | None, typer.Option(help="Validations without gain that make a plateau.")] = None,
    average_from: Annotated[
        int | None, typer.Option(help="Epoch from which the weights of all epochs are averaged.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training triples, at most.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Questions (likelihood) or true triples a step.")] = None,
    batches: Annotated[int | None, typer.Option(help="Steps an epoch, instead of --batch-size.")] = None,
    validate_every: Annotated[int | None, typer.Option(help="Epochs between two validations.")] = None,
    patience: Annotated[int | None, typer.Option(help="Validations without gain before training stops.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random in training.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    checkpoint_seconds: Annotated[float | None, typer.Option(help="Least time between two checkpoints.")] = None,
    device: options.Device = "cpu",
    force: options.Force = False,
    as_json: options.Json = False,
    data_dir: options.DataDir = None,
    format: options.Format = None,
    on_bad_line: options.OnBadLine = "error",
    valid: options.ValidShare = 0.1,
    test: options.TestShare = 0.1,
    split_seed: options.SplitSeed = 0,
) -> None:
    """Learn a graph. The run is saved as it goes; `relwalk resume` continues it after any interruption."""
    from relwalk import experiment
    from relwalk.cli.load import load_graph, say_graph
    from relwalk.recipes import recipe as find_recipe

    loaded = load_graph(graph, data_dir, format, on_bad_line, valid, test, split_seed)
    say_graph(loaded)
    chosen = find_recipe(recipe, loaded.name)
    size = dim or chosen.dim
    if margin is not None:
        eta = _eta_of(margin, eta, size)
    model_options = {
        "orthogonality": orthogonality,
        "lambda1": lambda1,
        "lambda2": lambda2,
        "start_from": start,
        "reciprocal": reciprocal,
    }
    training = {
        "objective": objective,
        "sampler": sampler,
        "negatives": negatives,
        "avoid_known": avoid_known,
        "eta": eta,
        "l2": l2,
        "n3": n3,
        "label_smoothing": label_smoothing,
        "entity_dropout": entity_dropout,
        "query_dropout": query_dropout,
        "relation_weight": relation_weight,
        "candidates_per_step": candidates_per_step,
        "precision": precision,
        "optimizer": optimizer,
        "lr": lr,
        "relation_lr": relation_lr,
        "clip": clip,
        "schedule": schedule,
        "warmup": warmup,
        "plateau_factor": plateau_factor,
        "plateau_patience": plateau_patience,
        "average_from": average_from,
        "epochs": epochs,
        "batch_size": batch_size,
        "batches": batches,
        "validate_every": validate_every,
        "patience": patience,
        "seed": seed,
        "threads": threads,
        "checkpoint_seconds": checkpoint_seconds,
    }
    with console.settings_errors():
        given = _given(training)
        settings = experiment.make_settings(chosen.training, given)
        _say_candidates(settings, loaded)
        path = out or Path("runs") / loaded.name
        with console.training_observer(settings.epochs) as observer:
            run = experiment.train(
                loaded,
                recipe=recipe,
                model=model,
                dim=dim,
                options=_given(model_options),
                out=path,
                force=force,
                device=device,
                observer=observer,
                source=graph,
                **given,
            )
    _say_run(run, as_json)


def resume(
    run: options.RunFolder,
    epochs: Annotated[int | None, typer.Option(help="Train up to this many epochs, also a finished run.")] = None,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Continue a run that was interrupted, to the same weights as if it had not been."""
    from relwalk import experiment
    from relwalk.run import CHECKPOINT, read_record
    from relwalk.training.checkpoint import read_checkpoint

    record = read_record(run)
    done = read_checkpoint(run / CHECKPOINT)[1].epoch if (run / CHECKPOINT).is_file() else 0
    console.note(f"{run}: {record.status}, {done} of {epochs or record.training.epochs} epochs done")
    with console.settings_errors(), console.training_observer(epochs or record.training.epochs, done) as observer:
        resumed = experiment.resume(run, epochs=epochs, device=device, observer=observer)
    _say_run(resumed, as_json)


def evaluate(
    run: options.RunFolder,
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "test",
    candidates: Annotated[
        str, typer.Option(help="all entities; argument: the relation's, from train+valid+test; argument-train.")
    ] = "all",
    raw: Annotated[bool, typer.Option("--raw", help="Do not leave out the other known answers.")] = False,
    by_relation: Annotated[bool, typer.Option("--by-relation", help="Figures of each relation too.")] = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Rank the true head and tail of every triple of a split among all candidates."""
    from relwalk.errors import choose
    from relwalk.evaluation.ranking import rank
    from relwalk.graph.graph import SPLITS
    from relwalk.run import load_run

    choose("split", split, dict.fromkeys(SPLITS))
    loaded = load_run(run, device=device)
    found = rank(loaded.model, loaded.graph, split, filtered=not raw, candidates=candidates)  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps({"run": str(run), **found.as_dict()}, ensure_ascii=False))
        return
    typer.echo(str(found))
    if by_relation:
        typer.echo(found.details())


def classify(
    run: options.RunFolder,
    seed: Annotated[int, typer.Option(help="Seed of the negatives, where the graph ships none.")] = 0,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Tell true from false triples by one threshold per relation, chosen on valid and judged on test."""
    from relwalk.evaluation.classification import classify as classify_triples
    from relwalk.run import load_run

    loaded = load_run(run, device=device)
    console.result(classify_triples(loaded.model, loaded.graph, seed=seed), as_json)


def predict(
    run: options.RunFolder,
    head: Annotated[str | None, typer.Option(help="The head, by name or label.")] = None,
    relation: Annotated[str | None, typer.Option(help="The relation.")] = None,
    tail: Annotated[str | None, typer.Option(help="The tail.")] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Many questions: head, relation, tail, with ? for what is asked; - is stdin."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--top", min=1, help="How many answers.")] = 10,
    only_new: Annotated[bool, typer.Option("--only-new", help="Leave out what the graph already says.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where the answers of --queries go: .tsv, .csv or .jsonl.")] = None,
    device: options.Device = "cpu",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """The most probable tails, heads or relations: give two of --head, --relation, --tail, or a file of --queries."""
    from relwalk.cli.queries import predict_file
    from relwalk.prediction import predict as ask
    from relwalk.run import load_run

    if queries is not None:
        if not head is relation is tail is None:
            raise RelWalkError("--queries holds the questions: leave out --head, --relation and --tail")
        predict_file(run, queries, out, k=k, only_new=only_new, device=device, force=force, as_json=as_json)
        return
    if out is not None:
        raise RelWalkError("--out is for the answers to a file of --queries: give one, or leave out --out")
    loaded = load_run(run, device=device)
    answers = ask(loaded, head=head, relation=relation, tail=tail, k=k, only_new=only_new)
    console.result(answers, as_json)


def export(
    run: options.RunFolder,
    out: Annotated[Path, typer.Argument(help="The file (npz, word2vec) or folder (parquet, projector) to write.")],
    to: Annotated[str, typer.Option(help="npz, parquet, word2vec or projector.")] = "npz",
    force: options.Force = False,
) -> None:
    """Write the embeddings for other tools."""
    from relwalk.exports import export as write
    from relwalk.run import load_run

    for path in write(load_run(run), out, to, force=force):
        typer.echo(str(path))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _say_candidates(settings: Any, graph: Any) -> None:
    from relwalk.training.candidates import choose_candidates

    if settings.objective != "likelihood":
        return
    drawn = choose_candidates(settings.candidates_per_step, len(graph.entities))
    if drawn:
        console.note(
            f"each step draws {drawn:,} of {len(graph.entities):,} entities, weighted to stand for all "
            "(--candidates-per-step 0 takes all of them)"
        )


def _eta_of(margin: float, eta: float | None, dim: int) -> float:
    if eta is not None:
        raise RelWalkError("--margin and --eta say the same thing: give one of them")
    if margin <= 0:
        raise RelWalkError(f"--margin is {margin}; expected more than 0")
    return math.exp(margin / (2 * dim))


def _say_run(run: Any, as_json: bool) -> None:
    metrics = run.record.metrics
    if as_json:
        typer.echo(json.dumps({"run": str(run.path), "status": run.record.status, "metrics": metrics}))
        return
    best = f", valid MRR {metrics['valid_mrr']:.4f} at epoch {metrics['best_epoch']}" if metrics["valid_mrr"] else ""
    typer.echo(f"saved {run.path}: {metrics['epochs']} epochs{best}")
