# Every target sets up what it needs in an environment of its own and can be the first command
# in a fresh clone.
#
#   PYTHON=python3.12   another interpreter, with an environment of its own
#   TORCH=no            leave torch, and all that needs it, out
#   WORKERS=0           run the tests in one process

PYTHON ?= python3
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
TORCH ?= yes
WORKERS ?= 2
PYTEST_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PACKAGES := $(patsubst %/__init__.py,%,$(wildcard $(addsuffix /__init__.py,reference proofs oracle kmt_torch kmt_cli)))

ifeq ($(TORCH),no)
EXTRAS := proofs,oracle,cli,docs,dev
ALL := $(VENV)/.all-but-torch
TYPED := $(filter-out kmt_torch,$(PACKAGES))
export KMT_WITHOUT_TORCH := 1
else
EXTRAS := torch,proofs,oracle,cli,docs,bench,dev
ALL := $(VENV)/.all
TYPED := $(PACKAGES) benchmarks
endif
CLI := $(VENV)/.cli

.DEFAULT_GOAL := help
.PHONY: help demo test check lint typecheck docs proofs bench figures nightly format clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(CLI) ## run the demonstration (installs what the command line needs, nothing else)
	$(BIN)/kmt demo

test: $(ALL) ## set everything up and run the tests
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

# In this order: the site shows what tests and proofs have put on record.
check: ## all that the continuous integration checks
	$(MAKE) lint
	$(MAKE) typecheck
	$(MAKE) test
	$(MAKE) proofs
	$(MAKE) docs

lint: $(ALL) ## style and layout
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(ALL) ## types
	$(BIN)/mypy $(TYPED)

docs: $(ALL) ## build the site, strictly, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || \
	echo "make docs: no Chromium: what pages load and log, contrast, cut formulas on paper, use from the keyboard, and search are not checked"

proofs: $(ALL) ## run every step of the derivations, and the Coq proofs where there are any
	$(BIN)/python -m proofs
	@if [ -d proofs/coq ]; then $(MAKE) -C proofs/coq; fi

bench: $(ALL) ## speed and memory against named peers
	$(BIN)/python -m benchmarks

figures: $(CLI) ## make the picture of the README anew
	$(BIN)/kmt run gaussians -k 5 --output build/figures
	cp build/figures/figure.png docs/figures/gaussians.png

nightly: $(ALL) ## the tests, with many more and fresh random examples
	KMT_HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

format: $(ALL) ## put the code into its layout
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## remove what was built and cached
	rm -rf build dist site docs/_generated .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .git -prune -o -name '.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the environments, too
	rm -rf .venv .venv-*

# One environment, a stamp for each set of extras: a set only ever adds to what is installed.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "make: $(PYTHON) is missing or older than Python 3.11; name another one, as in 'make PYTHON=python3.12 ...'" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "make: $(PYTHON) cannot make virtual environments; on Debian or Ubuntu, 'apt-get install python3-venv' mends that" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(CLI): pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP) install --quiet --constraint constraints.txt --editable '.[cli]'
	@touch $@

$(ALL): pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP) install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $(CLI) $@
