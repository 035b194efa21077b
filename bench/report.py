"""results.json in words: RESULTS.md and the plots beside it, and the table of the README.

python bench/report.py                 writes RESULTS.md and plots/, prints the tables
python bench/report.py --readme        prints the README's table, writes nothing
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from machine import in_words
from process import FOLDER, Row

SIDES = {"ours": "relwalk", "pykeen": "PyKEEN", "torchkge": "TorchKGE"}


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    titles = list(head)
    lines = [" | ".join(titles), " | ".join(["---"] + ["---:"] * (len(titles) - 1))]
    return [f"| {line} |" for line in [*lines, *(" | ".join(str(cell) for cell in row) for row in rows)]] + [""]


def number(value: float | None, unit: str = "") -> str:
    if value is None:
        return "-"
    size = abs(value)
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4
    return f"{value:,.{places}f}{unit}"


def spread(row: Row) -> str:
    low, high = row.get("spread", (None, None))
    return "-" if low is None else f"{number(low)} to {number(high)}"


def failed(name: str, row: Row, columns: int) -> list[str]:
    return [name, f"*{row.get('error', 'not measured')}*", *["-"] * (columns - 2)]


def training(found: Row) -> list[str]:
    peak = max(found["peak"].get("float32", 0.0), found["peak"].get("bfloat16", 0.0))
    rows = []
    for graph, sides in found["training"].items():
        for side, row in sides.items():
            name = f"{graph}, {SIDES[side]}"
            if "error" in row:
                rows.append(failed(name, row, 7))
                continue
            share = row["operations"] / row["epoch_seconds"] / peak / 1e9 if "operations" in row and peak else None
            steps = f"{row['measured_steps']} of {row['steps_per_epoch']}"
            speed = f"{share:.0%}" if share is not None else "-"
            memory = number(row["peak_mb"])
            rows.append([name, number(row["epoch_seconds"]), spread(row), f"{row['rows']:,}", steps, speed, memory])
    head = ("training", "seconds an epoch", "spread", "rows", "steps measured", "of the best peak", "peak MB")
    return ["## Training: one epoch, d = 100, batches of 1024", "", *table(head, rows)]


def ranking(found: Row) -> list[str]:
    peak = found["peak"].get("float32", 0.0)
    rows = []
    for graph, sides in found["ranking"].items():
        for side, row in sides.items():
            name = f"{graph}, {SIDES[side]}"
            if "error" in row:
                rows.append(failed(name, row, 6))
                continue
            part = f"{row['measured_triples']:,} of {row['scaled_to']:,}, scaled" if "scaled_to" in row else "all"
            share = "-"
            if "operations" in row and peak:
                per_second = peak * 1e9 * row["seconds"]
                share = f"{row['operations'] / per_second:.0%} ({row['operations_made'] / per_second:.0%} distinct)"
            rows.append([name, number(row["seconds"]), spread(row), part, share, number(row["peak_mb"])])
    head = ("ranking", "seconds", "spread", "test triples", "of the float32 peak", "peak MB")
    return ["## Ranking: the filtered test set, both sides, all entities", "", *table(head, rows)]


def memory(found: Row) -> list[str]:
    rows = [
        [f"imports alone, {SIDES[side]}", number(row["peak_mb"]) if "peak_mb" in row else f"*{row['error']}*"]
        for side, row in found["memory"]["imports_only"].items()
    ]
    return ["## Memory held by the imports", "", *table(("process", "peak MB"), rows)]


def time_to_mrr(found: Row) -> list[str]:
    part = found["time_to_mrr"]
    rows = []
    for side in ("ours", "pykeen"):
        row = part[side]
        if "error" in row:
            rows.append(failed(SIDES[side], row, 5))
            continue
        missed = f"not in {number(row['clock_seconds'])}"
        times = [number(row["reached"][bar]) if bar in row["reached"] else missed for bar in part["bars"]]
        rows.append([f"{SIDES[side]} ({row['settings']})", *times, number(row["best_mrr"]), row["epochs"]])
    head = ("training", *(f"seconds to {bar}" for bar in part["bars"]), "best MRR", "epochs")
    return ["## Time to a validation MRR", "", part["about"] + ".", "", *table(head, rows)]


def reading(found: Row) -> list[str]:
    part = found["reading"]
    rows = []
    for side in ("ours", "pykeen"):
        row = part[side]
        if "error" in row:
            rows.append(failed(SIDES[side], row, 4))
        else:
            each = number(row["seconds_per_million_lines"])
            rows.append([SIDES[side], number(row["seconds"]), each, number(row["peak_mb"])])
    title = f"## Reading a file of {part['lines']:,} lines, {number(part['megabytes'])} MB"
    return [title, "", *table(("reader", "seconds", "seconds a million lines", "peak MB"), rows)]


def growth(found: Row) -> list[str]:
    part = found["growth"]
    rows = []
    for row in part["points"]:
        size = [f"{row[key]:,}" for key in ("entities", "dim", "relations")]
        if "error" in row:
            rows.append([*size, f"*{row['error']}*", "-", "-", "-"])
            continue
        costs = [number(1e3 * row["step_seconds"]), number(1e6 * row["query_seconds"])]
        rows.append([*size, *costs, number(row["training_mb"]), number(row["ranking_mb"])])
    head = ("entities", "d", "relations", "step, ms", "query ranked, µs", "training MB", "ranking MB")
    fitted = [
        [sweep, *("-" if value is None else value for key, value in row.items() if key != "points")]
        for sweep, row in part["exponents"].items()
    ]
    titles = ("fitted exponent over", "step", "query ranked", "training MB", "ranking MB")
    return ["## Growth: steps of 1024 questions on random graphs", "", *table(head, rows), *table(titles, fitted)]


def compressed(found: Row) -> list[str]:
    rows = []
    for graph, sides in found["compressed"]["ranking"].items():
        for side in ("whole", "small"):
            row, size = sides[side], sides["made"].get(f"{side}_bytes")
            name = f"{graph} ranked, {side}"
            if "error" in row or size is None:
                rows.append(failed(name, row if "error" in row else sides["made"], 4))
                continue
            rows.append([name, f"{size / 2**20:,.1f}", f"{number(row['seconds'])} s", number(row["peak_mb"])])
    asked = found["compressed"]["serving"]
    for side in ("whole", "small"):
        row, name = asked.get(side, asked), f"a question about a million entities, {side}"
        if "error" in row:
            rows.append(failed(name, row, 4))
            continue
        peak = f"{number(row['peak_mb'])}, {number(row.get('model_mb'))} of it the model's"
        rows.append([name, f"{row['held_bytes'] / 2**20:,.1f}", f"{number(row['ms_a_question'])} ms", peak])
    how = asked.get("made", {}).get("how", "-")
    head = ("what", "weights, MB", "time", "peak MB")
    return [f"## Compressed: {how}, d = 128", "", *table(head, rows)]


def sharded(found: Row) -> list[str]:
    rows, best = [], found["sharded"]["one"].get("epoch_seconds")
    for row in found["sharded"].values():
        name = f"{row.get('processes', '-')} processes of {row.get('threads_each', '-')} threads"
        if "error" in row:
            rows.append(failed(name, row, 4))
            continue
        speed = f"{best / row['epoch_seconds']:.0%}" if best else "-"
        rows.append([name, number(row["epoch_seconds"]), spread(row), speed])
    head = ("training", "seconds an epoch", "spread", "of the speed of one process")
    return ["## Sharded: one epoch of FB15k-237, d = 100, batches of 1024", "", *table(head, rows)]


def start(found: Row) -> list[str]:
    rows = found["start"]
    if "error" in rows:
        return ["## Start", "", rows["error"], ""]
    lines = [[name, number(row["seconds"]) if "seconds" in row else f"*{row['error']}*"] for name, row in rows.items()]
    return ["## Start: a fresh interpreter, best of several", "", *table(("what", "seconds"), lines)]


def profile(found: Row) -> list[str]:
    lines = ["## Where the time goes", ""]
    for work in ("training", "ranking"):
        for graph, row in found["profile"][work].items():
            shares = ", ".join(f"{name} {share:.0%}" for name, share in row.get("shares", {}).items())
            top = ", ".join(f"{name} {share:.0%}" for name, share in list(row.get("top_operations", {}).items())[:5])
            lines.append(f"- {work} {graph}: {shares or row.get('error')}. Operations: {top or '-'}.")
    tried = found["profile"].get("tried", [])
    return [*lines, *(["", "What was tried:", ""] + [f"- {line}" for line in tried] if tried else []), ""]


def goals(found: Row) -> list[str]:
    rows = [
        [
            row["name"],
            "-" if row["value"] is None else row["value"],
            row["goal"],
            "yes" if row["met"] else "no",
            row["note"],
        ]
        for row in found["goals"]
    ]
    return ["## Goals", "", *table(("what", "value", "goal", "met", "note"), rows)]


PARTS = {
    "training": training,
    "ranking": ranking,
    "memory": memory,
    "compressed": compressed,
    "time_to_mrr": time_to_mrr,
    "reading": reading,
    "growth": growth,
    "sharded": sharded,
    "start": start,
    "profile": profile,
    "goals": goals,
}


def heading(found: Row) -> list[str]:
    peak, versions = found["peak"], ", ".join(f"{name} {which}" for name, which in found["versions"].items())
    best = f"float32 {number(peak.get('float32'))}, bfloat16 {number(peak.get('bfloat16'))} GFLOP/s"
    return [
        "# Benchmark",
        "",
        f"Made by `{found['command']}` on {found['date']}: {in_words(found['machine'])}, {found['threads']} threads, "
        f"{found['rounds']} rounds, {found['seconds_taken']:.0f} s; load of the machine at the start "
        f"{found['load_at_start']}. {versions}.",
        f"Matrix products at best, in this run: {peak.get('error') or best}.",
        "",
    ]


def document(found: Row) -> str:
    return "\n".join(heading(found) + [line for name, part in PARTS.items() if name in found for line in part(found)])


def readme(found: Row) -> str:
    """The short table: each side's seconds, the ratio, and the share of the machine's peak."""
    rows = []
    for work, key in (("training", "epoch_seconds"), ("ranking", "seconds")):
        for graph, sides in found[work].items():
            ours = sides["ours"]
            cells = []
            for side in ("ours", "pykeen", "torchkge"):
                row = sides.get(side, {})
                ratio = f" ({row[key] / ours[key]:.0f}x)" if side != "ours" and key in row and key in ours else ""
                cells.append(f"{number(row[key])} s{ratio}" if key in row else "-")
            what = "an epoch of training" if work == "training" else "ranking the test set"
            rows.append([f"{what}, {graph}", *cells])
    memory = [f"{row['peak_mb']:.0f} MB" if "peak_mb" in row else "-" for row in found["training"]["wn18rr"].values()]
    rows.append(["peak memory of training, wn18rr", *memory, "-"])
    lines = table(("d = 100", "relwalk", "PyKEEN 1.11.1", "TorchKGE 0.17.7"), rows)
    met = sum(row["met"] for row in found["goals"])
    where = f"{in_words(found['machine'])}, {found['threads']} threads"
    return "\n".join([*lines, f"{where}; {met} of {len(found['goals'])} goals met.", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=FOLDER / "results.json")
    parser.add_argument("--readme", action="store_true", help="print the README's table only")
    arguments = parser.parse_args()
    found = json.loads(arguments.results.read_text())
    if arguments.readme:
        print(readme(found))
        return
    text = document(found)
    (arguments.results.parent / "RESULTS.md").write_text(text)
    print(text)
    try:
        from plots import draw
    except ImportError as missing:
        print(f"no plots: {missing}")
        return
    draw(found, arguments.results.parent / "plots")


if __name__ == "__main__":
    main()
