# isorun: `make demo` and `make test` work on a machine that has Python 3.11 and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Tests run in three processes for two cores, since a third of their time they wait; who has done his takes half of what
# another has left, so that no long file comes last. Those marked alone run afterwards, one by one.
WORKERS ?= $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))
PARALLEL := -n $(WORKERS) --dist worksteal
# The files that have such tests: to collect all of them once more takes longer than these tests.
ALONE = $(shell grep -rlF mark.alone tests --include='test_*.py')
# Tests start thousands of interpreters. Where this is set, as in many containers, each would compile isorun anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo site test test-long coverage test-simulations test-engines test-environments test-browser test-trackers test-outside test-slow package test-packages lint bench clean

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || $(PYTHON) -m virtualenv $(VENV) || { rm -rf $(VENV); \
	  echo "no virtual environment could be made: apt-get install python3-venv, then run make again" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/isorun run examples/digits/study.toml
	$(BIN)/isorun report examples/digits/study.toml --html report.html

test: lint
	$(BIN)/python -m pytest -m 'not slow and not long and not alone and not engines' $(PARALLEL)
	$(BIN)/python -m pytest -m 'alone and not slow and not long' $(ALONE)

# What takes seconds a test: whole trainings, kills at random moments, searches for counterexamples.
test-long: $(STAMP)
	$(BIN)/python -m pytest -m 'long and not slow and not alone' $(PARALLEL)

# Which lines the quick tests reach, also in the processes that they start: htmlcov/index.html and a table.
coverage: $(STAMP)
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -q -m 'not slow and not alone and not engines' $(PARALLEL) --cov --cov-report=
	$(BIN)/python -m pytest -q -m 'alone and not slow' $(ALONE) --cov --cov-append --cov-report=
	$(BIN)/python -m coverage html --quiet
	$(BIN)/python -m coverage report --format=markdown > htmlcov/summary.md
	$(BIN)/python -m coverage report

# Coverage and error rates by simulation: slow, and what the statistics stand on.
test-simulations: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/analysis $(PARALLEL)

# Real engines, each started for the tests: SLURM, which root gets from Debian where it is not there. Its tests wait most
# of their time, so that four processes, each with a cluster of its own, do not disturb each other.
# Those of Ray, which pip gets, run one by one: a cluster is ten processes. So does the study that travels from engine to engine.
test-engines: $(STAMP)
	@command -v slurmctld >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends slurmctld slurmd slurm-client >/dev/null; } || \
	  echo "SLURM could not be installed: its tests are skipped" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]' || \
	  echo "Ray could not be installed: its tests are skipped" >&2
	$(BIN)/python -m pytest -m 'engines and not slow' -rs -n 4 tests/engines/test_slurm*.py
	$(BIN)/python -m pytest -m 'engines and not slow' -rs tests/engines/test_ray*.py tests/engines/test_travelling.py

# Environments really made, by pip and by uv where it is in PATH, and the example with packages of a registry.
test-environments: $(STAMP)
	$(BIN)/python -m pytest -m slow -rs tests/environments tests/worker/test_switches.py

# Every page in Debian's chromium, with axe-core of npm, which is kept in .browser.
test-browser: $(STAMP)
	$(BIN)/pip install -q playwright
	npm install --no-audit --no-fund --prefix .browser axe-core
	$(BIN)/python -m pytest -m slow -rs tests/serving/test_browser.py

# Import and export with the real trackers, each in an environment of its own, which is made in .trackers (some GB).
test-trackers: $(STAMP)
	$(BIN)/python -m pytest -m slow -rs tests/share

# Public programs as their authors type them, fetched and in environments of their own (some GB, an hour): docs/outside.md.
test-outside: $(STAMP)
	$(BIN)/python -m outside.run $(OUTSIDE)

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m 'slow or long'

# The wheel and the source distribution, in dist/.
package:
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check build
	build/tools/bin/python -m build

# Both built twice and looked into, then the wheel alone and with each extra in an environment of its own (some GB).
test-packages:
	$(PYTHON) packaging/verify.py $(if $(ONLY),--only $(ONLY))

# The documentation as a site in build/site, by Sphinx in an environment of its own; every warning and dead link is an error.
SITE := build/site-tools
$(SITE)/.installed: pyproject.toml constraints.txt
	@test -x $(SITE)/bin/pip || $(PYTHON) -m venv $(SITE) || $(PYTHON) -m virtualenv $(SITE)
	$(SITE)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > $(SITE)/wanted.txt
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r $(SITE)/wanted.txt
	touch $@

site: $(SITE)/.installed
	$(SITE)/bin/sphinx-build --quiet --jobs auto --fail-on-warning --keep-going --fresh-env -c docs/building -d build/site-cache docs build/site
	$(SITE)/bin/python docs/building/links.py build/site

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist htmlcov .coverage* .mypy_cache .pytest_cache .ruff_cache
