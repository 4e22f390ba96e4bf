# Every target makes its own .venv and installs what it needs; only Python 3.11+, git and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test engines lint oldest bench docs clean

help:
	@echo "make demo   evaluate the embedded data and write demo/report.html"
	@echo "make test   run the tests"
	@echo "make engines  run the tests that need Spark (and Java): two executors, one of them killed"
	@echo "make lint   check style, types and the direction of imports"
	@echo "make oldest run the common tests on the oldest numpy, scipy and numba declared"
	@echo "make bench  compare with other packages and write benchmarks/RESULTS.md"
	@echo "make docs   build the documentation into site/"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[all]"
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -e ".[test]"
	@touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -e ".[lint]"
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/calibrary demo

test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto  # one thread a worker: two workers share two cores

engines: $(VENV)/.test
	$(BIN)/python -m pip install --quiet -e ".[engines]"
	CALIBRARY_ENGINES=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 0 tests/test_scale_engines.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typed_calls.py
	$(BIN)/pyright tests/typed_calls.py
	$(BIN)/lint-imports
	$(BIN)/python scripts/make_stubs.py --check

# The oldest numpy, scipy and numba that pyproject declares, in an environment of their own.
oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-oldest/bin/python -m pip install --quiet "numpy==1.26.*" "scipy==1.12.*" "numba==0.59.*" pytest pytest-xdist hypothesis -e .
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n auto tests/test_every_metric.py tests/test_golden.py

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/peers.py

docs: $(VENV)/.docs
	$(BIN)/python scripts/make_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean:
	rm -rf $(VENV) $(VENV)-oldest .venv-bench* build demo site .mypy_cache .ruff_cache .hypothesis
