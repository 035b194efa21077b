"""`compress`: a smaller run from a run, and what that cost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from safetensors.torch import save as save_tensors

from relwalk.checks import check_number, check_whole, shown
from relwalk.compression.search import Fixed, smallest_that_keeps
from relwalk.display import Shown, caption, html_table
from relwalk.errors import RelWalkError, UnknownChoice
from relwalk.evaluation.metrics import RankMetrics
from relwalk.evaluation.probability_fit import fit_probabilities
from relwalk.evaluation.ranking import CandidateRule, rank
from relwalk.graph.graph import Graph, Split
from relwalk.models.compressed import Compression, Method, held_bytes
from relwalk.models.compressor import Compressor
from relwalk.models.factored import PRECISIONS
from relwalk.models.quantised import ENTITY_FORMATS
from relwalk.prediction import Query, predict_many
from relwalk.progress import OnProgress, Progress
from relwalk.progress import shown as showing
from relwalk.runs.folder import WEIGHTS
from relwalk.runs.run import Run

RULES: tuple[CandidateRule, ...] = ("all", "argument")
ASKED = 500  # questions whose first answers are compared
FIRST = 10  # answers of each
AROUND = ("identity", "signs")


@dataclass(frozen=True)
class Size:
    """Bytes before and after."""

    before: int
    after: int

    @property
    def ratio(self) -> float:
        return self.before / self.after

    def as_dict(self) -> dict[str, float | int]:
        return {"before": self.before, "after": self.after, "ratio": round(self.ratio, 3)}


@dataclass(frozen=True, eq=False, repr=False)
class Compressed(Shown):
    """A smaller run, and what it cost; prints itself."""

    run: Run
    source: Run
    how: Compression
    memory: Size  # of the weights
    disk: Size  # of the file of the weights; what only training needs is not counted
    split: Split | None  # that the figures are about; None: the graph has none to judge by
    figures: Mapping[str, tuple[RankMetrics, RankMetrics]]  # by candidate rule, before and after
    overlap: float | None  # of the first answers, before and after
    questions: int  # that were asked for it

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run.path) if self.run.path is not None else None,
            "source": str(self.source.path) if self.source.path is not None else None,
            "compression": self.how.model_dump(),
            "memory_bytes": self.memory.as_dict(),
            "disk_bytes": self.disk.as_dict(),
            "split": self.split,
            "figures": {
                rule: {"before": before.as_dict(), "after": after.as_dict()}
                for rule, (before, after) in self.figures.items()
            },
            "first_answers": {"overlap": self.overlap, "answers": FIRST, "questions": self.questions},
        }

    def summary(self) -> str:
        lost = [before.mrr - after.mrr for before, after in self.figures.values()][:1]
        return f"{self.how}: {self.memory.ratio:.1f}x smaller" + "".join(f", MRR {-x:+.4f}" for x in lost)

    def _repr_html_(self) -> str:
        return caption(f"{self.how}: {self.memory.ratio:.1f}x smaller") + html_table(HEAD, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for rule, pair in self.figures.items():
            for when, m in zip(("before", "after"), pair, strict=True):
                shares = (m.mrr, m.hits_at_1, m.hits_at_3, m.hits_at_10)
                rows.append((rule, when, *(f"{share:.4f}" for share in shares)))
        return rows

    def __str__(self) -> str:
        where = f"{self.run.path}: " if self.run.path is not None else ""
        lines = [f"{where}{self.how}"]
        for name, size in (("memory", self.memory), ("disk", self.disk)):
            lines.append(f"  {name:8} {size.before:>14,} to {size.after:>12,} bytes: {size.ratio:.2f}x smaller")
        if self.figures:
            lines += [f"  {self.split}, filtered", "  " + _line(HEAD)]
            lines += ["  " + _line(row) for row in self._rows()]
        if self.overlap is not None:
            lines.append(f"  {self.overlap:.1%} of the first {FIRST} answers stay, over {self.questions:,} questions")
        return "\n".join(lines)


HEAD = ("candidates", "", "MRR", "H@1", "H@3", "H@10")


def _line(cells: tuple[str, ...]) -> str:
    return f"{cells[0]:12}{cells[1]:8}" + "".join(f"{cell:>9}" for cell in cells[2:])


def compress(
    run: Run,
    *,
    out: Path | str | None = None,
    rank: int | None = None,
    method: str | None = None,
    around: str | None = None,
    precision: str | None = None,
    entities: str | None = None,
    code_bytes: int | None = None,
    keep: float | None = None,
    force: bool = False,
    progress: Progress = None,
) -> Compressed:
    """A smaller run, saved to `out` if given, and what it cost in accuracy. The run itself stays as it is.

    Relation matrices: `rank` K leading components of R - I by `method` "eig" (the paper's; conjugate pairs stay
    together) or "svd", `around` the "identity" or the "signs" of R's own diagonal, in `precision` "float32", "float16"
    or "int8"; or method "lossless", half of an exactly orthogonal matrix, which is all of it. `entities`: "float16",
    "bfloat16", "int8", or "pq" with so many `code_bytes` a vector (half its dimension when left out).

    With `keep`, what is not said is searched for: the smallest that loses at most so much MRR on valid.
    """
    given = _check(run, out, method, around, precision, entities)
    dim = run.model.dim
    fixed = Fixed(
        **given,
        rank=check_whole("rank", rank, 1, dim) if rank is not None else None,
        code_bytes=check_whole("code_bytes", code_bytes, 1, dim) if code_bytes is not None else None,
    )
    with showing(progress) as on_progress:
        compressor = Compressor(run.model)
        if keep is not None:
            lost = check_number("keep", keep, 0, 1)
            how = smallest_that_keeps(compressor, run.graph, fixed, lost, on_progress)
        else:
            how = _made_of(fixed)
            how.check(dim)
        small = _small_run(run, compressor, how, on_progress)
        size = len(save_tensors({n: t.contiguous() for n, t in small.model.state_dict().items()}))
        if out is not None:
            small = _save(small, Path(out), size, force)
        split = _judged_by(run.graph)
        figures = {str(rule): _figures(run, small, split, rule, on_progress) for rule in RULES if split is not None}
        overlap, questions = _overlap(run, small, split)
    file = run.path / WEIGHTS if run.path is not None else None
    before = file.stat().st_size if file is not None and file.is_file() else held_bytes(run.model)
    memory = Size(held_bytes(run.model), held_bytes(small.model))
    return Compressed(small, run, how, memory, Size(before, size), split, figures, overlap, questions)


def _check(run: Run, out: Path | str | None, *names: str | None) -> dict[str, Any]:
    """The choices by name that are given; what cannot be compressed is refused."""
    if not isinstance(run, Run):
        raise RelWalkError(f"run is {shown(run)}; expected a Run. Train one, or read one: relwalk.load_run(folder)")
    if run.record.model.compression is not None:
        raise RelWalkError(f"{run} is compressed already. Compress the run that it was made from.")
    if run.state.status != "finished":
        raise RelWalkError(f"{run} cannot be compressed: its training is not finished. Go on with relwalk resume.")
    if out is not None and run.path is not None and Path(out).resolve() == run.path.resolve():
        raise RelWalkError(f"{out} is the run itself, which stays as it is. Choose another place.")
    known = {"method": get_args(Method), "around": AROUND, "precision": PRECISIONS, "entities": ENTITY_FORMATS}
    given = dict(zip(known, names, strict=True))
    for kind, name in given.items():
        if name is not None and name not in known[kind]:
            raise UnknownChoice(kind, name, known[kind])
    return given


def _made_of(fixed: Fixed) -> Compression:
    """What was asked for, without a search; a rank alone means eig."""
    values = {name: value for name, value in fixed._asdict().items() if value is not None}
    if fixed.rank is not None:
        values.setdefault("method", "eig")
    return Compression(**values)


def _small_run(run: Run, compressor: Compressor, how: Compression, on_progress: OnProgress) -> Run:
    on_progress(0, 1, f"compressing: {how}")
    model = compressor(how)
    metrics = dict(run.record.metrics)
    if len(run.graph.valid):
        metrics["valid_mrr"] = rank(model, run.graph, "valid", progress=on_progress).mrr
    described = run.record.model.model_copy(update={"compression": how})
    fitted = None  # anew: its scores are not quite those of the run; a run that was not calibrated stays so
    if run.probabilities is not None:
        fitted = fit_probabilities(model, run.graph, seed=run.record.training.seed)
    changes = {"model": described, "metrics": metrics, "probabilities": fitted, "files": {}}
    record = run.record.model_copy(update=changes)
    return replace(run, path=None, record=record, model=model)


def _save(small: Run, out: Path, size: int, force: bool) -> Run:
    """Saved whole or not at all: the weights, and as much as the graph's files take."""
    needed = size + sum(triples.nbytes for triples in small.graph.parts().values())
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    if there.is_dir() and shutil.disk_usage(there).free < needed:
        free = shutil.disk_usage(there).free
        raise RelWalkError(f"{out} needs {needed:,} bytes; {free:,} are free. Choose another place, or make room.")
    return small.save(out, force=force)


def _judged_by(graph: Graph) -> Split | None:
    return "test" if len(graph.test) else "valid" if len(graph.valid) else None


def _figures(
    run: Run, small: Run, split: Split, rule: CandidateRule, on_progress: OnProgress
) -> tuple[RankMetrics, RankMetrics]:
    before, after = (rank(r, split=split, candidates=rule, progress=on_progress).metrics() for r in (run, small))
    return before, after


def _overlap(run: Run, small: Run, split: Split | None) -> tuple[float | None, int]:
    """The share of the first answers that both runs give, over tails and heads of some triples of the split."""
    if split is None:
        return None, 0
    triples = run.graph.split(split)
    some = triples[np.random.default_rng(0).permutation(len(triples))[: ASKED // 2]]
    entities, relations = run.graph.entities.names, run.graph.relations.names
    asked: list[Query] = []
    for h, r, t in some.tolist():
        asked += [(entities[h], relations[r], None), (None, relations[r], entities[t])]
    both = zip(*(predict_many(each, asked, k=FIRST) for each in (run, small)), strict=True)
    shares = [len({a.name for a in x} & {a.name for a in y}) / max(1, len(x)) for x, y in both]
    return float(np.mean(shares)), len(asked)
