"""A first manifest for a repository, guessed from the names of its files and commented.

Guesses are marked as such: nothing here has been tried.
"""

import json
from collections.abc import Set as AbstractSet
from fnmatch import filter as matching
from typing import NamedTuple

from engine.spec.words import ADAPTERS, NEEDS_ARGV
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class ProjectFacts:
    """The facts known of a repository.

    Attributes:
        files: The names at its top.
        agents: The adapters found on this machine, the best first.
    """

    files: AbstractSet[str] = frozenset()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Habit:
    """The usual commands of projects with such a file."""

    file: str
    setup: str
    check: str


_VENV = "python3 -m venv .venv && .venv/bin/pip install -q"
# The first that fits wins, so a lock file stands before the manifest that it locks.
_HABITS = (
    _Habit("uv.lock", "uv sync", "uv run pytest -q"),
    _Habit("poetry.lock", "poetry install", "poetry run pytest -q"),
    _Habit("Pipfile", "pipenv install --dev", "pipenv run pytest -q"),
    _Habit("pyproject.toml", f"{_VENV} -e . pytest", ".venv/bin/python -m pytest -q"),
    _Habit("requirements.txt", f"{_VENV} -r requirements.txt pytest", ".venv/bin/pytest -q"),
    _Habit("setup.py", f"{_VENV} -e . pytest", ".venv/bin/python -m pytest -q"),
    _Habit("Cargo.toml", "cargo fetch", "cargo test"),
    _Habit("go.mod", "go mod download", "go test ./..."),
    _Habit("pnpm-lock.yaml", "pnpm install --frozen-lockfile", "pnpm test"),
    _Habit("yarn.lock", "yarn install --immutable", "yarn test"),
    _Habit("bun.lock*", "bun install --frozen-lockfile", "bun test"),
    _Habit("package-lock.json", "npm ci", "npm test"),
    _Habit("package.json", "npm install", "npm test"),
    _Habit("Gemfile", "bundle install", "bundle exec rake test"),
    _Habit("pom.xml", "", "mvn -q test"),
    _Habit("build.gradle*", "", "./gradlew test"),
    _Habit("mix.exs", "mix deps.get", "mix test"),
    _Habit("composer.json", "composer install", "composer test"),
    _Habit("*.sln", "dotnet restore", "dotnet test"),
    _Habit("*.csproj", "dotnet restore", "dotnet test"),
    _Habit("CMakeLists.txt", "cmake -B build", "cmake --build build && ctest --test-dir build"),
    _Habit("Makefile", "", "make test"),
)
_LOCAL = (".env", ".env.local", ".envrc")
_FALLBACK = "claude"
_NEEDS_MORE = (*NEEDS_ARGV, "scripted", "jsonl")
"""Adapters that are on every machine and do nothing until their entry says what."""


class GuessedCheck(NamedTuple):
    """A check command, and the file that it was guessed from."""

    command: str
    file: str


def guessed_check(files: AbstractSet[str], *, is_set_up: bool) -> GuessedCheck | None:
    """Return the usual check of a project with such files at its top; None where none is known.

    Args:
        files: Their names.
        is_set_up: The workspaces are prepared already; else the command prepares its own.
    """
    habit = _habit_of(files)
    if habit is None:
        return None
    parts = [habit.check] if is_set_up or not habit.setup else [habit.setup, habit.check]
    return GuessedCheck(" && ".join(parts), min(matching(files, habit.file)))


def _habit_of(files: AbstractSet[str]) -> _Habit | None:
    return next((habit for habit in _HABITS if matching(files, habit.file)), None)


def init_manifest(facts: ProjectFacts) -> str:
    """A commented `plait.yaml` fitted to the repository."""
    habit = _habit_of(facts.files)
    known = [a for a in facts.agents if a in ADAPTERS and a not in _NEEDS_MORE]
    agent = known[0] if known else _FALLBACK
    entries = [f"  {name}: {{adapter: {name}}}" for name in known or [agent]]
    missing = "" if known else "   # not installed here: `plait agents` says how to get it"
    return _PAGE.format(
        workspace=_workspace(habit, facts.files),
        agents="\n".join(entries) + missing,
        agent=agent,
        check=_line("check", habit.check if habit else "", "make test"),
    )


def _workspace(habit: _Habit | None, files: AbstractSet[str]) -> str:
    local = [name for name in _LOCAL if name in files]
    include = f"  include: {json.dumps(local)}" if local else "  # include: [.env]"
    setup = _line("setup", habit.setup if habit else "", "npm ci")
    # A section of comments alone would say `workspace` and mean nothing.
    has_any = local or (habit and habit.setup)
    head = "workspace:" if has_any else "# workspace:"
    return f"{head}\n{include}   # ignored files to copy in\n  {setup}"


def _line(key: str, guess: str, example: str) -> str:
    """The key with its guess, or an example in a comment."""
    if guess:
        return f"{key}: {json.dumps(guess)}   # a guess; correct it"
    return f"# {key}: {json.dumps(example)}"


_PAGE = """\
# `plait run plait.yaml` runs this. `plait plan plait.yaml` shows what would run, and
# `plait validate plait.yaml` lists every mistake. plait's docs/pipeline.md describes every key.

runtime:
  max_concurrent_workers: 4       # at once, in all steps
  limits: {{time_seconds: 3600}}    # for each attempt; also memory_mb, budget_usd, …
  # auto_merge: true              # land each change whose step succeeded, without a review

# Every worker gets a fresh workspace. This prepares it.
{workspace}

agents:
{agents}

pipelines:
  - name: change
    steps:
      # Three candidates for one task. You choose one, or combine the best parts.
      - name: implement
        agent: {agent}
        prompt: |
          Describe the task here.
        concurrency: 3
        policy: settled             # let all three finish
        {check}
"""
