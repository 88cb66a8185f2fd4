# All targets share the environment .venv and install the extras they need into it. The stamp file
# .venv/.has-EXTRA means that an extra is installed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
JOBS ?= 2

# One thread per process: tests run in parallel, and small matrix products do not benefit from more.
export OMP_NUM_THREADS ?= 1

# Tests on real data are skipped if the data are not available.
ifneq ($(wildcard ../shared/data),)
export MIXDA_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test check lint docs bench package clean
.NOTPARALLEL:

help:
	@echo "make demo    adapt from three labeled scanners to a fourth; print a table, write a report"
	@echo "make test    run linters, type checks, tests and doctests"
	@echo "make check   lint, type check and a fast subset of the tests, in under a minute"
	@echo "make lint    run ruff and mypy only"
	@echo "make docs    build the documentation in docs/_build/html"
	@echo "make bench   run reduced benchmarks in under 20 minutes; results in out/bench"
	@echo "make package build sdist and wheel in dist, install the wheel elsewhere, run the demo from it"
	@echo "make clean   remove generated files and .venv"

demo: $(VENV)/.has-cli $(VENV)/.has-report
	@$(BIN)/mixda demo --out out/demo

test: lint
	@$(BIN)/python -m pytest -n $(JOBS) -rs --durations 5

# The core in under a minute: values, transport, barycenters, rules, committee, order of imports.
FAST = tests/test_layers.py tests/test_import.py tests/test_rules.py tests/mixture/test_mixture.py \
	tests/transport tests/barycenters tests/model/test_trust.py tests/model/test_old_files.py \
	tests/selection/test_committee.py tests/empirical
check: lint
	@$(BIN)/python -m pytest -n $(JOBS) $(FAST)

lint: $(VENV)/.has-dev
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy

docs: $(VENV)/.has-docs
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "documentation: $(abspath docs/_build/html/index.html)"

# Reduced to finish in under 20 minutes on two cores; the Results page has the full commands.
# It can be interrupted at any time: completed cells are kept in out/bench. Exit code 3 means that
# some cells failed; the table says which.
run = $(BIN)/mixda bench run $(1) --out out/bench --jobs $(JOBS) || [ $$? = 3 ]
FEW = SourceOnly,GMMWBT,GMMDaDiL,TargetOnly
ABLATIONS = lighter better faster trajectories
bench: $(VENV)/.has-dev
	@echo "import time of mixda compared with its dependencies"
	@$(BIN)/python benchmarks/import_time.py
	@echo; echo "one EM iteration, mixda compared with scikit-learn, one thread"
	@$(BIN)/python benchmarks/em.py
	@echo; echo "dictionary learning, reduced (full table: python benchmarks/dictionary.py)"
	@$(BIN)/python benchmarks/dictionary.py --threads 1 --K 31 --steps 10
	@echo; echo "methods and ablations"
ifdef MIXDA_DATA
	@$(call run,cwru --seeds 2)
	@$(call run,cwru-faults --seeds 1)
	@set -e; for suite in cwru cwru-faults; do \
		$(call run,$$suite --features standardized-mlp --methods $(FEW) --seeds 1); done
	@$(call run,tep --seeds 1)
	@$(call run,office-caltech --rows 150 --seeds 1)
	@$(call run,digits4 --rows 300 --seeds 1)
	@$(call run,gas-drift --rows 200 --seeds 1)
	@$(call run,cstr --rows 260 --seeds 1)
	@set -e; for suite in cwru cstr; do \
		$(call run,$$suite --rows 200 --methods AutoMSDA --seeds 1); done
	@set -e; for suite in $(ABLATIONS); do $(call run,$$suite --seeds 1); done
	@echo; echo "AutoMSDA on raw features, and deep methods on digits, reduced"
	@$(BIN)/python benchmarks/selection.py --sets scanners --seeds 1 --jobs $(JOBS) \
		--out out/bench-selection
	@$(BIN)/python benchmarks/deep_feature_mode.py --data digits --seeds 1 --rows 100 \
		--epochs 2 --pretrain-epochs 2
else
	@echo "(toy dataset only: MIXDA_DATA is not set to a folder with data)"
	@set -e; for suite in $(ABLATIONS); do $(call run,$$suite --data toy --seeds 1); done
endif
	@$(call run,toy --seeds 2)
	@$(BIN)/mixda bench table out/bench -o out/bench/table.md
	@cat out/bench/table.md
ifdef MIXDA_DATA
	@$(BIN)/mixda bench compare out/bench -o out/bench/compare.md
	@cat out/bench/compare.md
endif
	@$(BIN)/mixda bench figure out/bench

package: $(VENV)/.has-build
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist
	@.ci/try_wheel dist/mixda-*.whl $(abspath $(BIN)/python)

clean:
	@rm -rf $(VENV) out build dist docs/_build docs/gallery docs/generated
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "mixda requires Python 3.10 or \
	newer, but this is " + sys.version.split()[0] + "; use make PYTHON=/path/to/python3")'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.has-build: | $(BIN)/python
	@$(PIP) install -qq build
	@touch $@

$(VENV)/.has-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing mixda[$*] into $(VENV)"
	@$(PIP) install -qq --editable '.[$*]' --constraint constraints.txt
	@touch $@
