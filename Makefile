# make demo   install, run the demonstration on embedded data, write figures
# make test   install, lint, type-check, run the tests
# make help   the rest

VENV    := .venv
PYTHON  ?= python3
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
STAMP   := $(VENV)/.installed
EXTRAS  := dev

# The version of PyTorch that `make compat` tries.
TORCH   ?= 2.15.0
COMPAT  := .venv-compat-$(TORCH)

.DEFAULT_GOAL := help
.PHONY: help install demo test check lint types unit test-slow compat wheel bench \
        bench-quick docs docs-quick linkcheck format clean

help:           ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt torch
	$(PIP) install --quiet -c constraints.txt --editable '.[$(EXTRAS)]'
	touch $(STAMP)

install: $(STAMP)  ## create .venv and install Caveat with all that development needs

demo: install   ## the demonstration: two figures and a table, in outputs/demo
	$(BIN)/caveat demo

check: lint types  ## lint and types, no tests

lint: install   ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## mypy, strict
	$(BIN)/mypy

unit: install   ## the tests alone, on both cores
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

test: check unit  ## lint, types and tests

test-slow: install  ## the tests that take minutes
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -m slow

# No part of `make test`: builds of other versions may bring gigabytes of CUDA.
$(COMPAT)/.installed: pyproject.toml
	test -x $(COMPAT)/bin/python || $(PYTHON) -m venv $(COMPAT)
	$(COMPAT)/bin/python -m pip --disable-pip-version-check install --quiet \
		torch==$(TORCH) --editable '.[data,hf,plot,report]' hypothesis pytest scoringrules
	touch $@

compat: $(COMPAT)/.installed  ## sampling and predictive tests with another PyTorch: make compat TORCH=2.6.0
	OMP_WAIT_POLICY=PASSIVE $(COMPAT)/bin/python -m pytest -m 'not slow' \
		tests/sampling tests/predictive tests/zoo tests/test_torch.py

wheel: install  ## build dist/caveat-*.whl
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .

bench: install  ## speed and memory against the plain loop (and peers, if installed)
	$(BIN)/python -m benchmarks

bench-quick: install  ## the same with few draws: a smoke test, not a measurement
	$(BIN)/python -m benchmarks --quick

# From an empty folder, with warnings as errors: a name, a link or an anchor that is
# not there, an example that fails. Nothing is downloaded.
SPHINX  := OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m sphinx -c docs -W --keep-going
SITE    := docs/_build

docs: install   ## the site, examples run: docs/_build/html/index.html
	rm -rf $(SITE) docs/api docs/auto_examples
	$(SPHINX) -b html . $(SITE)/html

docs-quick: install  ## the same with the examples shown, not run
	$(SPHINX) -D plot_gallery=0 -b html . $(SITE)/html

linkcheck: install  ## asks every address outside that the site names (needs a network)
	$(SPHINX) -D plot_gallery=0 -b linkcheck . $(SITE)/links

format: install  ## let ruff format and fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:          ## remove the environment, caches and outputs
	rm -rf $(VENV) .venv-compat-* $(SITE) docs/api docs/auto_examples dist outputs .pytest_cache .mypy_cache .ruff_cache .hypothesis
