# Thin over `python -m minillm …`, which works without make too (README.md says how).
#   make run     execute the course, write report/          make run ARGS="notebooks/01_launch_bound_decode.ipynb"
#   make test    run the tests                              make test ARGS="tests/lab -q"
#   make test-all  the same, and the tests that take long
#   make lab     open JupyterLab                            make lab ARGS="--no-browser"
# An active environment (venv or conda) is used as it is and keeps its torch; without one, .venv is made here.
# No file is named by its absolute path, so a folder with spaces in its name works.
PYTHON ?= python3
IN_ENVIRONMENT = python=$$("$(PYTHON)" -m minillm.environment --which) && "$$python" -m minillm

.PHONY: run test test-all lab environment
run: environment
	@$(IN_ENVIRONMENT) doctor || echo "The doctor found something: the notebooks are executed all the same."
	@$(IN_ENVIRONMENT) run $(ARGS)

test: environment
	@$(IN_ENVIRONMENT) test $(ARGS)

test-all: environment
	@$(IN_ENVIRONMENT) test --all $(ARGS)

lab: environment
	@$(IN_ENVIRONMENT) lab $(ARGS)

environment:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is not there: install Python 3.10 or newer."; exit 1; }
	@"$(PYTHON)" -m minillm.environment
