# Every target makes the environment that it needs; only Python 3.11+, git and make are assumed.
#
# `make demo` and `make test` share .venv, as a new user has it. Every other target has an environment of its own, so that
# nothing it installs can hide what those two are missing. .ci/run runs demo, test, lint, oldest, test-plain, docs and
# test-torch.
# It does not run the following, because they take long or need more: engines (Java, Postgres), integrations (large packages),
# fuzz (twenty minutes), tutorials, wheel, bench, study. `make release-check` runs the first five of them too.
PYTHON ?= python3
PYTHONS ?= $(PYTHON)
VENV := .venv
BIN := $(VENV)/bin
# A pinned version gives the CPU build where the package index has one: make test-torch TORCH=torch==2.13.0
TORCH ?= torch
# From 1.12 on dbt-core downloads a parser from GitHub while it is installed: make dbt DBT=dbt-core tries the newest.
DBT ?= dbt-core<1.12
# One thread for each pytest worker: the workers share the cores.
# Compiled files are kept, because many tests start a process of their own.
PYTEST := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PARALLEL := -n auto
# Files with tests that are skipped without PyTorch; of the common suite only the tests that name it.
COMMON := $(shell find tests -name test_every_metric.py)
TORCH_TESTS := $(filter-out $(COMMON),$(shell grep -rlE 'importorskip..(torch|calibrary.losses)' tests))

.PHONY: help demo test test-quick test-torch test-plain fuzz engines dbt lint oldest bench study tutorials integrations r docs wheel \
  release-check claims new-metric clean

help:
	@echo "make demo          evaluate the embedded data and write demo/report.html"
	@echo "make test          run the tests; make test ROOM=core runs those of the core, ROOM=plots those of one room"
	@echo "make test-quick    run a part of them in about one minute, with every test of a metric that you change"
	@echo "make test-torch    run the tests that need PyTorch"
	@echo "make test-plain    run golden values and common tests without numba"
	@echo "make lint          check style, types and the direction of imports"
	@echo "make new-metric    write everything that a new metric changes, and list what is left to write"
	@echo "make docs          build the documentation into site/ and check its links"
	@echo "make oldest        run the common tests on the oldest numpy, scipy and numba declared"
	@echo "make fuzz          attack it with awkward data, files, logs and stores for twenty minutes; goes on where it ended"
	@echo "make engines       run the query of a state on Postgres, ClickHouse, DataFusion and Spark (needs Java, Postgres)"
	@echo "make dbt           run the dbt project of examples/dbt; make engines does it too"
	@echo "make integrations  run the tests against Lightning, torchmetrics, evaluate, MLflow, W&B, Inspect, lm-eval and R"
	@echo "make r             check the R package of r/ (needs R with reticulate, tibble and testthat)"
	@echo "make tutorials     run the tutorials again and store their outputs in docs/tutorials/"
	@echo "make wheel         build the archives, install them in empty environments, use them"
	@echo "make bench         compare with other packages and write benchmarks/RESULTS.md"
	@echo "make study         run the study of all metrics (goes on where it stopped) and store its result"
	@echo "make claims        hold every sentence to the truth on a thousand simulated data sets, about ten minutes"
	@echo "make release-check everything that is too long for each change; run it before a release"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[demo]"
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[test]"
	@touch $@ $(VENV)/.demo

# .venv-NAME holds the extra NAME: lint, docs, engines, integrations, bench.
$(VENV)-%/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-$*/bin/python -m pip install --quiet -e ".[$*]"
	@touch $@

demo: $(VENV)/.demo
	@echo "$(VENV) takes $$(du -sm $(VENV) | cut -f1) MB."
	$(BIN)/calibrary demo

