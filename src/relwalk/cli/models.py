"""The verbs on models: train, tune, resume, evaluate, classify, predict, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from relwalk.cli import console, options, runs
from relwalk.errors import RelWalkError


def train() -> None:
    """Learn a graph. The run is saved as it goes, also at Ctrl-C; `relwalk resume` continues it after any interruption.
    With --force it takes the place of an earlier one when it is finished."""
    # The verb itself, with a flag for every setting, is `relwalk.cli.training`.


def tune() -> None:
    """Search for the settings that suit a graph, in the time there is. The first trial is the default recipe, then
    Optuna decides; settings that are given are fixed. Interrupted, it goes on when the same command is given again;
    given again while it runs, the two share the work."""
    # The verb itself, with a flag for every setting, is `relwalk.cli.tune`.


def resume(
    run: options.RunFolder,
    epochs: Annotated[int | None, typer.Option(help="Train up to this many epochs, also a finished run.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Train up to this time, as 20m, if it was begun with a budget.")
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Go on at this rate of the entities, say after it diverged.")] = None,
    relation_lr: Annotated[float | None, typer.Option(help="Go on at this rate of the relations.")] = None,
    threads: Annotated[int | None, typer.Option(help="Go on with so many CPU threads; this changes rounding.")] = None,
    on_disk: Annotated[bool, typer.Option("--on-disk", help=options.ON_DISK)] = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Continue a run that was interrupted, to the same weights as if it had not been."""
    from relwalk import experiment
    from relwalk.runs.folder import folder_to_resume, whole_run
    from relwalk.runs.run import read_state
    from relwalk.training.memory import keep_freed_memory

    run = whole_run(run)
    keep_freed_memory()
    console.note(f"{run} is {read_state(folder_to_resume(run))}")
    with runs.stoppable(run) as stop:
        changed = {"epochs": epochs, "budget": budget, "lr": lr, "relation_lr": relation_lr, "threads": threads}
        resumed = experiment.resume(run, **changed, device=device, on_disk=on_disk, progress=True, stop=stop)  # type: ignore[arg-type]
    runs.say_trained(resumed, as_json)


def evaluate(
    run: options.RunFolder,
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "test",
    candidates: Annotated[
        str, typer.Option(help="all entities; argument: the relation's, from train+valid+test; argument-train.")
    ] = "all",
    raw: Annotated[bool, typer.Option("--raw", help="Do not leave out the other known answers.")] = False,
    by_relation: Annotated[bool, typer.Option("--by-relation", help="Figures of each relation too.")] = False,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Rank the true head and tail of every triple of a split among all candidates."""
    from relwalk.errors import choose
    from relwalk.evaluation.ranking import rank
    from relwalk.graph.graph import SPLITS

    choose("split", split, dict.fromkeys(SPLITS))
    loaded, among = runs.open_part(run, device=device, anyway=anyway)
    how = {"filtered": not raw, "candidates": candidates, "progress": True}
    found = rank(loaded.model, loaded.graph, split, **how, scores=among.scores(loaded.model) if among else None)  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps({"run": str(run), **runs.state_of(loaded), **found.as_dict()}, ensure_ascii=False))
        return
    typer.echo(str(found))
    if by_relation:
        typer.echo(found.details())


def classify(
    run: options.RunFolder,
    triples: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Triples to judge, in place of test: head, relation, tail; - is stdin."),
    ] = None,
    combine: Annotated[
        bool,
        typer.Option(
            "--combine",
            help="Judge by the score, log p(t|h,R), log p(h|R,t), log p(R|h,t) and counts as well, weighed on valid "
            "for each relation.",
        ),
    ] = False,
    base_rate: Annotated[
        float | None,
        typer.Option(help="How many of all triples asked about are true; else as many as in valid with its negatives."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the negatives, where the graph ships none.")] = 0,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
    as_json: options.Json = False,
) -> None:
    """Tell true from false triples, and how probably, by thresholds and probabilities from valid, judged on test."""
    from relwalk.evaluation.classification import classify as classify_triples

    loaded = runs.open_run(run, device=device, anyway=anyway)
    if triples is not None:
        from relwalk.cli.queries import read_triples
        from relwalk.evaluation.judged import judge_triples

        asked = read_triples(triples, loaded.graph)
        how = {"combine": combine, "base_rate": base_rate, "seed": seed}
        return runs.say(loaded, judge_triples(loaded, asked, **how), as_json)  # type: ignore[arg-type]
    found = classify_triples(loaded, combine=combine, base_rate=base_rate, seed=seed, progress=True)
    runs.say(loaded, found, as_json)


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
    k: Annotated[int | None, typer.Option("-k", "--top", min=1, help="How many answers; else 10.")] = None,
    coverage: Annotated[
        float | None,
        typer.Option(help="In place of -k: the shortest list of new answers that holds the true one so often, as 0.9."),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="The model's own p, not what valid taught about it.")] = False,
    only_new: Annotated[bool, typer.Option("--only-new", help="Leave out what the graph already says.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where the answers of --queries go: .tsv, .csv or .jsonl.")] = None,
    device: options.Device = "cpu",
    anyway: options.Anyway = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """The most probable tails, heads or relations: give two of --head, --relation, --tail, or a file of --queries.

    share is p(answer | question) among all answers; confidence is the chance that a new link is a fact which the graph
    lacks, judged by how often such links were held-out facts: a lower bound, as the graph is incomplete.
    """
    from relwalk.cli.queries import predict_file
    from relwalk.prediction import predict as ask

    if queries is not None:
        if not head is relation is tail is None:
            raise RelWalkError("--queries holds the questions: leave out --head, --relation and --tail")
        how = {"k": k, "coverage": coverage, "raw": raw, "only_new": only_new}
        loaded, among = runs.open_part(run, device=device, anyway=anyway, options=how)
        predict_file(loaded, queries, out, how=how, force=force, as_json=as_json, among=among)
        return
    if out is not None:
        raise RelWalkError("--out is for the answers to a file of --queries: give one, or leave out --out")
    question = {"head": head, "relation": relation, "tail": tail}
    how = {"k": k, "coverage": coverage, "raw": raw, "only_new": only_new}
    loaded, among = runs.open_part(run, device=device, anyway=anyway, options={**question, **how})
    runs.say(loaded, ask(loaded, **question, **how, asker=among.asker(loaded) if among else None), as_json)  # type: ignore[arg-type]


def export(
    run: options.RunFolder,
    out: Annotated[Path, typer.Argument(help="The file, or the folder (parquet, projector), to write.")],
    to: Annotated[str, typer.Option(help="npz, safetensors, parquet, word2vec or projector.")] = "npz",
    anyway: options.Anyway = False,
    force: options.Force = False,
) -> None:
    """Write the embeddings for other tools."""
    from relwalk.exports import export as write

    for path in write(runs.open_run(run, anyway=anyway), out, to, force=force):
        typer.echo(str(path))
