# One set-up for everybody: a virtual environment in .venv, made with uv if there is one, else with pip.
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE  # else every worker compiles all tests anew, with their assertions

.PHONY: attack demo test test-all test-bare test-fresh test-newest-textual test-portable pages dist test-install site test-thorough clients ray test-ray test-agents check format bench shots chaos clean-venv

$(VENV)/.installed: pyproject.toml
ifeq ($(UV),)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
else
	uv venv --quiet --allow-existing $(VENV)
	uv pip install --quiet --python $(BIN)/python -e .
endif
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed
ifeq ($(UV),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
else
	uv pip install --quiet --python $(BIN)/python -e '.[dev]'
endif
	@touch $@

$(VENV)/.installed-ray: pyproject.toml $(VENV)/.installed-dev
ifeq ($(UV),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ray]'
else
	uv pip install --quiet --python $(BIN)/python -e '.[ray]'
endif
	@touch $@

ray: $(VENV)/.installed-ray  ## installs Ray, which the tests of clusters need

$(VENV)/.installed-release: pyproject.toml $(VENV)/.installed
ifeq ($(UV),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
else
	uv pip install --quiet --python $(BIN)/python -e '.[release]'
endif
	@touch $@

$(VENV)/.installed-site: pyproject.toml $(VENV)/.installed
ifeq ($(UV),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
else
	uv pip install --quiet --python $(BIN)/python -e '.[site]'
endif
	@touch $@

demo: $(VENV)/.installed  ## the guided sample; without a terminal it runs headless
	@if [ -t 1 ]; then $(BIN)/plait demo; else $(BIN)/plait demo --headless; fi

SUITE = $(BIN)/pytest -q -n 4 --dist loadfile --no-loadscope-reorder -m "not real_agents and not bench"
test: $(VENV)/.installed-dev  ## every test but the long ones, with one of its cases; TESTS="tests/e2e" takes some
	$(SUITE) --short $(TESTS)

test-all: $(VENV)/.installed-dev  ## every case of every test
	$(SUITE) $(TESTS)

RAY_TESTS = tests/e2e/test_ray_loss.py tests/e2e/test_ray_apart.py tests/e2e/test_ray_story.py tests/integration/test_site_contract.py \
  tests/integration/test_site_parcel.py tests/integration/test_site_ray.py tests/e2e/test_terminal_story.py tests/unit/test_ray_examples.py
test-ray: $(VENV)/.installed-ray  ## what needs Ray: real clusters of this machine, some with a network for each node (as root)
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -k ray $(RAY_TESTS)

test-bare:  ## `make test` on a fresh clone, as an ordinary user, with every optional program hidden
	.ci/bare test

test-fresh:  ## `make test` as the first command in a new Debian with Python 3.13; needs root and debootstrap
	.ci/fresh trixie user test

test-thorough: $(VENV)/.installed-dev  ## the same as test-all with ten thousand seeds and all kill moments
	PLAIT_THOROUGH=1 $(SUITE)

check: $(VENV)/.installed-dev  ## format, lint, types, contracts, dead code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

test-portable: $(VENV)/.installed-dev  ## as on a system without /proc, prctl and cgroups; any use of /proc is an error
	PLAIT_PORTABLE=1 $(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder tests/unit tests/property

NEWEST := .venv-newest
test-newest-textual:  ## the console's tests on the newest Textual, also one that the pin leaves out
	@$(MAKE) --no-print-directory VENV=$(NEWEST) $(NEWEST)/.installed-dev
ifeq ($(UV),)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade textual
else
	uv pip install --quiet --python $(NEWEST)/bin/python --upgrade textual
endif
	@$(NEWEST)/bin/python -c 'from importlib.metadata import version; print("Textual", version("textual"))'
	$(NEWEST)/bin/pytest -q -n 3 --dist loadfile --no-loadscope-reorder $(or $(TESTS),tests/unit/tui tests/snapshot)

pages: $(VENV)/.installed  ## the manual page and the completions, made from the commands
	@mkdir -p pages && $(BIN)/plait man >pages/plait.1 && $(BIN)/plait completions bash >pages/plait.bash && \
	  $(BIN)/plait completions zsh >pages/_plait && $(BIN)/plait completions fish >pages/plait.fish

dist: pages $(VENV)/.installed-release  ## wheel and source distribution in dist/, checked
	@rm -rf dist && $(BIN)/python -m build --outdir dist . && $(BIN)/twine check --strict dist/*

site: $(VENV)/.installed-site  ## the documentation as a site in build/site; a warning is an error
	@$(BIN)/python -m tests.support.site_pages build/pages && NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-install: dist  ## installs both in clean environments of every Python here, and plays the demo
	.ci/install dist

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-dev  ## ratios measured beside peers, in one run, into docs/benchmarks.md; BENCH="git engine" takes some
	$(BIN)/python -m tests.bench $(BENCH)

shots: $(VENV)/.installed-dev  ## screenshots/*.svg, drawn from the real app
	$(BIN)/python screenshots/make.py

# The clients that `make test-agents` installs into .agents and drives; AGENTS="claude codex" takes some.
AGENTS ?= claude codex gemini opencode copilot qwen pi cline aider mini claude-acp codex-acp
PYTHON_AGENTS := aider mini
client-claude := @anthropic-ai/claude-code@2.1.326
client-codex := @openai/codex@0.169.0
client-gemini := @google/gemini-cli@0.61.0
client-opencode := opencode-ai@1.18.33
client-copilot := @github/copilot@1.0.102
client-qwen := @qwen-code/qwen-code@0.24.4 node@22.23.3
client-pi := @mariozechner/pi-coding-agent@0.73.1 node@22.23.3
client-cline := cline@3.0.65
client-aider := aider-chat==0.86.2
client-mini := mini-swe-agent==2.4.6 mcp
client-claude-acp := @agentclientprotocol/claude-agent-acp@0.99.1
client-codex-acp := @agentclientprotocol/codex-acp@2.6.0

NPM_CLIENTS = $(foreach agent,$(filter-out $(PYTHON_AGENTS),$(AGENTS)),$(client-$(agent)))
CLIENTS = [ -z "$(strip $(NPM_CLIENTS))" ] || npm install --prefix .agents --no-fund --no-audit --loglevel=error $(NPM_CLIENTS)

.agents/bin/%: Makefile | $(VENV)/.installed-dev
	@$(BIN)/python -m venv .agents/$* && mkdir -p .agents/bin && ln -sfn ../$*/bin/$* $@
	@.agents/$*/bin/pip install --quiet --disable-pip-version-check $(client-$*) && touch $@

clients: $(addprefix .agents/bin/,$(filter $(PYTHON_AGENTS),$(AGENTS)))  ## installs those clients; once more where the network failed
	@[ -z "$(strip $(NPM_CLIENTS))" ] || command -v npm >/dev/null || { echo "npm is wanted to install the agent clients: $(AGENTS)" >&2; exit 1; }
	@$(CLIENTS) || { echo "npm could not install the agent clients; once more" >&2; sleep 5; $(CLIENTS); } || \
	  { echo "the agent clients could not be installed ($(AGENTS)): is the registry of npm to be reached?" >&2; exit 1; }

test-agents: $(VENV)/.installed-dev clients  ## real agent clients against a model server on loopback
	PLAIT_AGENTS="$(AGENTS)" PLAIT_AGENTS_BIN="$(CURDIR)/.agents/node_modules/.bin:$(CURDIR)/.agents/bin" \
		$(BIN)/pytest -q -n 4 -m real_agents tests/agents

attack: $(VENV)/.installed-dev  ## every attack on every rung, measured, as a table; WRITE=1 puts it into docs/security.md
	$(BIN)/python -m tests.support.attack_matrix $(if $(WRITE),--write)

chaos: $(VENV)/.installed-dev  ## kill -9 at many more moments than the suite does
	PLAIT_THOROUGH=1 $(BIN)/pytest -q tests/integration -k 'kill or crash or recover or fault'

clean-venv:
	rm -rf $(VENV)
