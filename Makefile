# Everything a newcomer needs: `make demo`, `make test`. Each target builds its own .venv first.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

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

bench: $(READY)
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
