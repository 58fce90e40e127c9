# `make` lists what there is to do.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
NODES ?= 10
CASES ?= 1000000
SEED ?= 1
KUBERNETES ?=
ONLY ?=
LASTS ?=
FIX ?=
ENGINE ?=
PLATFORMS ?=
PUSH ?=
TAG ?=
VERSION ?=
ARCHIVE ?=
PORT ?= 5000
REGISTRY ?=
COSIGN_KEY ?=
PYTHONS ?=
TESTS ?=
TO ?= pypi
OLDER ?= 1.36.3 1.35.4 1.34.11 1.33.13
RELEASE := cd scripts && ../$(BIN)/python -m release

.PHONY: help demo demo-down setup check test unit test-cluster test-matrix test-kind test-cert-manager test-karpenter bench crds compare fuzz interleavings drills soak image sbom chart publish-local publish sign upload release dist binary manifests site screenshots pictures test-pythons test-release lock lock-check audit coverage cluster cluster-down clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## see it work: a cluster, the operator, policies, pods
	@$(BIN)/python -m demo

demo-down: setup ## take that cluster down
	@$(BIN)/python -m demo down

setup: ## make .venv what the lock file says
	@scripts/setup

check: setup ## lint, types, import contracts (FIX=yes mends first what the linter can)
	$(if $(FIX),$(BIN)/ruff check --fix . && $(BIN)/ruff format .)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@$(RELEASE) lint

test: check ## everything: checks, and tests on a real cluster that it raises itself
	$(BIN)/python -m testbed build
	$(BIN)/pytest -n 2 --hypothesis-profile ci --durations 40 --durations-min 15

unit: setup ## the tests that need no cluster, on all cores
	$(BIN)/pytest tests/unit -n auto --hypothesis-profile ci

test-cluster: setup ## the tests that need a cluster, on one version (KUBERNETES=version, FAIRLEAD_PROVIDER=kind)
	$(BIN)/python -m testbed build $(if $(KUBERNETES),--kubernetes $(KUBERNETES))
	$(BIN)/pytest tests/integration tests/e2e $(if $(KUBERNETES),--kubernetes $(KUBERNETES))

