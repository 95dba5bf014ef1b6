# isorun: `make demo` and `make test` work on a machine that has Python 3.11 and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test test-simulations test-slow lint bench clean

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || $(PYTHON) -m virtualenv $(VENV) || { rm -rf $(VENV); \
	  echo "no virtual environment could be made: apt-get install python3-venv, then run make again" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/isorun run examples/digits/study.toml
	$(BIN)/isorun report examples/digits/study.toml --html report.html

test: lint
	$(BIN)/python -m pytest -m 'not slow'

# Coverage and error rates by simulation: slow, and what the statistics stand on.
test-simulations: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/analysis

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
