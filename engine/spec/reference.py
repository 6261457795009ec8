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

from engine.policies import LAWS
from engine.spec.pipeline import Manifest
from engine.spec.placeholders import OF_STEP, SIMPLE
from engine.spec.readiness import UNREADY
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

This page is made from the code that reads manifests; do not edit it. `plait validate FILE` tells
every mistake with its line and column, `plait plan FILE` shows what would run.
`plait.schema.json`, beside this page, lets an editor complete and check as you write: put
`# yaml-language-server: $schema=PATH/plait.schema.json` on the first line.
"""

_RULES = """\
## How it is read

- One YAML document in UTF-8, at most 1 MiB. Tabs for indenting, a key written twice, merge keys
  (`<<`), tags and unknown keys are errors. Aliases (`&name`, `*name`) are understood.
- Only `true` and `false` are booleans; `yes`, `no`, `on` and `off` are text. Nothing is turned into
  anything else: where text is wanted, a number needs quotes.
- A key without a value (`check:`) counts as left out if its default is nothing. Elsewhere it is an
  error.
- Paths are relative to the repository and stay inside it.
- Which agent works is looked for in this order: the variant, the step, its persona,
  `runtime.agent`, and then the only entry of `agents`. A name is an entry of `agents` or an
  adapter.
- A step has a `prompt` (or `prompt_file`) for agents, or a command to `run`. A command is taken
  literally and finds `PLAIT_RUN`, `PLAIT_STEP`, `PLAIT_WORKER`, `PLAIT_REPLICA` and, in a matrix,
  `PLAIT_ITEM` in its environment.
- A step starts when every step it depends on has a change that passed its check, landed or not, and
  begins from those changes.
- Of replicas one is chosen (`merge: choose`), unless the step says `merge: each`; the cells of a
  matrix are `each`; a command's changes are kept nowhere unless it says otherwise.

| policy | the step has succeeded | the others |
|---|---|---|
{policies}

A worker has succeeded when its agent ended well and its check passed.
What you retry yourself is stopped by no other's failure; what was stopped for one begins again once
all that failed has been retried and has succeeded.
"""

_PLACEHOLDERS = """\
## Placeholders

In a step's prompt {simple} and, of steps it waits for, {of_steps} are filled when its workspace is
made ready, in one pass: what was put in is not looked at again. `{{item}}` needs a matrix. An
output is the last message of the worker whose change was taken, at most 64 KiB. All other braces
are literal, and `{{{{item}}}}` is the literal text `{{item}}`. A persona's prompt and commands
are not filled.
"""

_LEVELS = """\
## Three levels of concurrency

| level | key | counts | default | limit |
|---|---|---|---|---|
| workers of the engine | `runtime.max_concurrent_workers` | workers that run at once, \
all steps and runs of the repository together | 10 | cut to 100 |
| replicas or cells of a step | `concurrency`, `variants`, `models` or `strategy.matrix` \
(with its `max_concurrency`) | workers of one step | 1 \
| replicas and `max_concurrency` are cut to `max_concurrent_workers`; \
a matrix has as many cells as items, and those that find no place wait |
| sub-agents inside an agent | `max_concurrent_agents` \
| what one agent may spawn by itself | nothing | in the prompt when above 1, cut to 10 |

They multiply: three replicas that may each spawn four sub-agents can be fifteen agents at work. The
first two are kept by the engine. The third is a sentence in the agent's system prompt ("You may
spawn up to 4 concurrent sub-agents or workers for this step."): what holds an agent that does not
listen are the limits on memory, processes and money of its worker, which its sub-agents share.
`concurrency` and `strategy.matrix` exclude each other, even where `concurrency` is 1. What is
cut is reported before the run and in its events.
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
        f"- `{row.path}`{': ' + ', '.join(row.only) if row.only else ''}: {row.reason}"
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
            _LEVELS,
            "## Refused for now\n",
            "These are part of the grammar, and are refused with their reason, never ignored:\n",
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
    title = f"### `{path}`" if path else "### The whole"
    rows = [_row(key, known) for key, known in model.model_fields.items()]
    doc = " ".join((model.__doc__ or "").split())
    return "\n".join(
        (title, "", doc, "", "| key | value | default | |", "|---|---|---|---|", *rows, "")
    )


def _row(key: str, known: FieldInfo) -> str:
    about = " ".join((known.description or "").split()).replace("|", "\\|")
    value = "policy" if get_args(PolicyText)[1] in known.metadata else _words(known.annotation)
    return f"| `{key}` | {value} | {_default(known)} | {about} |"


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


def _default(known: FieldInfo) -> str:
    if known.is_required():
        return "**required**"
    value = known.get_default(call_default_factory=True)
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
