"""Measure on test whether the probabilities of runs are right, raw and as fitted on valid, and write it down.

    relwalk train world --dim 64 --epochs 60 --threads 1 --out runs/world
    python tools/calibration.py runs/world runs/wn18rr runs/fb15k-237

Adds to results/calibration.json, and makes results/calibration.md of it: calibration error of first answers, coverage
of lists, confidences beside how often they were test facts, triple classification. What was fitted is the run's own, or
is fitted now (--refit, or a run without). Runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import shlex
import time
from pathlib import Path
from typing import Any

import torch

from relwalk.evaluation.classification import classify
from relwalk.evaluation.probability_check import check_probabilities
from relwalk.evaluation.probability_fit import fit_probabilities
from relwalk.machine import machine_in_words
from relwalk.runs.run import Run, load_run

RESULTS = Path(__file__).parent.parent / "results" / "calibration"


def measure(run: Run, *, refit: bool, most: int) -> dict[str, Any]:
    """All figures of one run."""
    fitted, seconds = run.probabilities, None
    if fitted is None or refit:
        started = time.process_time()
        fitted = fit_probabilities(run.model, run.graph, seed=run.record.training.seed)
        seconds = round(time.process_time() - started, 1)
    if fitted is None:
        raise SystemExit(f"{run.path} has no valid triples: nothing could be fitted")
    training = run.record.training
    found = check_probabilities(run.model, run.graph, fitted, most=most)
    command = f"relwalk train {run.graph.name} --dim {run.record.model.dim} --epochs {training.epochs} --threads 1"
    return {
        **found.as_dict(),
        "command": shlex.join(shlex.split(command)),
        "seed": training.seed,
        "recipe": run.record.recipe,
        "valid_mrr": run.record.metrics.get("valid_mrr"),
        "fit_cpu_seconds": seconds,
        "most_triples": most,
        "machine": machine_in_words(),
        "classification": classify(run).as_dict()["probabilities"] | {"negatives": classify(run).negatives},
    }


def page(records: dict[str, Any]) -> str:
    """The records as Markdown."""
    lines = [
        "# Are the probabilities right?",
        "",
        "Made by `python tools/calibration.py RUN ...` on test, fitted on valid; one run each. First "
        "answers and lists: filtered, all entities, both sides, an entity never the answer to a question about itself "
        "unless its relation has loops. ECE: 15 bins of equal width, 95% bootstrap interval; *chance* is the ECE that "
        "perfect calibration would show on as many questions.",
        "",
        "| graph | training | valid MRR | questions | ECE raw | ECE fitted | chance | said | right |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, r in records.items():
        raw, fitted = r["shares"]
        ece = fitted["ece"]
        lines.append(
            f"| {name} | `{r['command']}`, seed {r['seed']} | {r['valid_mrr']:.3f} | {r['questions']:,} | "
            f"{raw['ece']['value']:.3f} | {ece['value']:.3f} [{ece['low']:.3f}, {ece['high']:.3f}] | "
            f"{fitted['chance']:.3f} | {fitted['confidence']:.3f} | {fitted['accuracy']:.3f} |"
        )
    lines += [
        "",
        "Lists of a coverage (`predict --coverage`). A list has one answer at least: where the first one is right more "
        "often than was asked, no list holds as little as was asked.",
        "",
    ]
    lines += ["| graph | asked | held the answer | have one answer | longer ones that held it | mean length | median |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, r in records.items():
        for c in r["lists"]:
            longer = "-" if c["found_longer"] is None else f"{c['found_longer']:.3f}"
            figures = f"{c['found']:.3f} | {c['single']:.3f} | {longer} | {c['mean_length']:,.1f}"
            figures += f" | {c['median_length']:,.0f}"
            lines.append(f"| {name} | {c['coverage']:g} | {figures} |")
    lines += ["", "Confidences of new links, of questions that the graph has some answer to, and of all others:", ""]
    lines += [
        "| graph | questions | confidence | said | were test facts | facts in the sample |",
        "|---|---|---|---|---|---|",
    ]
    for name, r in records.items():
        for c in r["confidences"]:
            kind = "with an answer" if c["asked"] else "without"
            figures = f"{c['said']:.4f} | {c['found']:.4f} | {c['facts']:,}"
            lines.append(f"| {name} | {kind} | {c['low']:g} to {c['high']:g} | {figures} |")
    lines += ["", "Triple classification, probability of being true:", ""]
    lines += ["| graph | negatives | base rate | ECE | Brier |", "|---|---|---|---|---|"]
    for name, r in records.items():
        c = r["classification"]
        lines.append(f"| {name} | {c['negatives']} | {c['base_rate']:.3g} | {c['ece']:.4f} | {c['brier']:.4f} |")
    machines = sorted({r["machine"] for r in records.values()})
    lines += ["", f"Machine: {'; '.join(machines)}, one thread, float32, shared with other work.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--refit", action="store_true", help="fit anew, also a run that was fitted")
    parser.add_argument("--most", type=int, default=2000, help="triples of test that are asked about")
    given = parser.parse_args()
    torch.set_num_threads(1)
    file = RESULTS.with_suffix(".json")
    records = json.loads(file.read_text()) if file.exists() else {}
    for path in given.runs:
        run = load_run(path)
        records[run.graph.name] = measure(run, refit=given.refit, most=given.most)
        file.write_text(json.dumps(records, indent=1) + "\n")
        RESULTS.with_suffix(".md").write_text(page(records))
        print(run.graph.name, "done", flush=True)


if __name__ == "__main__":
    main()
