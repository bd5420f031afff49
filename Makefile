# Everything a person or CI runs. A virtual environment is made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= 1
JOBS ?= 2
NOT_TORCH := $(if $(filter 0,$(TORCH)), and not torch)

.PHONY: run test test-long test-arm test-old check gen bench fuzz docs clean

run: $(VENV)/run.stamp  ## all operators on example cases, checked against the float64 reference
	$(BIN)/aclnn run examples/cases.csv --check -o out

test: $(VENV)/test$(TORCH).stamp  ## the test suite; TORCH=0 leaves PyTorch, the independent reference, out
	$(BIN)/python -m pytest -m "not long$(NOT_TORCH)" tests/test_tiny.py
	$(BIN)/python -m pytest -n $(JOBS) -m "not long$(NOT_TORCH)" --doctest-modules --doctest-ignore-import-errors --ignore=tests/test_tiny.py src/aclnn tests

test-long: $(VENV)/test1.stamp $(VENV)/docs.stamp  ## what is slower: sanitizers, browser, fresh environments, instruction sets
	$(BIN)/python -m pytest -n $(JOBS) -m long --durations=12 tests

test-arm: $(VENV)/test0.stamp  ## tiny tests, example cases, a core of the kernel tests and the wheel as Linux on ARM, emulated
	$(BIN)/python -m tests.emulated arm

test-old: $(VENV)/test0.stamp  ## the same as processors of 2008 and 2013: SSE4 and AVX2, emulated
	$(BIN)/python -m tests.emulated nehalem haswell

check: $(VENV)/test$(TORCH).stamp  ## style, types, architecture, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m aclnn.gen --check
	$(BIN)/python -m benchmarks.pages --check

gen: $(VENV)/test0.stamp  ## rewrites every file that is derived from the contracts
	$(BIN)/python -m aclnn.gen

bench: $(VENV)/bench.stamp  ## times every operator beside PyTorch and JAX, writes the tables and plots; hours (aclnn bench --quick: less)
	$(BIN)/aclnn bench

fuzz: $(VENV)/fuzz.stamp  ## coverage-guided fuzzing of everything that reads what others wrote; SECONDS=60
	$(BIN)/python -m tests.hostile $(if $(filter environment% command%,$(origin SECONDS)),$(SECONDS),60)

docs: $(VENV)/docs.stamp  ## both languages; needs no network once the tools are there
	$(BIN)/sphinx-build -W --keep-going -q -a -b html -c docs docs/en build/docs/en
	$(BIN)/sphinx-build -W --keep-going -q -a -b html -c docs -t zh docs/zh build/docs/zh

clean:
	rm -rf $(VENV) out build dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[fast]"
	touch $@

$(VENV)/test0.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[fast,report,lint]"
	touch $@

# JAX has no wheel for every machine; without it the tables have a column less
$(VENV)/bench.stamp: $(VENV)/test1.stamp
	$(BIN)/python -m pip install --quiet -e ".[bench]" || true
	touch $@

# atheris has no wheel for every Python; without it the fuzzer runs unguided
$(VENV)/fuzz.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[fuzz]" || $(BIN)/python -m pip install --quiet -e ".[fast,test]"
	touch $@

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@

# torch first and pinned: any other request would pull gigabytes of accelerator packages
$(VENV)/test1.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet -e ".[fast,report,torch,lint]"
	touch $@
