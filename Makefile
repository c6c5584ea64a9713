# Sellerwatch. `make` alone lists what there is. Needs Python 3.11 or newer, nothing else: everything goes into .venv.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV    := .venv
BIN     := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
           --no-emit-find-links --no-header --no-annotate
PYTEST  := $(BIN)/python -m pytest -n 2 --dist worksteal
TESTS   ?=
BENCH   ?=
ANSWERS ?= 1000000
SOAK    ?= --minutes 10

# Stamps: setting up again happens only when a lock has changed.
RUNTIME := $(VENV)/.runtime
DEV     := $(VENV)/.dev

# SQS and EventBridge on this machine, in an environment of its own: it pins another botocore.
AWS_VENV := .venv-ministack
AWS      := $(AWS_VENV)/.stamp

# What asks an advisory database, in an environment of its own too: no part of what runs.
AUDIT_VENV := .venv-audit
AUDITOR    ?= $(AUDIT_VENV)/bin/pip-audit

# Nothing of the caller's own Python leaks in (compiled tests are kept: compiling them takes longer than running many),
# and no process asks questions.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: help setup setup-dev demo test check servers fmt lint types floors bench fuzz soak lock audit clean

help:
	@paint() { if [ -t 1 ]; then tput "$$@" 2>/dev/null || true; fi; }; \
	 bold=$$(paint bold); name=$$(paint setaf 6); dim=$$(paint dim); off=$$(paint sgr0); \
	 printf '\n  %sSellerwatch%s  what sellers changed, all of it, inside a hard request budget\n' "$$bold" "$$off"; \
	 awk -v name="$$name" -v dim="$$dim" -v bold="$$bold" -v off="$$off" -F ':.*## ' \
	   '/^##@ /            { printf "\n  %s%s%s\n", bold, substr($$0, 5), off } \
	    /^[a-z-]+:.*## /   { printf "    %smake %-8s%s %s\n", name, $$1, off, $$2 }' $(MAKEFILE_LIST); \
	 printf '\n  %sOne test file: make test TESTS=tests/domain/test_sellers.py%s\n\n' "$$dim" "$$off"

##@ To use it

demo: setup ## set up, then the main job on the embedded engine, and an account of it
	@$(BIN)/sellerwatch demo

setup: $(RUNTIME) ## what it takes to run, in .venv (again only when a lock changed)
	@:

##@ To work on it

# The coverage floor is for the whole suite: with TESTS= it is left out.
test: setup-dev servers ## everything, with coverage of at least 80 %
	@$(PYTEST) --hypothesis-profile=ci \
	  $(if $(TESTS),$(TESTS),--cov --cov-report=term --cov-fail-under=80)

check: setup-dev servers lint types floors ## before each commit: style, types, floors, fast tests (under 90 s)
	@$(PYTEST) -q -m 'not slow' $(TESTS)

servers: $(AWS) ## the servers that tests start for themselves, from the system's packages where they are missing
	@missing=; \
	 command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	 PATH="$$PATH:/usr/sbin" command -v mariadbd >/dev/null || missing="$$missing mariadb-server"; \
	 [ -z "$$missing" ] || said=$$(apt-get update -qq 2>&1 && \
	   DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing 2>&1) || \
	   { echo "$$said" >&2; exit 1; }

lint: setup-dev ## style: ruff, and the formatter's opinion
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo 'not formatted: make fmt' >&2; exit 1; }

types: setup-dev ## types: mypy --strict on src
	@$(BIN)/mypy --strict src

floors: setup-dev ## rooms look only downstairs: import-linter
	@$(BIN)/lint-imports --no-logo

fmt: setup-dev ## format, and mend what can be mended
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

bench: setup-dev ## CPU per product and peak memory, beside a bare loop and a weekend script
	@$(BIN)/python -m bench $(BENCH)

fuzz: setup-dev ## a million malformed answers against the parsers (ANSWERS=n for another number)
	@$(BIN)/python -m pytest -q -n 4 tests/adapters/test_parse_fuzz.py --answers=$(ANSWERS)

