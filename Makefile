# `make` lists what there is to do.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
NODES ?= 10
CASES ?= 1000000
SEED ?= 1
KUBERNETES ?=
ONLY ?=
LASTS ?= 300
VERSION ?=
OLDER := 1.36.3 1.35.4
RELEASE := cd scripts && ../$(BIN)/python -m release

.PHONY: help demo demo-down setup check format test test-matrix bench crds compare fuzz grants-cases drills release dist site pictures lock cluster cluster-down clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## see it work: a cluster, the operator, policies, pods
	@$(BIN)/python -m demo

demo-down: setup ## take that cluster down
	@$(BIN)/python -m demo down

setup: ## make .venv what the lock file says
	@scripts/setup

check: setup ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup ## mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check ## everything: checks, and tests on a real cluster that it raises itself
	$(BIN)/python -m testbed build
	$(BIN)/pytest -n 3 --hypothesis-profile ci

test-matrix: setup ## the tests that need a cluster, on the older versions of Kubernetes too
	@failed=; for version in $(OLDER); do \
	  echo "Kubernetes $$version"; \
	  $(BIN)/python -m testbed build --kubernetes $$version && $(BIN)/pytest tests/integration tests/e2e --kubernetes $$version \
	    || failed="$$failed $$version"; \
	done; [ -z "$$failed" ] || { echo "failed on:$$failed"; exit 1; }

bench: setup ## print how fast the product is, and what falls short (ONLY=text in a name)
	@$(BIN)/python -m bench $(ONLY)

crds: setup ## write what is generated: the CRD, values and roles of the chart, types of the language, the reference, golden files
	@cd scripts && ../$(BIN)/python -m generate
	@cd tests && PYTHONPATH=../scripts:.. ../$(BIN)/python -m support.goldens

compare: setup ## lowered expressions with the engine: CASES of them (1,000,000), on all cores
	$(BIN)/python -m differential --cases $(CASES) --seed $(SEED)

fuzz: setup ## broken requests, attacks on the server, evaluations: CASES (1,000,000), a fiftieth, a tenth
	$(BIN)/python -m fuzz --requests $(CASES) --attacks $$(( $(CASES) / 50 )) \
		--evaluations $$(( $(CASES) / 10 )) --seed $(SEED)

grants-cases: setup ## interleavings of replicas that grant devices: CASES of them (1,000,000), on one core
	cd tests && PYTHONPATH=../operator:. ../$(BIN)/python -m support.grants --cases $(CASES) --seed $(SEED)

drills: setup ## a flood of the ports, an author of hostile policies, and pods all the while: LASTS (300) seconds each
	$(BIN)/python -m testbed build
	FAIRLEAD_DRILL_S=$(LASTS) $(BIN)/pytest tests/e2e/test_drills.py

release: setup ## set VERSION (0.2.0, 0.2.0-rc.1) in every place, commit and tag; refuses a tree that is not clean or fails
	@$(RELEASE) release "$(VERSION)"

dist: setup ## wheel and source distribution in dist/, checked, and tried in an empty environment
	@$(RELEASE) dist

site: setup ## the documents as a site, in build/site/html
	@cd scripts && ../$(BIN)/python -m website

pictures: setup ## the pictures of the documents, in docs/pictures, by headless Chromium
	@cd scripts && ../$(BIN)/python -m pictures

lock: setup ## write the lock files again from pyproject.toml
	scripts/lock

cluster: setup ## raise a cluster with NODES kwok nodes (KUBERNETES=version)
	@$(BIN)/python -m testbed up $(if $(KUBERNETES),--kubernetes $(KUBERNETES))
	@$(BIN)/python -m testbed nodes $(NODES)

cluster-down: setup ## take it down without a trace
	@$(BIN)/python -m testbed down

clean: ## remove what the targets above wrote into the checkout
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
