"""What a search for settings found: frozen values that print themselves, and are written to and read from JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from relwalk.display import WIDEST, Shown, caption, html_table, one_line
from relwalk.evaluation.comparison import ComparedGraph, Moment, figures
from relwalk.evaluation.metrics import RankMetrics
from relwalk.evaluation.records import read_json, told
from relwalk.progress import duration
from relwalk.space import Search, search_as_dict

FORMAT, VERSION = "relwalk-tune", 1
CURE = "Restore it, or tune again elsewhere."
SHOWN = 12  # trials of the table that is printed; tune.html has all
WORDS = {"all": "all entities", "argument": "the relation's argument"}


@dataclass(frozen=True)
class Trial:
    """One training of a search: what was tried, and what came of it. The first is the default recipe.

    One that was pruned has the figures it had then; one that failed has a reason, and no figures.
    """

    number: int
    tried: dict[str, Any]  # the settings that are searched
    status: Literal["running", "finished", "pruned", "failed"] = "running"
    reason: str = ""
    planned: dict[str, int] = field(default_factory=dict)  # epochs and validations that its share of the time allows
    settings: dict[str, Any] = field(default_factory=dict)  # all of its training and its model
    valid_mrr: float | None = None  # of its best epoch, on all of valid; while it is trained, on what is validated by
    best_epoch: int | None = None
    seconds: float = 0.0  # all of its time
    curve: tuple[Moment, ...] = ()
    process: str = ""  # that works, or worked, on it

    @property
    def epochs(self) -> int:
        """How many it is to have, at most."""
        return int(self.planned.get("epochs") or 0)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The finished trial with the highest MRR on valid, the first of several."""
    finished = [trial for trial in trials if trial.status == "finished" and trial.valid_mrr is not None]
    return max(finished, key=lambda trial: (trial.valid_mrr or 0.0, -trial.number), default=None)


