PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test bench dev lint docs migrations clean

## demo: set up, make sample logs, run the main job, show the fleet's health
demo: $(STAMP)
	$(BIN)/health-assets demo

## test: set up, check the style and types, run the tests
test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

## bench: make benchmark data and print the table of ratios
bench: $(STAMP)
	$(BIN)/python -m bench
	$(BIN)/python -m bench.session_loops
	$(BIN)/python -m bench.endpoint

## dev: Dagster's web page with all assets, schedules and sensors, on http://127.0.0.1:3000; the demo's where there are no own logs
dev: $(STAMP)
	$(BIN)/health-assets dev

## docs: write docs/tables.md from the tables' classes
docs: $(STAMP)
	$(BIN)/python -m health_assets.warehouse.documentation

## migrations: write the revision that brings the PostgreSQL of HEALTH_WAREHOUSE to the tables' classes; MESSAGE says what is new
migrations: $(STAMP)
	$(BIN)/python -m health_assets.warehouse.migrations "$(MESSAGE)"
	$(BIN)/ruff format health_assets/warehouse/migrations

## lint: mend what can be mended by itself
lint: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Health Assets needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
