# Every target sets up what it needs in .venv; all it takes is Python 3.11 or newer and make.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
# Some container images forbid Python to keep what it compiled: every start of a program then compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help python setup demo readme-demo test test-fast test-gate lint proto proto-check proto-baseline conformance systems typescript bench bars wheels wheels-check documented-commands images compose-test clean

help:
	@echo "make demo            compare four memories on a world made on the spot, in some three minutes"
	@echo "make test            run the tests (ARGS='tests/proto -k digest' for some of them)"
	@echo "make test-fast       run the tests of parts that start no run, for the work in between"
	@echo "make test-gate       run those that make test leaves out since they take long"
	@echo "make lint            style, types, import rules, words that are out, the contract"
	@echo "make bars            make worlds and measure every bar of the simulator (ARGS=--llm)"
	@echo "make bench           measure this machine's floor and the parts that must be fast"
	@echo "make wheels          build the wheel of every distribution into dist/"
	@echo "make wheels-check    install the wheels into a new environment outside the repository, and use them there"
	@echo "make documented-commands  run the command blocks of README and docs as they stand (ARGS=docs/running.md for some)"
	@echo "make images          build the images of harness and backends, and print their sizes (ARGS=--all: also those of make systems)"
	@echo "make compose-test    build the images, bring them up, hold them to the contract (needs Docker)"
	@echo "make proto           generate the stubs of the contract"
	@echo "make proto-check     compare the stubs with what the contract generates"
	@echo "make proto-baseline  make the contract as it is the one to stay compatible with"
	@echo "make conformance     hold every backend of backends/ to SPEC.md (ARGS=bm25, or a folder; make typescript first)"
	@echo "make systems         install and test the backends that have an environment of their own (ARGS=mem0 for some)"
	@echo "make typescript      build and test backends in TypeScript (Node 20 or newer)"
	@echo "make clean           remove what was set up"

python:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not there; Python 3.11 or newer is needed" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is Python $$($(PYTHON) -c 'import platform; print(platform.python_version())'), but 3.11 or newer is needed: make PYTHON=/path/to/python3.11 TARGET" >&2; exit 1; }

setup: python
	@$(PYTHON) scripts/setup_environment.py

demo: setup
	$(BIN)/memarena demo $(ARGS)

# README's table and picture, from a demonstration of its own; another one's: python scripts/readme_demo.py FOLDER
readme-demo: setup
	rm -rf runs/readme-demo
	$(BIN)/memarena demo --out runs/readme-demo
	$(BIN)/python -m scripts.readme_demo runs/readme-demo

# Tests run in four processes, also on two cores, since much of a test's time is waiting. One process takes a file's
# tests, or a folder's, in the order of tests/conftest.py, which also says what is marked `gate`; what ARGS selects runs
# in one process, marked or not.
TEST_PROCESSES ?= 4
IN_PROCESSES := -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder
FAST := answering configs dataset gateway judging log meters proto report scoring tables
test: setup
	$(BIN)/python -m pytest $(if $(ARGS),$(ARGS),-m 'not gate' $(IN_PROCESSES))

test-fast: setup
	$(BIN)/python -m pytest $(FAST:%=tests/%) --ignore=tests/report/test_html_in_browser.py -m 'not gate and not llm' $(IN_PROCESSES) $(ARGS)

test-gate: setup
	$(BIN)/python -m pytest tests -m gate $(IN_PROCESSES) $(ARGS)

lint: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/python -m scripts.check_types
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.import_table --check
	$(BIN)/python -m scripts.words
	$(BIN)/python -m scripts.docstrings
	$(BIN)/python -m scripts.hashes --check
	cd proto && ../$(BIN)/buf lint
	cd proto && ../$(BIN)/buf breaking --against baseline.binpb
	$(BIN)/python scripts/digest_vectors.py
	$(BIN)/python scripts/generate_stubs.py --check

proto: setup
	$(BIN)/python scripts/generate_stubs.py

proto-check: setup
	$(BIN)/python scripts/generate_stubs.py --check

proto-baseline: setup
	cd proto && ../$(BIN)/buf build -o baseline.binpb --exclude-source-info

conformance: setup
	$(BIN)/python -m scripts.conformance $(ARGS)

typescript:
	@command -v npm >/dev/null || { echo "error: npm is not there; Node 20 or newer is needed" >&2; exit 1; }
	for folder in $(dir $(wildcard backends/*/package.json)); do (cd $$folder && npm ci && npm run build && npm test) || exit 1; done

# Backends with an environment of their own. Their tests need it, and are skipped without MEMARENA_SYSTEMS_TEST;
# `make conformance` then holds them to SPEC.md as well.
systems: setup
	$(BIN)/memarena backends install $(if $(ARGS),$(ARGS),--all)
	MEMARENA_SYSTEMS_TEST=1 $(BIN)/python -m pytest $(if $(ARGS),$(ARGS:%=backends/%/tests),$(sort $(wildcard backends/*/tests)) tests/systems) -n $(TEST_PROCESSES) --dist loadfile

bench: setup
	$(BIN)/python bench/run.py $(ARGS)

wheels: setup
	$(BIN)/python scripts/build_wheels.py

# Another interpreter: make wheels-check ARGS=/path/to/python3.13
wheels-check: setup
	$(BIN)/python scripts/check_wheels.py $(ARGS)

documented-commands: setup
	$(BIN)/python scripts/documented_commands.py $(ARGS)

bars: setup
	$(BIN)/python scripts/bars.py $(ARGS)

# docker-compose 1.29 or Compose v2, whichever is there; another one: make images COMPOSE='podman compose'
COMPOSE ?= $(if $(shell command -v docker-compose),docker-compose,docker compose)
images: python
	options=$$($(PYTHON) scripts/backend_folders.py compose $(ARGS)) && cd compose && $(COMPOSE) -f base.yaml $$options
	docker images --filter reference='memarena-*' --format 'table {{.Repository}}\t{{.Size}}'

# Images first; then all files that need containers, each in one process, since each has stacks of its own. The others
# are part of make test and make test-gate.
WITHOUT_CONTAINERS := extractors files images script
compose-test: setup
	$(BIN)/python -m tests.compose.stack
	MEMARENA_COMPOSE_TEST=1 $(BIN)/python -m pytest tests/compose $(WITHOUT_CONTAINERS:%=--ignore=tests/compose/test_%.py) $(if $(ARGS),$(ARGS),$(IN_PROCESSES))

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
