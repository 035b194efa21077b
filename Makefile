# Everything a newcomer needs: `make demo`, `make test`. Each target builds its own .venv first.
# PYTHON=/path/to/python says which Python; else it is the first of 3.11 and later that works.
PYTHON ?=
export PYTHON
MINUTES ?= 10
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
NEWEST_VENV := .venv-newest
BENCH_VENV  := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready

# The benchmark graphs, when they lie beside the project.
ifneq ($(wildcard ../shared/datasets),)
export RELWALK_DATA ?= $(abspath ../shared/datasets)
endif

.PHONY: demo test test-newest check campaign results bench bench-models bench-recipes bench-serve clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml constraints.txt
	@python=$$(sh tools/python.sh) && "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/demo.sh

# A process per core and one more, as some wait for what they started; files stay whole, so that what a file makes once
# is made once. What Python compiles is kept, also where the shell says otherwise: every process that a test starts would
# compile it again.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $$(($$(nproc 2>/dev/null || echo 2) + 1)) --dist loadfile

# The same on the newest Python that the pinned versions have wheels for, where the machine has one.
test-newest:
	@sh tools/newest.sh $(NEWEST_VENV)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Strange files, damaged runs, kills, full disks and wrong values at random: `make campaign MINUTES=60`.
campaign: $(READY)
	$(BIN)/python -m tools.campaign --minutes $(MINUTES)

# The page of results, the form of a record and the README's table, from results/records.
results: $(READY)
	$(BIN)/python -m tools.results

# The benchmark has an environment of its own; without the peers it still measures relwalk, and says what is missing.
$(BENCH_READY): pyproject.toml constraints.txt bench/requirements.txt
	@python=$$(sh tools/python.sh) && "$$python" -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable . matplotlib
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --requirement bench/requirements.txt \
		&& touch $@ || echo 'bench: the peers could not be installed; only relwalk is measured'

bench: $(BENCH_READY)
	$(BENCH_VENV)/bin/python bench/run.py $(if $(filter quick,$(BENCH)),--quick)

# Every system that PyKEEN has too: the same scores from the same weights, a training step and a ranking of both.
bench-models: $(BENCH_READY)
	$(BENCH_VENV)/bin/python bench/models.py

# The default recipe beside 30 random trials on each of eleven graphs, hours of one core: `BENCH=quick` makes 3 trials.
bench-recipes: $(READY)
	$(BIN)/python bench/recipes.py $(if $(filter quick,$(BENCH)),--quick)

# The service under load, 40,943 entities and a million: start, memory, the time of an answer, the recall of an index.
bench-serve: $(READY)
	$(BIN)/python bench/serving.py

clean:
	rm -rf $(VENV) $(NEWEST_VENV) $(BENCH_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