# make test ROOM=plots runs the tests of one room, make test ROOM=core those of the core (docs/code-map.md).
ROOM ?=
CORE := base numerics data grouping kernels maps metrics lookup inference evaluation
ROOMS := $(if $(filter core,$(ROOM)),$(CORE),$(ROOM))
TESTS := $(wildcard $(ROOMS:%=tests/%) $(ROOMS:%=src/calibrary/%))
$(if $(ROOM),$(if $(TESTS),,$(error ROOM=$(ROOM) is no room: pass core or a folder of tests/)))
test: $(VENV)/.test
	@$(BIN)/python tests/skips.py
	$(PYTEST) $(BIN)/python -m pytest $(PARALLEL) $(TESTS)

new-metric: $(VENV)/.test
	$(BIN)/python scripts/new_metric.py

test-quick: $(VENV)/.test
	$(PYTEST) $(BIN)/python -m pytest $(PARALLEL) --quick tests

test-torch: $(VENV)-torch/.installed
	$(VENV)-torch/bin/python -m pip install --quiet "$(TORCH)" -e ".[test]"
	$(PYTEST) CALIBRARY_MUST_RUN=torch $(VENV)-torch/bin/python -m pytest $(PARALLEL) $(TORCH_TESTS) src/calibrary/losses src/calibrary/scale
	$(PYTEST) CALIBRARY_MUST_RUN=torch $(VENV)-torch/bin/python -m pytest $(PARALLEL) $(COMMON) -k torch

# PyTorch is installed by the target that needs it, so that TORCH= can name the build.
$(VENV)-torch/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-torch
	$(VENV)-torch/bin/python -m pip install --quiet --upgrade pip
	@touch $@

fuzz: $(VENV)/.test
	$(PYTEST) $(BIN)/python -P benchmarks/fuzz.py --minutes 10  # -P: files there may be named as packages
	$(PYTEST) $(BIN)/python -P benchmarks/fuzz_doors.py --minutes 1 --more 1000000

engines: $(VENV)-engines/.installed
	$(VENV)-engines/bin/python -m pip install --quiet -e ".[test]"
	$(PYTEST) CALIBRARY_ENGINES=1 CALIBRARY_MUST_RUN=spark $(VENV)-engines/bin/python -m pytest -n 0 $(shell find tests -name test_scale_engines.py -o -name test_scale_dialects.py -o -name test_scale_inputs.py -o -name test_scale_any_engine.py -o -name test_store_engines.py)
	$(MAKE) dbt

# dbt has an environment of its own, because it needs older packages than the engines.
dbt:
	@test -x $(VENV)-dbt/bin/python || $(PYTHON) -m venv $(VENV)-dbt
	$(VENV)-dbt/bin/python -m pip install --quiet -e ".[dbt,test]" "$(DBT)"
	$(PYTEST) CALIBRARY_MUST_RUN=package $(VENV)-dbt/bin/python -m pytest -n 0 $(shell find tests -name test_store_dbt.py)

lint: $(VENV)-lint/.installed
	$(VENV)-lint/bin/ruff check .
	$(VENV)-lint/bin/ruff format --check .
	$(VENV)-lint/bin/mypy
	$(VENV)-lint/bin/mypy --strict tests/typed_calls.py
	$(VENV)-lint/bin/pyright --pythonpath $(VENV)-lint/bin/python tests/typed_calls.py
	$(VENV)-lint/bin/lint-imports
	$(VENV)-lint/bin/python scripts/make_stubs.py --check

# Without numba, as a plain `pip install calibrary` leaves it: golden values, common tests, and the plain forms.
PLAIN_TESTS := $(shell find tests -name test_golden.py -o -name test_plain.py -o -name test_import.py)
test-plain:
	$(PYTHON) -m venv $(VENV)-plain
	$(VENV)-plain/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-plain/bin/python -m pip install --quiet pytest pytest-xdist hypothesis -e .
	! $(VENV)-plain/bin/python -c "import numba" 2>/dev/null
	$(PYTEST) $(VENV)-plain/bin/python -m pytest $(PARALLEL) $(PLAIN_TESTS)
	$(PYTEST) $(VENV)-plain/bin/python -m pytest $(PARALLEL) --quick $(COMMON)

