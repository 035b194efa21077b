"""Who trains: one process, or those that torchrun started. What differs between the two, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from relwalk.errors import RelWalkError
from relwalk.evaluation.ranking import rank
from relwalk.evaluation.result import RankingResult
from relwalk.evaluation.scores import Scores
from relwalk.graph.answers import Side
from relwalk.graph.graph import Graph, Split
from relwalk.launch import several, started_again
from relwalk.models import Scorer
from relwalk.models.tables import only_rows
from relwalk.prediction import Asker
from relwalk.runs import folder
from relwalk.runs.checkpoint import Owner
from relwalk.runs.folder import WEIGHTS
from relwalk.runs.record import RunRecord, software_versions, write_record
from relwalk.runs.run import Run, finish_record, write_weights
from relwalk.runs.shard_files import Wanted
from relwalk.together import ALONE, Together
from relwalk.training.checkpoint import restore_checkpoint, save_checkpoint
from relwalk.training.objectives import OBJECTIVES
from relwalk.training.settings import TrainingSettings
from relwalk.training.trainer import Task, Trainer

if TYPE_CHECKING:  # torch.distributed takes a while to load: only where there are several
    from relwalk.sharded.shards import Shards
    from relwalk.sharded.world import World


NO_ROOM = "the processes that trained it had no room for the whole model"  # why it has no probabilities


class OneProcess:
    """Has the whole model, and does everything itself."""

    together: Together = ALONE

    @property
    def first(self) -> bool:
        """Whether this is the process that shows what happens."""
        return self.together.rank == 0

    def check(self, record: RunRecord, graph: Graph, device: torch.device, out: Path | str | None) -> None:
        """Refuse, before anything is made, what these processes cannot train."""

    def goes_on(self, path: Path, record: RunRecord) -> bool:
        """Whether these processes were started in place of others, which began the run that is there."""
        return False

    def making(self, entities: int, *, whole: bool = False) -> AbstractContextManager[None]:
        """What a fresh model of so many entities is to be made within: no more of it, unless `whole`, than this process
        keeps."""
        return nullcontext()

    def keep_part(self, model: Scorer) -> Wanted | None:
        """Leave in the tables of a model what this process keeps of it, and say which rows that is; None: all."""
        return None

    def task(self, graph: Graph, settings: TrainingSettings, device: torch.device) -> Task:
        return OBJECTIVES[settings.objective.name](graph, settings, settings.objective, device)

    def rank(self, model: Scorer, graph: Graph, split: Split, **how: Any) -> RankingResult:
        """`evaluation.ranking.rank`."""
        return rank(model, graph, split, **how)

    def begin(self, path: Path, write: Callable[[Path], None], *, force: bool) -> Any:
        return folder.begin(path, write, force=force)

    def reopen(self, path: Path) -> Any:
        return folder.reopen(path)

    def write_record(self, path: Path, record: RunRecord) -> None:
        write_record(path, record)

    def save(self, trainer: Trainer, path: Path, owner: Owner) -> None:
        save_checkpoint(trainer, path, owner)

    def restore(self, trainer: Trainer, path: Path) -> None:
        restore_checkpoint(trainer, path)

    def finish(
        self, path: Path | None, record: RunRecord, model: Scorer, graph: Graph, metrics: Mapping[str, Any]
    ) -> RunRecord:
        """The record of a run whose training is over, with its probabilities; and its weights saved, with a path."""
        record = _with_probabilities(record, model, graph)
        if path is None:
            return record.model_copy(update={"status": "finished", "metrics": dict(metrics)})
        write_weights(path, model.state_dict())
        return finish_record(path, record, metrics)


class Ranks(OneProcess):
    """One of several processes: it has the rows of its own entities, and all relations. Rank 0 writes the record."""

    def __init__(self, world: World) -> None:
        self.world = self.together = world
        self.shards: Shards | None = None  # known with the model

    def check(self, record: RunRecord, graph: Graph, device: torch.device, out: Path | str | None) -> None:
        from relwalk.sharded.fitting import check_settings, check_sizes

        self.world.check_same(
            {
                "versions": software_versions(),
                "graph": graph.fingerprint,
                "model": record.model.model_dump(mode="json"),
                "settings": record.training.flat(),
            }
        )
        if out is None:
            raise RelWalkError("several processes save what they train: say where the run goes (--out, out=).")
        check_sizes(len(graph.entities), self.world.size, device)
        check_settings(record.training)

    def goes_on(self, path: Path, record: RunRecord) -> bool:
        from relwalk.sharded.checkpoint import begun_by_this_launch

        return started_again() and bool(self.world.first_does(lambda: begun_by_this_launch(path, record)))

    def making(self, entities: int, *, whole: bool = False) -> AbstractContextManager[None]:
        from relwalk.sharded.shards import Shards

        self.shards = Shards(entities, self.world)
        return nullcontext() if whole else only_rows(self.shards.own)

    def keep_part(self, model: Scorer) -> Wanted | None:
        from relwalk.sharded.checkpoint import table_names
        from relwalk.sharded.fitting import check_model
        from relwalk.sharded.shards import Shards, keep_own

        check_model(model)
        if self.shards is None or self.shards.entities != model.entities:
            self.shards = Shards(model.entities, self.world)
        keep_own(model, self.shards)
        return Wanted(frozenset(table_names(model)), self.shards.own)

    def check_run(self, record: RunRecord, **asked: Any) -> None:
        """Refuse runs that are not the same in all processes, or that are not asked the same."""
        self.world.check_same({"versions": software_versions(), "run": record.model_dump(mode="json"), **asked})

    def scores(self, model: Scorer) -> Mapping[Side, Scores]:
        """What scores questions in the place of a model of which this process has a part."""
        from relwalk.sharded.ranking import sharded_scores

        return sharded_scores(model, self._shards)

    def asker(self, run: Run) -> Asker:
        """What scores queries in the place of a run of which this process has a part."""
        from relwalk.sharded.answers import ShardedAsker

        return ShardedAsker(run, self._shards)

    def task(self, graph: Graph, settings: TrainingSettings, device: torch.device) -> Task:
        from relwalk.sharded.likelihood import ShardedLikelihood

        return ShardedLikelihood(graph, settings, settings.objective, device, self._shards)

    def rank(self, model: Scorer, graph: Graph, split: Split, **how: Any) -> RankingResult:
        return rank(model, graph, split, scores=self.scores(model), **how)

    @contextmanager
    def begin(self, path: Path, write: Callable[[Path], None], *, force: bool) -> Iterator[Path]:
        with self._held(super().begin(path, write, force=force) if self.first else None) as place:
            yield place

    @contextmanager
    def reopen(self, path: Path) -> Iterator[Path]:
        with self._held(super().reopen(path) if self.first else None) as place:
            yield place

    @contextmanager
    def _held(self, own: Any) -> Iterator[Path]:
        """The folder that rank 0 holds for all, until all are done with it."""
        if own is not None:
            with own as place:
                yield Path(self.world.from_first(str(place.absolute())))
                self.world.from_first(None)
        else:
            yield Path(self.world.from_first(None))
            self.world.from_first(None)

    def write_record(self, path: Path, record: RunRecord) -> None:
        self.world.first_does(lambda: write_record(path, record))

    def save(self, trainer: Trainer, path: Path, owner: Owner) -> None:
        from relwalk.sharded.checkpoint import save_sharded

        save_sharded(trainer, path, owner, self._shards)

    def restore(self, trainer: Trainer, path: Path) -> None:
        from relwalk.sharded.checkpoint import restore_sharded

        restore_sharded(trainer, path, self._shards)

    def finish(
        self, path: Path | None, record: RunRecord, model: Scorer, graph: Graph, metrics: Mapping[str, Any]
    ) -> RunRecord:
        """Rank 0 takes up the whole model to learn its probabilities, where it has room for it."""
        from relwalk.sharded.checkpoint import save_weights, take_up_whole

        assert path is not None  # several processes save what they train
        save_weights(path, model, self._shards)

        def vouch() -> str:
            if take_up_whole(model, path / WEIGHTS):
                ended = _with_probabilities(record, model, graph)
            else:
                ended = record.model_copy(update={"reason": NO_ROOM})
            return finish_record(path, ended, metrics).model_dump_json()

        return RunRecord.model_validate_json(self.world.first_does(vouch))

    @property
    def _shards(self) -> Shards:
        assert self.shards is not None  # `keep_part` comes first
        return self.shards


def _with_probabilities(record: RunRecord, model: Scorer, graph: Graph) -> RunRecord:
    """The record with what valid says of the scores of the model."""
    from relwalk.evaluation.probability_fit import fit_probabilities  # scipy's optimizers: half a second and 40 MB

    model.eval()
    fitted = fit_probabilities(model, graph, seed=record.training.seed)
    return record.model_copy(update={"probabilities": fitted})


def processes() -> OneProcess:
    """This process, alone or among the others."""
    return ranks() if several() else OneProcess()


@cache
def ranks() -> Ranks:
    """This process among the others."""
    from relwalk.sharded.world import World

    return Ranks(World())
