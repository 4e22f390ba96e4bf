# Every target makes its own .venv and installs what it needs; only Python 3.11+, git and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test fuzz engines lint oldest bench study tutorials integrations docs wheel release-check clean

help:
	@echo "make demo   evaluate the embedded data and write demo/report.html"
	@echo "make test   run the tests"
	@echo "make fuzz   attack it with awkward data for ten minutes; goes on where the last run ended"
	@echo "make engines  run the tests that need Spark (and Java): two executors, one of them killed"
	@echo "make lint   check style, types and the direction of imports"
	@echo "make oldest run the common tests on the oldest numpy, scipy and numba declared"
	@echo "make bench  compare with other packages and write benchmarks/RESULTS.md"
	@echo "make study  run the study of all metrics (goes on where it stopped) and store its result"
	@echo "make docs   build the documentation into site/ and check its links"
	@echo "make tutorials     run the tutorials again and store their outputs in docs/tutorials/"
	@echo "make integrations  run the tests against Lightning, torchmetrics, evaluate and MLflow"
	@echo "make wheel         build the archives, install them in empty environments, use them"
	@echo "make release-check everything that is too long for each change; run it before a release"

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

fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -P benchmarks/fuzz.py --minutes 10  # -P: files there may be named as packages

engines: $(VENV)/.test
	$(BIN)/python -m pip install --quiet -e ".[engines]"
	CALIBRARY_ENGINES=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 0 tests/scale/test_scale_engines.py

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
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n auto tests/metrics/test_every_metric.py tests/metrics/test_golden.py

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/peers.py

# No PyTorch: pages that need it are stored. The links are checked without a network.
# Shards are kept in study-standard/: stop it with Ctrl-C and call it again.
study: $(VENV)/.installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/calibrary study run --preset standard --out study-standard --workers 2
	cp study-standard/study.json.gz src/calibrary/datasets/study.json.gz
	$(BIN)/python scripts/make_study_page.py

docs: $(VENV)/.docs
	$(BIN)/python scripts/make_tutorials.py --check
	$(BIN)/python scripts/make_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python scripts/check_links.py site

# Every tutorial that its packages are installed for; `make tutorials ONLY=training` runs one.
tutorials: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/make_tutorials.py $(ONLY)

# The real packages are large and have opinions about versions: an environment of their own.
integrations:
	$(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-integrations/bin/python -m pip install --quiet -e ".[integrations]" "pytest>=8"
	CALIBRARY_INTEGRATIONS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-integrations/bin/python -m pytest tests/integrations/test_integrations.py

wheel: $(BIN)/python
	$(BIN)/python -m pip install --quiet build twine
	$(BIN)/python scripts/check_wheel.py

release-check: lint test oldest engines integrations fuzz tutorials docs wheel
	@echo "ready: tag the version (CONTRIBUTING.md, Releasing)"

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-integrations .venv-bench* build dist demo site .mypy_cache .ruff_cache .hypothesis
