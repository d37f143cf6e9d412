# One door to everything. `make` alone lists the targets; each of them sets the environment up first when needed.

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= 3
MINUTES ?= 10

VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
# folders that hold Python; those that do not exist yet are left out
CODE    = $(wildcard src tests benchmarks examples hack)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run story test check format bench bench-kube first-job soak chart kube-build kube-up kube-down lock setup clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(READY)  ## a scheduler on this machine, with a demo cluster and jobs that compete; Ctrl-C ends it
	@PATH="$(CURDIR)/$(BIN):$$PATH" OPTIMUS_CALLED=$(BIN)/optimus $(BIN)/optimus up --demo $(ARGS)

story: $(READY)  ## a small story in the terminal: watch the scheduler decide
	@$(BIN)/optimus story

test: $(READY)  ## all tests (ARGS='-k gang' narrows, WORKERS=0 runs them in one process)
	@$(BIN)/python -m tests -n $(WORKERS) --dist worksteal $(ARGS)

check: $(READY)  ## lint, format, types, import contracts
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo

format: $(READY)  ## put every file into house format
	$(BIN)/ruff check --fix --exit-zero $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(READY)  ## measure speed and quality
	@$(BIN)/python -m benchmarks $(ARGS)

bench-kube: $(READY)  ## binding on a real API server beside others: forty minutes, quiet machine (ARGS='--only drain')
	@$(BIN)/python -m benchmarks.kube $(ARGS)

first-job: $(READY)  ## how long from a fresh clone to the first job (clones the present commit into a temporary folder)
	@$(BIN)/python -m benchmarks.first_job

soak: $(READY)  ## random worlds against the invariants (MINUTES=10), every deliberate fault against the tests, 200 kills and 100 preemptions under load, 2000 worlds before kube-scheduler, 200 kills of a leader on Kubernetes
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --jobs $(WORKERS) $(ARGS)
	@$(BIN)/python -m tests.mutations --jobs $(WORKERS)
	@$(BIN)/python -m tests.local.killing
	@$(BIN)/python -m tests.local.preempting
	@$(BIN)/python -m tests.kube.differential --worlds 2000
	@$(BIN)/python -m tests.kube.faults --kills 200

chart: $(READY)  ## write the parts of the Helm chart that follow from the code
	@$(BIN)/python -m hack.charting.chart

kube-build: $(READY)  ## build etcd, Kubernetes, KWOK, operators, helm and promtool from their Go modules into a cache (once, some half an hour); as root, install what real nodes need
	@$(BIN)/python -m hack.controlplane build
	@$(BIN)/python -m hack.operators
	@$(BIN)/python -m hack.charting
	@$(BIN)/python -m hack.frameworks

kube-up: $(READY)  ## a real Kubernetes control plane on this machine, with nodes that only seem to be there (PROFILE=real: two real ones)
	@$(BIN)/python -m hack.controlplane up $(if $(PROFILE),--profile $(PROFILE)) $(ARGS)

kube-down: $(READY)  ## stop it and remove its data
	@$(BIN)/python -m hack.controlplane down

lock: $(READY)  ## write requirements.lock anew from pyproject.toml (ARGS=--upgrade for newer versions)
	@$(BIN)/pip-compile --quiet --extra dev --all-build-deps --allow-unsafe --generate-hashes --strip-extras \
	    --no-header --no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	    --output-file requirements.lock $(ARGS) pyproject.toml

setup: $(READY)  ## only prepare the environment in .venv

clean:  ## remove the environment and everything that was generated
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, in two steps: what the lock names, then the package itself (editable).
# A step is done again only when the file it follows from has changed. What is never imported is never compiled.

$(LOCKED): requirements.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "$(PYTHON) cannot create environments. On Debian: apt install python3-venv"; exit 1; }
	@echo "setting up $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
