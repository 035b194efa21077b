"""The goals of the benchmark, each against what this run measured."""

from __future__ import annotations

from process import Row

FB, WN = "fb15k-237", "wn18rr"


def goals(found: Row) -> list[Row]:
    """One row for every goal: its value, the goal, whether it is met, and what a reader should know about it."""
    return [
        _faster(
            "training epoch by likelihood, fb15k-237, d = 100, times faster than PyKEEN", found, "training", FB, 10
        ),
        _faster("training epoch by likelihood, wn18rr, d = 100, times faster than PyKEEN", found, "training", WN, 8),
        _training_share(found, 0.5),
        _faster("filtered ranking of the test set, fb15k-237, times faster than PyKEEN", found, "ranking", FB, 100),
        _faster("filtered ranking of the test set, wn18rr, times faster than PyKEEN", found, "ranking", WN, 30),
        _ranking_share(found, 0.5),
        _memory(found, 0.5),
        *([_sharded(found["sharded"], 0.85)] if "sharded" in found else []),  # not in a quick run
    ]


def _row(name: str, value: float | None, goal: float, met: bool, note: str) -> Row:
    return {"name": name, "value": value, "goal": goal, "met": met, "note": note}


def _missing(name: str, goal: float, *rows: Row) -> Row:
    reasons = [str(row.get("error")) for row in rows if "error" in row]
    return _row(name, None, goal, False, "not measured: " + ("; ".join(reasons) or "no such row"))


def _faster(name: str, found: Row, part: str, graph: str, goal: float) -> Row:
    rows = found.get(part, {}).get(graph, {})
    ours, peer = rows.get("ours", {}), rows.get("pykeen", {})
    key = "epoch_seconds" if part == "training" else "seconds"
    if key not in ours or key not in peer:
        return _missing(name, goal, ours, peer)
    ratio = peer[key] / ours[key]
    pairs = [theirs / own for theirs, own in zip(peer["values"], ours["values"], strict=False)]
    note = f"{ours[key]:.2f} s against {peer[key]:.2f} s; round by round {min(pairs):.1f} to {max(pairs):.1f}"
    return _row(name, round(ratio, 2), goal, ratio >= goal, note)


def _training_share(found: Row, goal: float) -> Row:
    peak, name = found["peak"], "whole training epoch, share of the measured bfloat16 peak (3 products)"
    if "error" in peak:
        return _missing(name, goal, peak)
    best, note = peak["bfloat16"], "of the bfloat16 peak"
    if peak["bfloat16"] < peak["float32"]:
        best, note = peak["float32"], "no bfloat16 unit (its peak is below that of float32): of the float32 peak"
    return _lowest(name, found.get("training", {}), "epoch_seconds", best, goal, note)


def _ranking_share(found: Row, goal: float) -> Row:
    peak, name = found["peak"], "filtered ranking of the test set, share of the measured float32 peak"
    if "error" in peak:
        return _missing(name, goal, peak)
    row = _lowest(name, found.get("ranking", {}), "seconds", peak["float32"], goal, "all queries of test counted")
    alone = [
        f"{graph} {rows['ours']['operations_made'] / rows['ours']['seconds'] / peak['float32'] / 1e9:.0%}"
        for graph, rows in found.get("ranking", {}).items()
        if "seconds" in rows.get("ours", {})
    ]
    return {**row, "note": f"{row['note']}; distinct queries alone: {', '.join(alone)}"}


def _lowest(name: str, graphs: Row, key: str, peak: float, goal: float, note: str) -> Row:
    """The graph that does worst stands for all; the note has each."""
    shares = {
        graph: rows["ours"]["operations"] / rows["ours"][key] / peak / 1e9
        for graph, rows in graphs.items()
        if key in rows.get("ours", {})
    }
    if not shares:
        return _missing(name, goal, *(rows.get("ours", {}) for rows in graphs.values()))
    each = ", ".join(f"{graph} {share:.0%}" for graph, share in shares.items())
    return _row(
        name, round(min(shares.values()), 3), goal, min(shares.values()) >= goal, f"the lowest of {each}; {note}"
    )


def _sharded(rows: Row, goal: float) -> Row:
    name = "training by processes of one thread each, fb15k-237, d = 100, share of the speed of one with all threads"
    one, several = rows.get("one", {}), rows.get("several", {})
    if "epoch_seconds" not in one or "epoch_seconds" not in several:
        return _missing(name, goal, one, several)
    share = one["epoch_seconds"] / several["epoch_seconds"]
    note = f"{one['epoch_seconds']:.2f} s an epoch against {several['epoch_seconds']:.2f} s by {several['processes']}"
    return _row(name, round(share, 3), goal, share >= goal, note)


def _memory(found: Row, goal: float) -> Row:
    name = "peak memory of training wn18rr, d = 100, share of PyKEEN's"
    rows = found.get("training", {}).get(WN, {})
    ours, peer = rows.get("ours", {}), rows.get("pykeen", {})
    if "peak_mb" not in ours or "peak_mb" not in peer:
        return _missing(name, goal, ours, peer)
    share = ours["peak_mb"] / peer["peak_mb"]
    base = found.get("memory", {}).get("imports_only", {})
    note = f"{ours['peak_mb']:.0f} MB against {peer['peak_mb']:.0f} MB of the whole process"
    if "peak_mb" in base.get("ours", {}) and "peak_mb" in base.get("pykeen", {}):
        note += f"; imports alone hold {base['ours']['peak_mb']:.0f} and {base['pykeen']['peak_mb']:.0f} MB"
    return _row(name, round(share, 3), goal, share <= goal, note)
