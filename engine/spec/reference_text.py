"""The parts of the manifest's reference that no model can say."""

EXAMPLE = """\
runtime:
  max_concurrent_workers: 10
  isolation_strategy: worktree
  execution_mode: process
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
        variants: [{agent: fast}, {agent: fast, model: opus}, {agent: mine, n: 2}]
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

HEAD = """\
# The manifest: `plait.yaml`

This page is made from the code that reads manifests; do not edit it. `plait validate FILE` tells
every mistake with its line and column, `plait plan FILE` shows what would run.
`plait.schema.json`, beside this page, lets an editor complete and check as you write: put
`# yaml-language-server: $schema=PATH/plait.schema.json` on the first line.
"""

RULES = """\
## How it is read

- One YAML document in UTF-8, at most 1 MiB. Tabs for indenting, a key written twice, merge keys
  (`<<`), tags and unknown keys are errors. Aliases (`&name`, `*name`) are understood.
- Only `true` and `false` are booleans; `yes`, `no`, `on` and `off` are text. Nothing is turned into
  anything else: where text is wanted, a number needs quotes.
- A key without a value (`check:`) is as good as left out where nothing is its default, and an error
  elsewhere.
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

PLACEHOLDERS = """\
## Placeholders

In a step's prompt {simple} and, of steps it waits for, {of_steps} are filled when its workspace is
made ready, in one pass: what was put in is not looked at again. `{{item}}` needs a matrix. An
output is the last message of the worker whose change was taken, at most 64 KiB. All other braces
are literal, and `{{{{item}}}}` is the literal text `{{item}}`. A persona's prompt and commands
are not filled.
"""

LEVELS = """\
## Three levels of concurrency

| level | key | counts | default | limit |
|---|---|---|---|---|
| workers of the engine | `runtime.max_concurrent_workers` | workers that run at once, \
all steps and runs of the repository together | 10 | cut to 100 |
| replicas or cells of a step | `concurrency`, `variants` or `strategy.matrix` \
(with its `max_concurrency`) | workers of one step | 1 \
| replicas and `max_concurrency` are cut to `max_concurrent_workers`; \
a matrix has as many cells as items, and those that find no place wait |
| sub-agents inside an agent | `max_concurrent_agents` \
| what one agent may spawn by itself | nothing is said | told when above 1, cut to 10 |

They multiply: three replicas that may each spawn four sub-agents can be fifteen agents at work. The
first two are kept by the engine. The third is a sentence in the agent's system prompt ("You may
spawn up to 4 concurrent sub-agents or workers for this step."): what holds an agent that does not
listen are the limits on memory, processes and money of its worker, which its sub-agents share.
`concurrency` and `strategy.matrix` exclude each other, even where `concurrency` is 1. Whatever is
cut is told before the run and in its events.
"""