# The oldest numpy, scipy and numba that pyproject declares.
oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-oldest/bin/python -m pip install --quiet "numpy==1.26.*" "scipy==1.12.*" "numba==0.59.*" pytest pytest-xdist hypothesis -e .
	$(PYTEST) $(VENV)-oldest/bin/python -m pytest $(PARALLEL) $(COMMON) $(shell find tests -name test_golden.py)

bench: $(VENV)-bench/.installed
	$(VENV)-bench/bin/python benchmarks/peers.py

# Shards are kept in study-standard/: stop it with Ctrl-C and call it again.
study: $(VENV)-bench/.installed
	$(PYTEST) $(VENV)-bench/bin/calibrary study run --preset standard --out study-standard --workers 2
	cp study-standard/study.json.gz src/calibrary/datasets/study.json.gz
	$(VENV)-bench/bin/python scripts/make_study_page.py

# No PyTorch: pages that need it are stored. The links are checked without a network.
docs: $(VENV)-docs/.installed
	$(VENV)-docs/bin/python scripts/make_tutorials.py --check
	$(VENV)-docs/bin/python scripts/make_docs.py
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet --strict
	$(VENV)-docs/bin/python scripts/check_links.py site

# Every tutorial that its packages are installed for; `make tutorials ONLY=training` runs one.
tutorials: $(VENV)-docs/.installed
	$(PYTEST) $(VENV)-docs/bin/python scripts/make_tutorials.py $(ONLY)

# The real packages are large and have opinions about versions.
integrations: $(VENV)-integrations/.installed
	$(VENV)-integrations/bin/python -m pip install --quiet "pytest>=8"
	$(PYTEST) CALIBRARY_INTEGRATIONS=1 CALIBRARY_MUST_RUN=integrations,mcp,torch $(VENV)-integrations/bin/python -m pytest $(shell find tests -name test_integrations.py -o -name test_fresh_logs.py -o -name test_mcp.py -o -name test_action.py -o -name test_space.py)
	@if command -v R >/dev/null; then $(MAKE) --no-print-directory r; else echo "R is not installed: r/ was not checked"; fi

# R CMD check with its tests on this Python; a warning or a note is an error too.
r: $(VENV)/.test
	rm -rf build/r && mkdir -p build/r
	cd build/r && R CMD build ../../r && \
	  CALIBRARY_MUST_RUN=r RETICULATE_PYTHON=$(CURDIR)/$(BIN)/python R CMD check --no-manual calibrary_*.tar.gz && \
	  tail -n 5 calibrary.Rcheck/00check.log | grep -qx "Status: OK"

# `make wheel PYTHONS=python3.11,python3.13` installs and uses it with each of them.
wheel:
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --upgrade pip build twine
	$(VENV)-wheel/bin/python scripts/check_wheel.py --pythons $(PYTHONS)

claims: $(VENV)/.test
	$(PYTEST) CALIBRARY_CLAIMS=1000 $(BIN)/python -m pytest -q -n 0 tests/reporting/test_claims.py tests/reporting/test_page_claims.py tests/lookup/test_metric_claims.py

# First what everybody runs, alone; then the others two at a time, because many of them use one core. The output of each
# comes when it is done.
release-check: export CALIBRARY_FULL := 1
release-check:
	@$(MAKE) --no-print-directory -j1 stage-demo stage-test
	@$(MAKE) --no-print-directory -j2 --output-sync=target $(patsubst %,stage-%,\
	  fuzz test-torch engines integrations docs claims lint oldest test-plain wheel tutorials)
	@echo "ready: tag the version (CONTRIBUTING.md, Releasing)"

stage-tutorials: stage-docs # they share an environment and the pages
stage-%:
	@started=$$(date +%s); echo "== make $*"; $(MAKE) --no-print-directory -j1 $* && \
	  echo "== make $*: ok in $$(($$(date +%s) - started)) s"

clean:
	rm -rf $(VENV) $(VENV)-* build dist demo site .mypy_cache .ruff_cache .hypothesis
