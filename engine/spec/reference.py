"""Make the manifest's reference and its JSON Schema from the models that read it.

`python -m engine.spec.reference docs` writes both; a test holds them current.
"""

import json
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engine.limits import KINDS
from engine.policies import LAWS
from engine.spec.pipeline import Manifest
from engine.spec.placeholders import OF_STEP, SIMPLE
from engine.spec.readiness import UNREADY
from engine.spec.runtime import LimitsSpec
from engine.spec.words import PolicyText

PAGE = "pipeline.md"
SCHEMA = "plait.schema.json"
EXAMPLE = """\
runtime:
  max_concurrent_workers: 10
  isolation_strategy: worktree
  execution_mode: process
  sites: {default: local, gpu-box: {ray: {address: "10.0.0.5:6379"}}}
  database: {strategy: per_agent}
  limits: {memory_mb: 2048, cpu_percent: 200, time_seconds: 3600, budget_usd: 2.0}
  stall_seconds: 600
  run_timeout_minutes: 240
  require: [files, git, memory]
  sandbox: {network: open, env: [], paths: [], docker: false, ssh_agent: false}
  permissions: auto
  auto_merge: false
  cleanup_on_complete: true
  target: main
  land: {style: merge}

workspace:
  include: [.env]
  setup: npm ci
  ports: {PORT: 1}
  serve: {command: npm run dev -- --port $PORT, port: PORT, ready: /health}

review:
  regenerate: {uv.lock: uv lock, package-lock.json: npm install --package-lock-only}
  format: {"*.py": ruff format -}
  assist: {agent: fast, budget: {requests: 10, usd: 0.5, minutes: 10}}

agents:
  fast: {adapter: claude, model: haiku}
  mine: {adapter: command, argv: [./agent.sh, "{prompt}"]}

personas:
  architect: {agent: mine, prompt: You design and write no code.}
  implementer: {agent: fast, prompt: You write code with its tests., permissions: ask}

pipelines:
  - name: fix
    steps:
      - name: design
        persona: architect
        prompt: Think about the quoted-field bug and write design.md.
        merge: none
        artifacts: [design.md]

      - name: implement
        persona: implementer
        dependencies: [design]
        files: [src/parser.py]
        prompt: "Implement: {steps.design.output}"
        concurrency: 3
        max_concurrent_agents: 3
        policy: settled
        choose: human
        retry: {attempts: 3, backoff: exponential, feedback: true}
        timeout_minutes: 30
        check: python -m pytest -q

      - name: compare
        dependencies: [design]
        prompt: Write a benchmark.
        variants: [{agent: fast}, {agent: fast, models: [opus, sonnet]}, {agent: mine, n: 2}]
        policy: first(2)

      - name: port
        agent: fast
        dependencies: [implement]
        prompt: Port {item}.
        strategy: {matrix: {items: [a.py, b.py], max_concurrency: 2}}

      - name: verify
        dependencies: [port]
        run: npm test
"""

_HEAD = """\
# The manifest: `plait.yaml`

A manifest describes your agents and the steps that they work on. It is a file of your repository,
by convention `plait.yaml`. `plait init` writes a first one. `plait validate FILE` lists every
mistake with its line and column. `plait plan FILE` shows what would run.

Your editor can complete and check a manifest as you write, with the schema beside this page. Put
this on the first line, with the folder of the schema as `PATH`:

```text
# yaml-language-server: $schema=PATH/plait.schema.json
```

This page and the schema come from the code that reads manifests, so do not edit them.
"""

