PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SPARK_VENV := .venv-spark
SPARK_STAMP := $(SPARK_VENV)/.installed
SUPPLY_STAMP := $(VENV)/.installed-supply
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

# tests on Apache Spark run where there is one: of `make spark`, or another that SPARK_HOME names
ifndef SPARK_HOME
SPARK_HOME := $(wildcard $(CURDIR)/$(SPARK_VENV)/lib/python*/site-packages/pyspark)
endif
export SPARK_HOME
# pytest keeps its rewritten tests, and every process of the tests what it compiled
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test nightly check style bench fuzz hostile soak live-soak dist pins sbom audit spark dev lint docs system schema clean

## demo: set up, make sample logs, run the main job, show the fleet's health
demo: $(STAMP)
	$(BIN)/health-assets demo

## test: set up, check the style, types and layers, run the tests
test: style
	$(PYTEST) --numprocesses 3

## nightly: all that `test` does with many more examples, and the tests that faster ones stand for in `test`
nightly: style
	HYPOTHESIS_PROFILE=nightly $(PYTEST) --numprocesses 3 -m ""

## check: the style, types and layers, and the tests of the lower layers, in about two minutes
check: style
	$(PYTEST) --numprocesses 3 $(addprefix health_assets_tests/,core schema scoring consumer house/test_layers.py house/test_docstrings.py house/test_names.py)

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

## bench: make benchmark data and print the table of ratios
bench: $(STAMP)
	$(BIN)/python -m bench
	$(BIN)/python -m bench.session_loops
	$(BIN)/python -m bench.peers $(if $(PANDAPROBE),--pandaprobe $(PANDAPROBE))
	$(BIN)/python -m bench.small
	$(BIN)/python -m bench.endpoint

## fuzz: mutated input for every parser, for SECONDS (600) with SEED (1); TARGETS names some of them
fuzz: $(STAMP)
	$(BIN)/python -m health_assets_tests.fuzz $(TARGETS) --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1)

## hostile: NATIVE (100000) and OTLP (20000) mutated lines, KILLS (50) in the writes of each of three steps, SPARK_KILLS (20), COLLECTOR_KILLS (100), REQUESTS (50000)
hostile: $(STAMP)
	$(BIN)/python -m health_assets_tests.fuzz native --count $(or $(NATIVE),100000) --seed $(or $(SEED),1)
	$(BIN)/python -m health_assets_tests.fuzz otlp --count $(or $(OTLP),20000) --seed $(or $(SEED),1)
	$(BIN)/python -m health_assets_tests.hostile kills --count $(or $(KILLS),50) --seed $(or $(SEED),1)
	$(BIN)/python -m health_assets_tests.hostile spark --count $(or $(SPARK_KILLS),20) --seed $(or $(SEED),1)
	$(BIN)/python -m health_assets_tests.hostile collector --count $(or $(COLLECTOR_KILLS),100) --seed $(or $(SEED),1)
	$(BIN)/python -m health_assets_tests.hostile requests --count $(or $(REQUESTS),50000) --seed $(or $(SEED),1)

## soak: a whole installation for MINUTES (30) with SEED (1): a live writer, kills, restarts, a full disk; PostgreSQL or ENGINE=duckdb
soak: $(STAMP)
	$(BIN)/python -m health_assets_tests.soak --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1) --engine $(or $(ENGINE),postgres)

## live-soak: run, serve, collect and MCP clients for MINUTES (120) at ticks of EVERY (5) seconds, with kills, with SEED (1)
live-soak: $(STAMP)
	$(BIN)/python -m health_assets_tests.soak.live --minutes $(or $(MINUTES),120) --every $(or $(EVERY),5) --seed $(or $(SEED),1)

## dist: the wheel and the source distribution of the last commit, built twice; fails where the two differ
dist: $(STAMP)
	$(BIN)/python supply_chain.py dist

## pins: write requirements-hashed.txt, exact versions with hashes, for pip install --require-hashes
pins: $(SUPPLY_STAMP)
	$(BIN)/python supply_chain.py pins

## sbom: write sbom.cdx.json, the CycloneDX bill of materials of an environment made from the pins
sbom: $(SUPPLY_STAMP) requirements-hashed.txt
	$(BIN)/python supply_chain.py sbom

## audit: known vulnerabilities of the pins; fails where some are known and where nobody could tell
audit: $(SUPPLY_STAMP) requirements-hashed.txt
	$(BIN)/python supply_chain.py audit

requirements-hashed.txt: pyproject.toml constraints.txt
	$(MAKE) pins

## spark: Apache Spark for its tests, half a gigabyte in an environment of its own; it needs Java 17
spark: $(SPARK_STAMP)

## dev: Dagster's web page with all assets, schedules and sensors, on http://127.0.0.1:3000; the demo's where there are no own logs
dev: $(STAMP)
	$(BIN)/health-assets dev

## docs: write tables, settings, lineage, attributes of spans, the JSON Schemas and the figures from the code, and build the site into site/
docs: $(STAMP)
	$(BIN)/python -m health_assets.schema.documentation
	$(BIN)/python docs/json_schemas.py
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/generated_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

## screenshots: take the pictures of docs/pages with the demo's fleet; it needs Chromium
screenshots: $(STAMP)
	$(BIN)/python -m docs.screenshots

## system: the files of a new scoring system, NAME, and the line that names it
system: $(STAMP)
	$(BIN)/python -m new_system $(NAME)

## schema: all that follows from changed tables: version, revision, docs; MESSAGE says what is new, or is `baseline`
schema: $(STAMP)
	$(BIN)/python -m health_assets_tests.support.changed_tables "$(MESSAGE)" $(or $(COMMIT),HEAD)

## lint: mend what can be mended by itself
lint: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Health Assets needs Python 3.11 or newer; run make PYTHON=python3.11")'
	@echo "installing into $(VENV); the first time takes a few minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

# its Python would hide that of the client, which all others use
$(SPARK_STAMP): constraints.txt
	$(PYTHON) -m venv $(SPARK_VENV)
	$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --constraint constraints.txt pyspark
	touch $(SPARK_STAMP)

$(SUPPLY_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[supply]'
	touch $(SUPPLY_STAMP)

clean:
	rm -rf $(VENV) $(SPARK_VENV) build dist site requirements-hashed.txt sbom.cdx.json *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