soak: setup-dev servers ## the distributed system on real engines under random kills, and what became of it
	@PYTHONPATH=tests $(BIN)/python -m e2e.soak $(SOAK)

simulate-nightly: setup-dev ## for hours: a death at every crossing, then two thousand seeds of bad days
	@$(BIN)/sellerwatch simulate --deaths 1
	@$(BIN)/sellerwatch simulate --count 2000

##@ To keep it

lock: setup ## new versions of everything, with hashes, naming no host
	@$(COMPILE) --upgrade requirements-setup.in -o requirements-setup.lock
	@$(COMPILE) --upgrade requirements.in -o requirements.lock
	@$(COMPILE) --upgrade -c requirements.lock requirements-dev.in -o requirements-dev.lock
	@$(COMPILE) --upgrade requirements-ministack.in -o requirements-ministack.lock
	@$(COMPILE) --upgrade requirements-audit.in -o requirements-audit.lock
	@echo 'locked; now: make audit, make test'

# With --strict a version that the advisory database does not know, or can't be asked about, is no version without a flaw.
audit: $(AUDITOR) ## known vulnerabilities in all that is locked; fails too where no advisory database can be asked
	@bad=; for lock in requirements*.lock; do \
	   if said=$$($(AUDITOR) --strict --require-hashes --disable-pip --progress-spinner off -r $$lock 2>&1); then \
	     echo "$$lock: $$said"; continue; \
	   fi; \
	   bad=1; \
	   case "$$said" in \
	     *Found*vulnerabilit*) echo "$$lock: $$said" >&2 ;; \
	     *) echo "$$lock: not audited, no advisory database answers for it: $$(echo "$$said" | tail -n 1)" >&2; break ;; \
	   esac; \
	 done; [ -z "$$bad" ]

clean: ## away with .venv and everything derived
	@rm -rf $(VENV) $(AWS_VENV) $(AUDIT_VENV) build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache src/*.egg-info
	@find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
	@if [ -d bench ]; then find bench -type d -name __pycache__ -prune -exec rm -rf {} +; fi

setup-dev: $(DEV)
	@:

# Debian's Python may come without ensurepip: then its pip fills the new environment from outside.
$(VENV)/.installer: requirements-setup.lock
	@if $(BIN)/uv --version >/dev/null 2>&1; then \
	   $(INSTALL) --require-hashes -r requirements-setup.lock; exit; \
	 fi; \
	 python=; \
	 for each in $(PYTHON) python3.11 python3 python3.12 python3.13 python3.14 python; do \
	   if "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$each; break; fi; \
	 done; \
	 if [ -z "$$python" ]; then \
	   echo 'Python 3.11 or newer is missing: no python3.11 or python3 of that age on the PATH (or: make PYTHON=/where/it/is)' >&2; \
	   exit 1; \
	 fi; \
	 echo "setting up $(VENV) with $$("$$python" --version)"; \
	 if "$$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then \
	   "$$python" -m venv --clear $(VENV) && \
	   $(BIN)/python -m pip install --quiet --require-hashes -r requirements-setup.lock; \
	 elif "$$python" -c 'import venv, pip' >/dev/null 2>&1; then \
	   "$$python" -m venv --clear --without-pip $(VENV) && \
	   "$$python" -m pip --python $(BIN)/python install --quiet --require-hashes -r requirements-setup.lock; \
	 else \
	   echo "$$python has neither ensurepip nor pip: install one of them (Debian: python3-venv or python3-pip)" >&2; exit 1; \
	 fi
	@touch $@

$(RUNTIME): $(VENV)/.installer requirements.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements-dev.lock
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

$(AWS): $(VENV)/.installer requirements-ministack.lock
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(AWS_VENV)
	@$(BIN)/uv pip install --quiet --python $(AWS_VENV)/bin/python --require-hashes -r requirements-ministack.lock
	@touch $@

$(AUDIT_VENV)/bin/pip-audit: $(VENV)/.installer requirements-audit.lock
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(AUDIT_VENV)
	@$(BIN)/uv pip install --quiet --python $(AUDIT_VENV)/bin/python --require-hashes -r requirements-audit.lock
	@touch $@
