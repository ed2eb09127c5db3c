# Every target sets up what it needs. PYTHON is the interpreter that makes the virtual environment; RUN is where `make run` writes.
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/sample
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DOCUMENTS := 20000

.PHONY: help run test test-fast test-parity check format lock bench clean
.DEFAULT_GOAL := help

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

$(INSTALLED): requirements.lock setup.py
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "precis needs Python 3.11 to 3.13; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

run: $(INSTALLED) ## The main job on the built-in corpus: prepare, train, summarize, evaluate (6 to 10 minutes on two cores)
	$(BIN)/precis prepare --corpus sample:$(DOCUMENTS) --output $(RUN)/records --vocabulary_size 8000 --max_source_tokens 320 --max_target_tokens 64 --oracle_sentences 5
	$(BIN)/precis train --records $(RUN)/records --output $(RUN)/bundle --network tiny --steps 900 --batch_tokens 8192 --learning_rate 0.002 --warmup_steps 200 --validation_steps 300 --checkpoint_steps 300
	$(BIN)/precis train-extractor --records $(RUN)/records --output $(RUN)/extractor --epochs 3
	$(BIN)/precis train-keyphrases --records $(RUN)/records --output $(RUN)/keyphrases
	$(BIN)/precis summarize --corpus sample:$(DOCUMENTS) --split test --bundle $(RUN)/bundle --extractive neural,lead,frequency,lexrank,random,oracle --extractive_bundle $(RUN)/extractor --keyphrase_bundle $(RUN)/keyphrases --output $(RUN)/summaries
	$(BIN)/precis evaluate --input $(RUN)/summaries --show 3

test: $(INSTALLED) ## All tests, the fast ones first
	$(BIN)/python -m pytest -m "not slow" -n 2 --timeout 300
	$(BIN)/python -m pytest -m slow --timeout 1200

test-fast: $(INSTALLED) ## The tests that are not marked slow, about three minutes
	$(BIN)/python -m pytest -m "not slow" -n 2 --timeout 300

test-parity: $(INSTALLED) ## Imported networks against transformers; installs PyTorch beside the locked versions
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[parity]'
	$(BIN)/python -m pytest tests/test_*_parity.py tests/test_keras_preset.py tests/test_jax.py --timeout 1200

check: $(INSTALLED) ## Formatter, linter and type checker
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	mkdir -p build/layout/precis
	ln -sfn $(CURDIR)/precis/*.py* $(CURDIR)/model $(CURDIR)/pipelines build/layout/precis/
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/*.py

format: $(INSTALLED) ## Format the code and sort the imports
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

bench: $(INSTALLED) ## The benchmarks behind the README's figures
	for script in encode memory decode train overhead extractive oracle quality evaluate; do $(BIN)/python benchmarks/$$script.py || exit 1; done

lock: ## Resolve requirements.lock anew from setup.py; needs uv
	uv pip compile --quiet --universal --python-version 3.11 --extra all --extra dev --generate-hashes --no-annotate \
		--custom-compile-command "make lock" setup.py --output-file requirements.lock

clean: ## Remove what the targets made: the environment, runs, caches
	rm -rf $(VENV) runs build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
