# One environment, .venv, that grows by need: the demo installs little, the tests and the
# documentation add to it. Each stamp file .venv/.has-EXTRA says that an extra is installed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
JOBS ?= 2

# One thread each: the tests run side by side, and small products gain nothing from more.
export OMP_NUM_THREADS ?= 1

# Tests on real data run where the data are; elsewhere they are skipped.
ifneq ($(wildcard ../shared/data),)
export MIXDA_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test lint docs bench clean
.NOTPARALLEL:

help:
	@echo "make demo    adapt three labeled scanners to a fourth; prints a table, writes a page"
	@echo "make test    lint, type check, tests and doctests"
	@echo "make lint    ruff and mypy only"
	@echo "make docs    documentation in docs/_build/html"
	@echo "make bench   benchmarks at a reduced size, in under 20 minutes; results in out/bench"
	@echo "make clean   remove what the others made, .venv included"

demo: $(VENV)/.has-cli $(VENV)/.has-report
	@$(BIN)/mixda demo --out out/demo

test: lint
	@$(BIN)/python -m pytest -n $(JOBS) -rs --durations 5

lint: $(VENV)/.has-dev
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy

docs: $(VENV)/.has-docs
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "documentation: $(abspath docs/_build/html/index.html)"

# All reduced to end in under 20 minutes on two cores; the results page has the whole commands.
# Stop it at any time: the cells that are finished are kept in out/bench. Code 3 means that some
# cells failed: the table says which.
run = $(BIN)/mixda bench run $(1) --out out/bench --jobs $(JOBS) || [ $$? = 3 ]
FEW = SourceOnly,GMMWBT,GMMDaDiL,TargetOnly
ABLATIONS = lighter better faster trajectories
bench: $(VENV)/.has-dev
	@echo "import mixda against what it needs anyway"
	@$(BIN)/python benchmarks/import_time.py
	@echo; echo "one EM iteration, scikit-learn against mixda, one thread"
	@$(BIN)/python benchmarks/em.py
	@echo; echo "dictionary learning, reduced (whole table: python benchmarks/dictionary.py)"
	@$(BIN)/python benchmarks/dictionary.py --threads 1 --K 31 --steps 10
	@echo; echo "methods and ablations"
ifdef MIXDA_DATA
	@$(call run,cwru --seeds 2)
	@$(call run,cwru-faults --seeds 1)
	@set -e; for suite in cwru cwru-faults; do \
		$(call run,$$suite --features standardized-mlp --methods $(FEW) --seeds 1); done
	@$(call run,tep --features moments --seeds 1)
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
	@echo "(on the toy only: MIXDA_DATA names no folder of data)"
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

clean:
	@rm -rf $(VENV) out build dist docs/_build docs/gallery docs/generated
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "mixda needs Python 3.10 or \
	newer, this is " + sys.version.split()[0] + "; say which: make PYTHON=/path/to/python3")'
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.has-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing mixda[$*] into $(VENV)"
	@$(PIP) install -qq --editable '.[$*]' --constraint constraints.txt
	@touch $@
