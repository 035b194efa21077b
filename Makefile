# Everything a newcomer needs: `make demo`, `make test`. Each target builds its own .venv first.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BENCH_VENV  := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready

# The benchmark graphs, when they lie beside the project.
ifneq ($(wildcard ../shared/datasets),)
export RELWALK_DATA ?= $(abspath ../shared/datasets)
endif

.PHONY: demo test check bench clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/demo.sh

test: $(READY)
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The benchmark has an environment of its own; without the peers it still measures relwalk, and says what is missing.
$(BENCH_READY): pyproject.toml constraints.txt bench/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable . matplotlib
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --requirement bench/requirements.txt \
		&& touch $@ || echo 'bench: the peers could not be installed; only relwalk is measured'

bench: $(BENCH_READY)
	$(BENCH_VENV)/bin/python bench/run.py $(if $(filter quick,$(BENCH)),--quick)

clean:
	rm -rf $(VENV) $(BENCH_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
