"""What the server of entry.py makes once, beside its imports, for all the commands that are forked from it."""

from __future__ import annotations

import gc
from functools import cache

import typer

from relwalk.cli import app, models, training, tune

# The command line takes longer to make than most of what is refused takes to be refused.
app.app = typer.main.get_command(app.app)
for verb, module in ((models.train, training), (models.tune, tune)):
    module.command = cache(module.command)
    module.command(verb.__doc__)
gc.freeze()  # what is there stays: a fork that looked it through would copy it
