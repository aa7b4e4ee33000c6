# Needs git, make and a python3 >= 3.11 with venv. Everything else is set up here.

UV_VERSION := 0.13.9
UV         := .uv/bin/uv
BIN        := .venv/bin
STAMP      := .venv/.stamp
SRC        := $(wildcard src tests benchmarks scripts)

export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME

FAST := -n auto -m "not slow"
SLOW := -n auto -m slow

.DEFAULT_GOAL := help
.PHONY: help setup check lock-check format-check lint types imports test slow machines fuzz demo \
    bench fmt lock clean

help: ## list these targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
	    while IFS='|' read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done
	@printf '%-20s %s\n' '  make bench-NAME' 'run one benchmark: benchmarks/NAME.py'

setup: $(STAMP) ## make .venv with the locked packages (quick when nothing changed)

$(STAMP): pyproject.toml uv.lock $(UV)
	$(UV) sync --frozen --quiet --python .uv/bin/python
	@touch $@

# Another UV_VERSION is another stamp, so a new pin is installed over the old one.
$(UV): .uv/version-$(UV_VERSION)
	@touch $@

.uv/version-$(UV_VERSION):
	@set -e; found=; \
	for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	    if command -v $$python >/dev/null 2>&1 && \
	       $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	    then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo 'sojourn needs Python 3.11 or newer: no python3, python3.11 ... python3.14 on PATH is.' >&2; \
	    exit 1; \
	fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "$$found has no venv: install it (on Debian: apt-get install python3-venv)." >&2; \
	    exit 1; \
	fi; \
	rm -rf .uv .venv; \
	echo "setting up with $$($$found --version)"; \
	$$found -m venv .uv; \
	.uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	@touch $@

check: lock-check format-check lint types imports test ## everything a change must pass (format, lint, types, imports, fast tests)

lock-check: setup
	@$(UV) lock --check --offline --quiet --python .uv/bin/python || \
	    { echo 'uv.lock does not fit pyproject.toml: run make lock' >&2; exit 1; }

format-check: setup
	$(BIN)/ruff format --check $(SRC)

lint: setup
	$(BIN)/ruff check $(SRC)

types: setup
	$(BIN)/basedpyright

imports: setup
	$(BIN)/lint-imports --no-logo

test: setup ## the fast tests alone
	$(BIN)/pytest $(FAST)

slow: setup ## the slow tests: kill sweep, power cuts, big files
	$(BIN)/pytest $(SLOW)

machines: setup ## move an agent among three machines that are killed and cut off; needs root; MOVES=500
	PYTHONPATH=tests $(BIN)/python -u -m machines.campaign --moves $(or $(MOVES),500) \
	    $(if $(SEED),--seed $(SEED))

fuzz: $(UV) ## feed the readers what a fuzzer makes up, a minute each (not part of any other target)
	@test -x .fuzz/bin/python || $(UV) venv --quiet --python .uv/bin/python .fuzz
	$(UV) pip install --quiet --python .fuzz/bin/python --editable . 'atheris>=3,<4'
	@set -e; for target in log archive import; do .fuzz/bin/python scripts/fuzz.py $$target; done

demo: setup ## an agent is killed in the middle of a call, and goes on
	$(BIN)/sojourn demo

bench: setup ## run every benchmark
	@set -e; for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script; done

bench-%: setup
	$(BIN)/python benchmarks/$(subst -,_,$*).py

fmt: setup ## format the code, and mend what can be mended
	$(BIN)/ruff check --fix-only --quiet $(SRC)
	$(BIN)/ruff format $(SRC)

lock: $(UV) ## write uv.lock anew after a change of dependencies
	$(UV) lock --python .uv/bin/python

clean: ## remove everything that make made
	rm -rf .venv .uv .bench .fuzz dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find $(SRC) -name __pycache__ -type d -prune -exec rm -rf {} +