_RULES = """\
## How plait reads it

**The file.** A manifest is one YAML document in UTF-8, 1 MiB at most. Aliases (`&name`, `*name`)
work. These are errors: unknown keys, a key that appears twice, tabs for indenting, merge keys
(`<<`) and tags.

**Values.** Only `true` and `false` are booleans; `yes`, `no`, `on` and `off` are text. plait
converts nothing: quote a number where a key wants text. An optional text or number without a
default may stay empty (`check:`): it counts as left out. For most other keys, an empty value is an
error. Paths are relative to the repository and stay inside it.

**The agent.** plait takes the first agent that it finds in this order: the variant, the step, its
persona, `runtime.agent`, and then the only entry of `agents`. The name of an agent is an entry
of `agents`, or the name of an adapter.

**A step** has a `prompt` (or `prompt_file`) for agents, or a shell command in `run`. plait fills no
placeholders in a command. The command finds `PLAIT_RUN`, `PLAIT_STEP`, `PLAIT_WORKER`,
`PLAIT_REPLICA` and, in a matrix, `PLAIT_ITEM` in its environment.

**Dependencies.** A step starts when every step that it depends on has succeeded and, if that step
has candidates, one is chosen. It starts from their changes, landed or not.

**What lands.** A single worker's change can land. With replicas, you choose one (`merge: choose`).
Each cell of a matrix can land (`merge: each`). The change of a command does not land
(`merge: none`), but later steps still start from it. `merge` overrides these defaults.

**When a step has succeeded.** A worker has succeeded when its agent ended well and its check
passed. The step's policy counts these workers:

| policy | the step has succeeded | the other workers |
|---|---|---|
{policies}

With `all`, one failure stops the other workers. Retry the failed ones: when all of them have
succeeded, plait starts the stopped ones again. If you retry a worker yourself, a later failure of
another worker does not stop it.
"""

_PLACEHOLDERS = """\
## Placeholders

plait fills these placeholders in the prompt of a step: {simple}. For each step
that this step depends on, plait also fills {of_steps}. `{{item}}` needs a matrix. The output of a
step is the last message of the worker whose change was taken, 64 KiB at most.

All other braces stay as they are. To write the text `{{item}}` itself, double the braces:
`{{{{item}}}}`. plait fills each prompt once: it does not look for placeholders in a text that it
has filled in. It fills none in the prompt of a persona or in a command.
"""

_SPARSE = """\
## Sparse worktrees

`sparse_checkout` names the folders that worktrees hold. The other files stay in git, so a worker in
a large repository costs little time and disk. plait uses git's sparse checkout in cone mode.

- An entry is a folder or a pattern: `*`, `?` and `[…]` match within one name, and `**` matches any
  number of folders. `plait validate` and the start of a run refuse an entry that matches no folder.
- A worktree also holds all files directly at the top and directly in the folders above an entry.
- It also holds every folder in which earlier steps or attempts of the run changed files.
- plait tells the agent what its worktree holds. The agent can read another file with
  `git show HEAD:PATH`, and add its folder with `git sparse-checkout add FOLDER`.
- New files outside these folders are part of the change too. To commit them itself, the agent
  needs `git add --sparse`.
- To delete a file that the worktree does not hold, the agent must commit the deletion.
- If a new file has the name of a folder that the worktree does not hold, plait sets the file aside
  and keeps the worktree.
- `check` runs on all files of the change, in the tree where plait also checks landings. These
  checks run one at a time.
- `setup`, `teardown` and `serve` run in the worktree, so name the folders that they need.
- Diffs, Review, `plait try` and landings always cover the whole repository.
- A sparse worktree starts empty: plait reuses no files of removed worktrees for it.
"""

_LEVELS = """\
## Three levels of concurrency

| level | key | counts | default | limit |
|---|---|---|---|---|
| workers of the engine | `runtime.max_concurrent_workers` | workers that run at once \
in all steps and runs of the repository | 10 | cut to 500, and to what fits into free memory |
| replicas or cells of a step | `concurrency`, `variants`, `models` or `strategy.matrix` \
(with its `max_concurrency`) | workers of one step | 1 \
| replicas and `max_concurrency` are cut to `max_concurrent_workers`; \
a matrix has as many cells as items, and cells wait for a free slot |
| sub-agents inside an agent | `max_concurrent_agents` \
| sub-agents that one agent may spawn | none | in the prompt when above 1, cut to 10 |

The levels multiply: three replicas that may each spawn four sub-agents can make fifteen running
agents.

When a run with workers on this machine starts, plait divides the free memory by the largest
`memory_mb` of a step. It runs no more workers at once than that.

The engine enforces the first two levels. The third is only a sentence that the agent reads:
"You may spawn up to 4 concurrent sub-agents or workers for this step." An agent may ignore that
sentence. Its sub-agents then still share the limits of its worker on memory, processes and money.

A step cannot have both `concurrency` and `strategy.matrix`, even if `concurrency` is 1. plait
reports every such cut before the run and in its events.
"""


