PYTHON ?= python3
BIN := .venv/bin
# The tests start hundreds of processes, and without bytecode each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo help test check bench soak lock protocol documents manifests format image image-test cluster-test clean

demo: .venv/.runtime ## the whole chain on this machine: no cluster, no GPU
	@$(BIN)/gpu-share demo

help: ## this list
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

test: .venv/.development ## all tests
	@$(BIN)/pytest -n 7 --dist worksteal

check: .venv/.development ## style, types, import contracts, generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.plugin.stubs --check
	@$(BIN)/python -m tests.docs.generate --check
	@$(BIN)/python -m tests.manifests.render --check

format: .venv/.development ## what of the style can be corrected by itself
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: .venv/.development ## measurements, as ratios in one run; ONLY=webhook, worst, crowd, node or scrapes for a part
	@$(BIN)/python -m tests.bench $(ONLY)

soak: .venv/.development ## 200,000 reviews under changes, for some minutes: none is lost, and the memory does not grow
	@$(BIN)/python -m tests.bench.soak

image: ## one image for all parts, with docker, podman or buildah: make image [IMAGE=name:tag] [ARCHIVE=file] [BASE=image] [OPTIONS=...]
	@manifests/image/build

image-test: .venv/.development ## the image on a Debian of its own, built with buildah as root, and what runs in it
	@$(BIN)/pytest tests/image

cluster-test: .venv/.development ## on the cluster of KUBECONFIG, which has no gpu-share yet: kind, for instance
	@$(BIN)/pytest tests/cluster

protocol: .venv/.development ## the stubs of the kubelet's protocols
	@$(BIN)/python -m tests.plugin.stubs

manifests: .venv/.development ## manifests/install.yaml, out of the directories beside it
	@$(BIN)/python -m tests.manifests.render

documents: .venv/.development ## the generated tables and outputs in the documents
	@$(BIN)/python -m tests.docs.generate

lock: .venv/.development ## newest versions within pyproject.toml's ranges, with hashes
	@$(BIN)/uv pip compile -q --upgrade pyproject.toml --group dev $(LOCK) -o requirements-dev.lock
	@$(BIN)/uv pip compile -q --upgrade pyproject.toml -c requirements-dev.lock $(LOCK) -o requirements.lock
	@$(BIN)/uv pip compile -q --upgrade manifests/image/build.in $(LOCK) -o manifests/image/build.lock
LOCK := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gpu-share needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1): name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "gpu-share needs Python's venv: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/.runtime: .venv/bin/pip requirements.lock pyproject.toml
	@echo "setting up .venv (once) ..."
	@$(BIN)/pip install -q --no-compile --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

.venv/.development: .venv/.runtime requirements-dev.lock
	@echo "setting up .venv for development (once) ..."
	@$(BIN)/pip install -q --no-compile --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

clean: ## remove .venv and all caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
