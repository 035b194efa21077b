"""The settings of a trial as a file that `relwalk train --config` takes, and that repeats it."""

from __future__ import annotations

import json
from typing import Any

from relwalk.evaluation.tuning import Trial


def settings_as_toml(trial: Trial) -> str:
    """All settings of a trial, those on top that were searched."""
    mrr = f"{trial.valid_mrr:.4f}" if trial.valid_mrr is not None else "-"
    said = {name: value for name, value in trial.settings.items() if value is not None}
    first = [name for name in trial.tried if name in said]
    rest = [name for name in said if name not in first]
    return "\n".join(
        [
            f"# Trial {trial.number} of a search: valid MRR {mrr} at epoch {trial.best_epoch}. Repeat it with:",
            "#     relwalk train GRAPH --config best.toml",
            "",
            *(f"{name} = {toml_value(said[name])}" for name in first),
            "",
            "# as it was for every trial, or follows from the time there was",
            *(f"{name} = {toml_value(said[name])}" for name in rest),
            "",
        ]
    )


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        return text if any(c in text for c in ".en") else f"{text}.0"
    if isinstance(value, int):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