def schema() -> str:
    """Return the JSON Schema that editors use to complete and check a manifest."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plait.yaml",
        **Manifest.model_json_schema(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """Return the reference in Markdown: rules, an example, every key, levels of concurrency."""
    tables = "\n".join(_section(path, model) for path, model in _sections())
    names = ", ".join(f"`{{{name}}}`" for name in SIMPLE)
    of_steps = ", ".join(f"`{{steps.NAME.{value}}}`" for value in OF_STEP)
    refused = "\n".join(
        f"- `{row.path.replace('.*', '[]')}{''.join(f': {o}' for o in row.only)}`: {row.reason}"
        for row in UNREADY
    )
    return "\n".join(
        (
            _HEAD,
            "## Example\n",
            f"```yaml\n{EXAMPLE}```\n",
            _RULES.format(policies="\n".join(_policies())),
            "## Keys\n",
            tables,
            _PLACEHOLDERS.format(simple=names, of_steps=of_steps),
            _SPARSE,
            _LEVELS,
            "## Refused for now\n",
            "plait knows these values, but refuses them for now:\n",
            refused + "\n",
        )
    )


def _policies() -> Iterator[str]:
    """Yield the rows of the policies, each with the ways to write it."""
    for word, law in LAWS.items():
        ways = f"`{word}(N)`, `{word}:N`" if law.is_counted else f"`{word}`"
        yield f"| {ways} | {law.succeeded} | {law.others} |"


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every mapping of the manifest with its path, outer ones first."""
    seen: set[type[BaseModel]] = set()
    todo: list[tuple[str, type[BaseModel]]] = [("", Manifest)]
    while todo:
        path, model = todo.pop(0)
        if model in seen:
            continue
        seen.add(model)
        yield path, model
        for key, known in model.model_fields.items():
            below = f"{path}.{key}".removeprefix(".")
            todo.extend(_models(known.annotation, below))


def _models(annotation: Any, path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        path += "[]"
    elif origin is Mapping:
        arguments, path = arguments[1:], f"{path}.NAME"
    for argument in arguments[:1] if origin is Annotated else arguments:
        yield from _models(argument, path)


def _section(path: str, model: type[BaseModel]) -> str:
    title = f"### `{path}`" if path else "### Top level"
    defaults = {name: kind.default for name, kind in KINDS.items()} if model is LimitsSpec else {}
    rows = [_row(key, known, defaults.get(key)) for key, known in model.model_fields.items()]
    doc = " ".join((model.__doc__ or "").split())
    return "\n".join(
        (title, "", doc, "", "| key | value | default | |", "|---|---|---|---|", *rows, "")
    )


def _row(key: str, known: FieldInfo, elsewhere: float | None) -> str:
    about = " ".join((known.description or "").split()).replace("|", "\\|")
    value = "policy" if get_args(PolicyText)[1] in known.metadata else _words(known.annotation)
    return f"| `{key}` | {value} | {_default(known, elsewhere)} | {about} |"


_NAMES = {str: "text", int: "whole number", float: "number", bool: "true, false", Any: "anything"}


def _words(annotation: Any) -> str:
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(a) for a in arguments if a is not type(None))
    if origin is Annotated:
        return _words(arguments[0])
    if origin is tuple:
        of = _words(arguments[0])
        return "list of mappings" if of == "mapping" else f"list of {of}"
    if origin is Mapping:
        return f"name: {_words(arguments[1])}"
    return "mapping"


def _default(known: FieldInfo, elsewhere: float | None) -> str:
    """Return the default of a key; `elsewhere` is that of a limit, which the plan fills in."""
    if known.is_required():
        return "**required**"
    value = known.get_default(call_default_factory=True)
    value = elsewhere if value is None else value
    if value is None or isinstance(value, BaseModel) or value in ((), {}):
        return ""
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"`{shown:g}`" if isinstance(shown, float) else f"`{shown}`"


def write(folder: Path) -> None:
    """Write both documents into a folder."""
    (folder / PAGE).write_text(page(), encoding="utf-8")
    (folder / SCHEMA).write_text(schema(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