@dataclass(frozen=True, repr=False)
class Tuning(Shown):
    """A search for the settings of a model on a graph. The best trial on valid is chosen, and it alone ranked test."""

    graph: ComparedGraph
    model: str
    budget: float  # seconds, of everything
    spent: float
    seed: int
    fixed: dict[str, Any]  # the settings that were given, and not searched
    space: dict[str, Search]
    left_out: dict[str, str]  # settings that could not be searched here, and why
    trials: tuple[Trial, ...]
    test: dict[str, RankMetrics] = field(default_factory=dict)  # of the chosen one, by the rule of candidates
    importance: dict[str, float] = field(default_factory=dict)  # shares of each setting, the largest first
    elsewhere: int = 0  # trials that another process is still at
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    path: str | None = None  # of its folder
    settings_file: str | None = None
    run: str | None = None  # of the chosen trial

    @property
    def best(self) -> Trial | None:
        return best_of(self.trials)

    @property
    def default(self) -> Trial | None:
        """The default recipe, if it was trained to its end."""
        return next((t for t in self.trials if t.number == 1 and t.status == "finished"), None)

    @property
    def protocol(self) -> str:
        """Under which rules the figures were made."""
        counts = {status: sum(t.status == status for t in self.trials) for status in ("finished", "pruned", "failed")}
        counted = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        return (
            f"{self.graph.name}, {self.model}: {len(self.trials)} trials ({counted or 'none at its end'}) in "
            f"{duration(self.spent)} of {duration(self.budget)}, seed {self.seed}. Chosen by filtered MRR on valid "
            "over all entities, both sides, the best epoch of each trial; trial 1 is the default recipe."
        )

    def as_dict(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        best = self.best
        return {
            "format": FORMAT,
            "version": VERSION,
            **plain,
            "graph": asdict(self.graph),
            "protocol": self.protocol,
            "space": {name: search_as_dict(search) for name, search in self.space.items()},
            "best": best.as_dict() if best is not None else None,
            "test": {rule: metrics.as_dict() for rule, metrics in self.test.items()},
            "trials": [trial.as_dict() for trial in self.trials],
        }

    def summary(self) -> str:
        found = f"best valid MRR {self.best.valid_mrr:.4f}" if self.best else "no trial finished"
        return f"{self.graph.name}, {self.model}, {len(self.trials)} trials in {duration(self.spent)}: {found}"

    def __str__(self) -> str:
        lines = [*textwrap.wrap(self.protocol, WIDEST), *self._table()]
        failed = [trial for trial in self.trials if trial.status == "failed"]
        lines += [one_line(f"trial {trial.number} failed: {trial.reason}", WIDEST) for trial in failed[:SHOWN]]
        if self.importance:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.importance.items())
            lines += textwrap.wrap(f"what mattered: {shares}", WIDEST)
        return "\n".join([*lines, *self._chosen()])

    def _table(self) -> list[str]:
        """The best trials, a line for each."""
        ordered = ranked(self.trials)
        lines = [f"{'trial':>5}{'valid MRR':>11}{'epochs':>9}{'time':>9}  {'':<9}what was tried"] if ordered else []
        for trial in ordered[:SHOWN]:
            number, mrr, epochs, time, status = cells(trial)
            line = f"{number:>5}{mrr:>11}{epochs:>9}{time:>9}  {status:<9}{tried_words(trial, self.trials)}"
            lines.append(one_line_kept(line))
        if len(ordered) > SHOWN:
            lines.append(f"  ... and {len(ordered) - SHOWN} more")
        return lines

    def _chosen(self) -> list[str]:
        best = self.best
        if best is None or best.valid_mrr is None:
            return ["no trial finished: nothing is chosen"]
        default = self.default
        beside = f" (the default recipe: {default.valid_mrr:.4f})" if default is not None else ""
        lines = [f"chosen: trial {best.number}, valid MRR {best.valid_mrr:.4f} at epoch {best.best_epoch}{beside}"]
        for rule, metrics in self.test.items():
            mrr, mr, *hits = figures(metrics)
            lines.append(
                f"test, filtered, candidates {WORDS.get(rule, rule)}: MRR {mrr}  MR {mr}  H@1 {hits[0]}  "
                f"H@3 {hits[1]}  H@10 {hits[2]}"
            )
        if self.elsewhere:
            lines.append(f"another process is still at {self.elsewhere} trials of this search: test waits for the last")
        return lines

    def _repr_html_(self) -> str:
        head = ["trial", "valid MRR", "epochs", "time", "", "what was tried"]
        rows = [[*cells(trial), tried_words(trial, self.trials)] for trial in ranked(self.trials)]
        return caption(self.protocol) + html_table(head, rows) + "".join(map(caption, self._chosen()))


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Those with figures, the best first; finished ones before pruned ones."""
    shown = [trial for trial in trials if trial.valid_mrr is not None and trial.status in ("finished", "pruned")]
    return sorted(shown, key=lambda t: (t.status != "finished", -(t.valid_mrr or 0.0), t.number))


def cells(trial: Trial) -> list[str]:
    """Number, MRR, epochs, time and status of a trial, as text."""
    done = trial.curve[-1].epoch if trial.curve else 0
    mrr = f"{trial.valid_mrr:.4f}" if trial.valid_mrr is not None else ""
    return [str(trial.number), mrr, f"{done}/{trial.epochs}", duration(trial.seconds), trial.status]


def tried_words(trial: Trial, trials: Sequence[Trial]) -> str:
    """What a trial has that the default recipe, the first of them, has not, in a line; of that one, all."""
    usual = next((t.tried for t in trials if t.number == 1 and t.number != trial.number), {})
    found = [f"{n} {_plain(v)}" for n, v in trial.tried.items() if v is not None and (n not in usual or v != usual[n])]
    return ", ".join(found) or "as the default recipe"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def one_line_kept(text: str) -> str:
    """A line of a table in the width of a screen; its leading spaces stay."""
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


_TRIAL = TypeAdapter(Trial)


def read_trial(path: Path) -> Trial:
    """One trial from its file, checked."""
    content = read_json(path, "trial", CURE)
    with told(path, "trial", CURE):
        return _TRIAL.validate_python(content)
