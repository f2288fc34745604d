# Needs Python 3.11, 3.12 or 3.13 and make; everything else, Java included, goes into .venv.

VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready
PIP    := $(PYTHON) -m pip --disable-pip-version-check install --quiet --timeout 120 --retries 10

.PHONY: help demo test test-matrix test-resident check lint docs bench bench-quick bench-guard chaos fuzz fuzz-sql fuzz-rest fuzz-graphs dashboard ui clean
.DEFAULT_GOAL := help

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: $(READY)  ## card fraud found in a stream, through a crash
	$(PYTHON) examples/fraud_detection.py --demo

test: lint  ## everything that must hold: format, lint, types, imports, all tests (what CI runs)
	$(PYTHON) tests/run_all.py $(VENV)

test-matrix: $(READY)  ## a part of the tests, and figures, on every supported version of Spark (450 MB for each, in build/)
	$(PYTHON) tests/matrix/run.py

ON_SPARK := tests/programs tests/spark tests/savepoints tests/kafka tests/cluster_real tests/chaos
test-resident: $(READY)  ## the tests that run jobs on Spark, on resident slots
	for folder in $(ON_SPARK); do \
	  echo "$$folder on resident slots"; \
	  MILLSTREAM_TEST_ENGINE=resident $(PYTHON) -m pytest -q --timeout 600 -m spark "$$folder" || failed=1; \
	done; test -z "$$failed"

check: lint  ## the same without the tests that need Spark
	$(PYTHON) -m pytest --timeout 300 -m "not spark"

lint: $(READY)  ## format, lint, types and imports only
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

docs: $(READY)  ## the documentation site in build/site; a dead link or a page without a place in docs/index.md is an error
	$(PYTHON) -m sphinx --builder html --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs build/site

bench: $(READY)  ## all benchmarks against Flink, Spark and bytewax: many hours, resumable; writes benchmarks/RESULTS.md
	$(PYTHON) benchmarks/run.py --write

bench-quick: $(READY)  ## the most important benchmarks, small, one round: about ten minutes once the peers are installed
	$(PYTHON) benchmarks/run.py --quick --accept-noise $(if $(WRITE),--write)

bench-guard: $(READY)  ## CPU time of a dozen small programs against the committed figures; RECORD=1 writes them
	$(PYTHON) benchmarks/guard.py $(if $(RECORD),--record)

CRASH_POINTS := tests/simulation/test_crashes.py tests/savepoints/test_crashes.py tests/postgres/test_crash_points.py
chaos: $(READY)  ## long fault tests: workers, executors and drivers killed, output compared
	$(VENV)/bin/millstream doctor --archive-classes
	$(VENV)/bin/millstream chaos all --size long
	MILLSTREAM_ALL_POINTS=1 $(PYTHON) -m pytest -q --timeout 0 $(CRASH_POINTS)

FUZZ_SECONDS ?= 600
fuzz: $(READY)  ## 10 minutes of coverage-guided fuzzing for each parser of bytes from storage or the network
	$(PIP) atheris
	$(PYTHON) tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

fuzz-sql: $(READY)  ## 20,000 random queries: as streams, as Catalyst and as DuckDB answer them
	MILLSTREAM_FUZZ_QUERIES=20000 $(PYTHON) -m pytest -q --timeout 0 tests/sql/fuzz

fuzz-rest: $(READY)  ## 20,000 random requests to each REST application, with its token and without
	MILLSTREAM_OPENAPI_REQUESTS=20000 $(PYTHON) -m pytest -q --timeout 0 tests/rest/test_openapi.py tests/gateway/test_openapi.py

fuzz-graphs: $(READY)  ## 2,000 random graphs at three parallelisms, compared with networkx and SciPy
	MILLSTREAM_GRAPHS=2000 $(PYTHON) -m pytest -q --timeout 0 tests/jobs/test_graph_oracles.py

dashboard: $(READY)  ## every page of Flink's own dashboard, in a real browser, with a job of millstream
	MILLSTREAM_FLINK_WEB=1 $(PYTHON) -m pytest -q --timeout 0 tests/browser/test_flink_dashboard.py

ui:  ## the files of the web UI from its sources, after a change of them; needs Node 20.19 or newer
	cd ui && npm ci --no-audit --no-fund && npm run build

clean:  ## remove what was made here, .venv included
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src packages tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A name on the path may be a stub that only says how to install it, so each candidate is run.
$(PYTHON):
	@for python in python3.13 python3.12 python3.11 python3 python; do \
	  if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; then \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    exec "$$python" -m venv $(VENV); \
	  fi; \
	done; \
	echo "make needs Python 3.11, 3.12 or 3.13 (with venv) on the path, and found none" >&2; exit 1

$(READY): requirements-dev.lock pyproject.toml packages/millstream-chaos/pyproject.toml | $(PYTHON)
	@echo "installing the packages of requirements-dev.lock (pyspark is about 450 MB; once)"
	@$(PIP) -r requirements-dev.lock
	@$(PIP) --no-deps --no-build-isolation --editable . --editable packages/millstream-chaos
	@$(PYTHON) -c 'from millstream.engine.spark.java import find_java; find_java()' 2>/dev/null || \
	  { echo "no Java 17 or newer found: installing one into $(VENV)"; $(PIP) --no-build-isolation --editable '.[java]'; }
	@$(PYTHON) -c 'from millstream.engine.spark.java import find_java; java = find_java(); print(f"java {java.version} from {java.found_in}")'
	@touch $(READY)