coverage: setup ## how much of the product the unit tests run, printed; nothing depends on the figure
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests/unit -n auto --hypothesis-profile ci -q; tests=$$?; \
	  $(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered --sort cover && exit $$tests

test-matrix: setup ## the tests that need a cluster, on the older versions of Kubernetes too (OLDER="version ...": those)
	@failed=; for version in $(OLDER); do \
	  echo "Kubernetes $$version"; \
	  $(BIN)/python -m testbed build --kubernetes $$version && $(BIN)/pytest tests/integration tests/e2e --kubernetes $$version \
	    || failed="$$failed $$version"; \
	done; [ -z "$$failed" ] || { echo "failed on:$$failed"; exit 1; }

test-kind: setup ## a cluster of kind on a Docker engine of its own, as root on Linux; nothing is pulled
	$(BIN)/pytest tests/engine --exitfirst

test-cert-manager: setup ## the chart beside cert-manager's controllers, which take minutes to build: certificates, a renewal
	$(BIN)/python -m testbed build
	$(BIN)/pytest tests/cert_manager

test-karpenter: setup ## nodes that Karpenter adds, with and without published affinity; it takes minutes to build
	$(BIN)/python -m testbed build
	$(BIN)/pytest tests/karpenter

bench: setup ## print how fast the product is, and what falls short (ONLY=text in a name)
	@$(BIN)/python -m bench $(ONLY)

crds: setup ## write what is generated: the CRD, values and roles of the chart, types of the language, the reference, golden files
	@cd scripts && ../$(BIN)/python -m generate
	@cd tests && PYTHONPATH=../scripts:.. ../$(BIN)/python -m support.goldens

compare: setup ## lowered expressions with the engine: CASES of them (1,000,000), on all cores
	$(BIN)/python -m differential --cases $(CASES) --seed $(SEED)

fuzz: setup ## broken requests, attacks on the server, evaluations, affinities: CASES (1,000,000), a fiftieth, a tenth, CASES
	$(BIN)/python -m fuzz --requests $(CASES) --attacks $$(( $(CASES) / 50 )) \
		--evaluations $$(( $(CASES) / 10 )) --affinities $(CASES) --seed $(SEED)

interleavings: setup ## interleavings of replicas that grant devices, keep domains, hold groups, and of leaders that learn: CASES of each (1,000,000)
	cd tests && PYTHONPATH=../operator:. ../$(BIN)/python -m support.grants --cases $(CASES) --seed $(SEED)
	cd tests && PYTHONPATH=../operator:. ../$(BIN)/python -m support.grants.domain_explorer --cases $(CASES) --seed $(SEED)
	cd tests && PYTHONPATH=../operator:. ../$(BIN)/python -m support.groups --cases $(CASES) --seed $(SEED)
	cd tests && PYTHONPATH=../operator:. ../$(BIN)/python -m support.learned --cases $(CASES) --seed $(SEED)

drills: setup ## a flood of the ports, an author of hostile policies, and pods all the while: LASTS (300) seconds each
	$(BIN)/python -m testbed build
	FAIRLEAD_DRILL_S=$(or $(LASTS),300) $(BIN)/pytest tests/e2e/test_drills.py

soak: setup ## an hour of pods, edits, kills, rotations and restarts, in which nothing may grow: LASTS (3600) seconds
	$(BIN)/python -m testbed build
	FAIRLEAD_SOAK_S=$(or $(LASTS),3600) $(BIN)/pytest tests/soak --log-cli-level=INFO --log-cli-format="%(message)s" -o faulthandler_timeout=0

image: setup ## the image, with Docker, Podman, buildah or without (ENGINE=one PLATFORMS="amd64 arm64" PUSH=REGISTRY/PATH TAG=one)
	@$(RELEASE) image --engine "$(ENGINE)" --platforms $(PLATFORMS) --push "$(PUSH)" --tag "$(TAG)"

sbom: setup ## what the image holds, as CycloneDX (ARCHIVE=of docker save; else it is built)
	@$(RELEASE) sbom $(abspath $(ARCHIVE))

chart: setup ## the chart's package in dist/, linted
	@$(RELEASE) chart

publish-local: setup ## image for two platforms and chart in a registry of this machine (PORT=5000), until Ctrl-C
	@$(RELEASE) publish-local --port $(PORT) --platforms $(PLATFORMS)

publish: setup ## image and chart to REGISTRY, such as ghcr.io/fairlead-dev
	@$(RELEASE) publish "$(REGISTRY)" --engine "$(ENGINE)" --platforms $(PLATFORMS)

sign: setup ## sign what `make publish` pushed, with COSIGN_KEY, else with the identity of the workflow that runs this
	@$(RELEASE) sign --key "$(COSIGN_KEY)"

upload: setup ## packages in dist/ to PyPI, which trusts the workflow that runs this; bundles to a draft (TO=github)
	@$(RELEASE) upload "$(TO)"

release: setup ## set VERSION (0.2.0, 0.2.0-rc.1) in every place, commit and tag; refuses a tree that is not clean or fails
	@$(RELEASE) release "$(VERSION)"

dist: setup ## wheel and source distribution in dist/, checked, and tried in an empty environment
	@$(RELEASE) dist

binary: setup ## the command line in a folder with its own Python, tried, and the manifest by which krew installs it
	@$(RELEASE) binary

manifests: setup ## install.yaml and crds.yaml in dist/, for an install without Helm (SET="image.tag=v1 ...")
	@$(RELEASE) manifests $(addprefix --set=,$(SET))

site: setup ## the documents as a site, in build/site/html
	@cd scripts && ../$(BIN)/python -m website

screenshots: setup ## the pictures of the page of `fairlead ui` among them, light and dark
	@cd scripts && ../$(BIN)/python -m pictures ui

pictures: setup ## the pictures of the documents, in docs/pictures, by headless Chromium
	@cd scripts && ../$(BIN)/python -m pictures

test-pythons: setup ## unit tests and examples on every Python that is supported (PYTHONS="3.13 3.14" TESTS=folders)
	@$(RELEASE) test-pythons --versions $(PYTHONS) --tests $(TESTS)

test-release: setup ## make and try what is published and takes long: bundle, plugin of kubectl, signatures, the image on arm64
	$(BIN)/pytest tests/release

lock: setup ## write the lock files again from pyproject.toml
	scripts/lock

lock-check: setup ## fail if `make lock` would write something else
	scripts/lock
	@git diff --exit-code --stat -- '*.lock' || { echo "error: there are newer packages: commit what \`make lock\` writes, after the tests" >&2; exit 1; }

audit: setup ## known weaknesses of what is locked; fails if it cannot ask
	@$(RELEASE) audit

cluster: setup ## raise a cluster with NODES kwok nodes (KUBERNETES=version)
	@$(BIN)/python -m testbed up $(if $(KUBERNETES),--kubernetes $(KUBERNETES))
	@$(BIN)/python -m testbed nodes $(NODES)

cluster-down: setup ## take it down without a trace
	@$(BIN)/python -m testbed down

clean: ## remove what the targets above wrote into the checkout
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
