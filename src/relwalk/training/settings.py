"""Every choice of a training, with its default and its bounds."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from relwalk.errors import choose
from relwalk.training.negatives import SAMPLERS
from relwalk.training.objectives import OBJECTIVES
from relwalk.training.precision import Precision


class TrainingSettings(BaseModel):
    """How a model is trained. Saved with the run, read back and checked on load."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objective: str = "likelihood"
    sampler: str = "uniform"
    negatives: int = Field(100, ge=1, description="false triples per true one")
    avoid_known: bool = Field(False, description="never draw a known true triple as a negative")
    eta: float = Field(math.e, gt=1, description="how many times likelier a true triple should be; margin = 2d log eta")
    l2: float = Field(
        0.15, ge=0, description="weight of ||h||² + ||t||² of the triples of a step, divided by d for RelWalk"
    )
    n3: float = Field(0.0, ge=0, description="weight of Σ|h|³ + Σ|t|³ (and |r|³), divided by d^1.5 for RelWalk")

    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of an answer spread over all (likelihood)")
    entity_dropout: float = Field(0.0, ge=0, lt=1, description="share of the given entity's coordinates (likelihood)")
    query_dropout: float = Field(0.0, ge=0, lt=1, description="share of the question's coordinates (likelihood)")
    relation_weight: float = Field(0.0, ge=0, description="weight of -log p(R | h, t) beside the answers (likelihood)")
    candidates_per_step: int | None = Field(
        None, ge=0, description="entities drawn for the sum of a step (likelihood); 0: all; None: by the graph's size"
    )
    precision: Precision = Field("auto", description="of the products (likelihood)")

    optimizer: Literal["sgd", "adagrad", "rowwise-adagrad", "adam"] = "adagrad"
    lr: float = Field(1.0, gt=0, description="learning rate of the entities")
    relation_lr: float | None = Field(None, gt=0, description="of the relations; None: 0.3 for rotations, else lr")
    clip: float | None = Field(None, gt=0, description="longest gradient of all free weights together")
    schedule: Literal["constant", "linear", "cosine", "plateau"] = Field(
        "constant", description="how the rates fall: not, to 0 over all epochs, or when validation stops improving"
    )
    warmup: float = Field(0.0, ge=0, description="epochs over which the rates rise from 0")
    plateau_factor: float = Field(0.5, gt=0, lt=1, description="what a plateau multiplies the rates with")
    plateau_patience: int = Field(1, ge=1, description="validations without a better figure that make a plateau")
    average_from: int | None = Field(None, ge=1, description="epoch from which the weights of all epochs are averaged")

    epochs: int = Field(100, ge=1)
    batch_size: int | None = Field(
        1024, ge=1, description="questions (likelihood) or true triples a step; None: by `batches`"
    )
    batches: int | None = Field(None, ge=1, description="steps an epoch, instead of a batch size")
    validate_every: int = Field(10, ge=1, description="epochs between two validations")
    patience: int = Field(5, ge=1, description="validations without a better figure before training stops")
    seed: int = Field(0, ge=0, lt=2**63)
    threads: int = Field(1, ge=1, description="CPU threads; the same number gives the same bits")
    checkpoint_seconds: float = Field(30.0, ge=0, description="least time between two checkpoints")

    @field_validator("objective")
    @classmethod
    def _objective_is_known(cls, name: str) -> str:
        choose("objective", name, {"likelihood": None, **OBJECTIVES})
        return name

    @field_validator("sampler")
    @classmethod
    def _sampler_is_known(cls, name: str) -> str:
        choose("sampler", name, SAMPLERS)
        return name

    @model_validator(mode="after")
    def _one_batch_rule(self) -> TrainingSettings:
        if (self.batch_size is None) == (self.batches is None):
            raise ValueError("give either batch_size or batches, not both and not neither")
        return self

    def margin(self, scale: float) -> float:
        """log η in units of the score: 2d log η for RelWalk."""
        return math.log(self.eta) / scale
