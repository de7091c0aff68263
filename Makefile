# Everything here sets itself up: Python 3.11, make and a C compiler are enough.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt

.PHONY: demo test lint proof cluster-proof bench clean

demo: $(VENV)/.demo          ## two small real datasets through the whole house, and a board
	$(BIN)/fidopt demo

test: $(VENV)/.dev lint      ## what has to pass before every commit
	$(BIN)/python -m pytest -q -m "not slow" -n auto --maxprocesses 4 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

proof: $(VENV)/.dev          ## the slow proofs
	$(BIN)/python -m pytest -q -m slow

cluster-proof: $(VENV)/.dev  ## those of clusters alone, against a real sshd and a real SLURM where they are installed
	$(BIN)/python -m pytest -q -rs -m slow tests/cluster

bench: $(VENV)/.dev          ## ours beside its peers
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

# torch comes first and from pip alone: other resolvers would replace a CPU build by one for a GPU.
$(VENV)/.base: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==0.9.30" "torch==2.13.0"
	touch $@

$(VENV)/.demo: $(VENV)/.base pyproject.toml
	$(UV) --editable '.[score,cluster,demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.base pyproject.toml
	$(UV) --editable '.[all,align,dev]'
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) demo dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
