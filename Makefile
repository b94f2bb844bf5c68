# Everything here makes its own virtual environment first; it needs Python 3.11 or newer and nothing else.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
TEST_WORKERS = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')  # one more than cores, as some wait
QUICK := tests/core tests/policies tests/experiment tests/simulation/test_heap_ucb.py tests/test_testing.py \
         tests/test_layers.py src/mfbandit/core src/mfbandit/policies src/mfbandit/experiment

.PHONY: reproduce test test-again quick check docs dist bench soak format figures clean

reproduce: $(READY)  ## the paper's figures and tables, measured anew: results/report.html
	$(VENV)/bin/mfbandit reproduce --out results

test: $(READY)  ## all tests and doctests; with COVERAGE=1 also the coverage gate, which takes half as long again
	$(RUN) -m pytest -n $(TEST_WORKERS) --dist worksteal $(if $(COVERAGE),--cov --cov-report=term-missing:skip-covered)

test-again: $(READY)  ## the tests that failed last, alone; at most three
	$(RUN) scripts/few_failures.py --most 3
	$(RUN) -m pytest --last-failed --last-failed-no-failures none

quick: $(READY)  ## what a change of a policy needs: no coverage, nothing slow
	$(RUN) -m pytest -n auto --dist worksteal -m 'not slow' $(QUICK)

check: $(READY)  ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: $(READY)  ## the site, offline and with warnings as errors: build/site/index.html
	$(RUN) -m sphinx --builder html --jobs auto --fail-on-warning --keep-going --quiet docs build/site
	@echo "Open build/site/index.html"

dist: $(READY)  ## wheel and source archive in dist/, each installed into an empty environment and tried
	rm -rf dist
	$(RUN) -m build --no-isolation --outdir dist
	$(RUN) scripts/try_dist.py dist

bench: $(READY)  ## speed, measured side by side
	$(RUN) benchmarks/ask_tell.py
	$(RUN) benchmarks/engine.py --out results/engine.json
	$(RUN) benchmarks/own_policies.py --out results/own-policies.json
	$(RUN) benchmarks/peers.py --out results/peers.json
	$(RUN) benchmarks/theory.py
	$(RUN) benchmarks/cli.py
	$(RUN) benchmarks/policies.py --out results/policies.json
	$(RUN) benchmarks/delayed.py --out results/delayed.json
	$(RUN) benchmarks/identification.py --out results/identification.json
	$(RUN) benchmarks/peeking.py --out results/peeking.json
	$(RUN) benchmarks/validity.py --out results/validity.json
	$(RUN) benchmarks/service.py --out results/service.json
	$(RUN) benchmarks/stalls.py --out results/stalls.json
	$(RUN) benchmarks/dashboard.py --out results/dashboard.json
	$(RUN) benchmarks/parallel.py --out results/parallel.json
	$(RUN) benchmarks/selection.py search --out results/selection-search.json
	$(RUN) benchmarks/confidence.py --out results/confidence.json
	$(RUN) benchmarks/selection.py lcbench --out results/selection-lcbench.json
	$(RUN) benchmarks/selection.py lcdb --out results/selection-lcdb.json

soak: $(READY)  ## two thousand faults of service, files, clock and workers under load, and what was lost: some 40 minutes
	$(RUN) tests/support/soak.py --faults 2000 --out results/soak.json

format: $(READY)  ## tidy the source
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

figures: $(READY)  ## the pictures of README and docs
	$(VENV)/bin/mfbandit reproduce --out results --only problem-1
	cp results/figure-2-regret-1.png docs/figures/regret-problem-1.png

clean:  ## forget everything that was made
	rm -rf $(VENV) dist build docs/gallery docs/reference/api .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage results

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --editable '.[dev]'
	touch $@
