# Needs python3.11 and make; every target makes `.venv` if it is missing or older than its inputs.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2
export PATH := $(CURDIR)/$(BIN):$(PATH)
# tests start hundreds of processes, each of which would compile the sources anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo test test-all lit lit-external pytest pytest-all faults mutants lint format bench gpu-check clean

help:
	@echo "make demo | test | test-all | faults | mutants | lint | format | bench | gpu-check | clean"

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/python -m examples.demo

# the tests of every change: minutes on two cores
test: lit pytest

# the slow ones too, and the lit tests once more through the shell, as a user runs the tools
test-all: lit-external pytest-all

lit: $(STAMP)
	mkdir -p build/lit && lit -sv -j$(JOBS) lit_tests

lit-external: $(STAMP)
	mkdir -p build/lit && lit -sv -j$(JOBS) --param external=1 lit_tests

pytest: $(STAMP)
	pytest -q -n $(JOBS)

pytest-all: $(STAMP)
	pytest -q -n $(JOBS) -m ''

# which test notices each planted fault; part of `make test` too
faults: $(STAMP)
	$(BIN)/python -m tests.faults --jobs $(JOBS)

# random edits of the compiler that no test notices: hours
mutants: $(STAMP)
	$(BIN)/python -m tests.faults.mutants --jobs $(JOBS)

lint: $(STAMP)
	ruff check .
	ruff format --check .
	pyright

format: $(STAMP)
	ruff check --fix .
	ruff format .

# the kernels on a GPU, beside the CPU target and torch; PYTHON is one with a CUDA torch and triton
gpu-check:
	$(PYTHON) benchmarks/gpu/check.py --device-only
	$(MAKE) venv PYTHON=python3.11
	$(BIN)/python -m benchmarks.gpu.write build/gpu
	$(PYTHON) benchmarks/gpu/check.py build/gpu

# all benchmarks, some with two threads too, for docs/benchmarks.md: hours on two cores (`make bench QUICK=--quick`: less)
bench: $(STAMP)
	$(BIN)/python -m benchmarks all $(QUICK)

clean:
	rm -rf build .pytest_cache .ruff_cache
