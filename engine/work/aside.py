"""Help with a merge that is no run's: its commands and its agent run as those of a worker do.

The worker is made up for one request and never journalled. Its surroundings are those of the
plan; whatever they leave on disk is removed at the end.
"""

import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.to_thread

from engine.beneath import remove_tree
from engine.core import facts as f
from engine.core.state import RunState, Worker, initial_state
from engine.errors import EngineError, WorkspaceError
from engine.ids import RunId, WorkerId
from engine.limits import Limits, Usage
from engine.messages.events import LatestWins
from engine.messages.helping import AskAside, FormatTexts, Made, MakeFile, Said, ThreeTexts
from engine.plan.model import AgentChoice, Plan
from engine.review.review import Regeneration, Unformatted
from engine.work.asking import ask_words
from engine.work.helping import format_texts, make_file
from engine.work.logbook import Logbook
from engine.work.tools import Tools
from engine.work.trouble import Troubles


class _Aside:
    """A run of one worker that nobody journals; it keeps what is told of it."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.troubles = Troubles(lambda _: None)
        self.violations: list[str] = []

    def feed(self, fact: f.Fact) -> None:
        """Note what changed outside; nothing else can happen to it."""
        if isinstance(fact, f.ViolationSeen):
            self.violations.append(fact.path)

    def mention(self, event: LatestWins) -> None:
        """Ignore it: nobody watches."""

    def note(self, worker: WorkerId, attempt: int, text: str) -> None:
        """Ignore it: there is no log."""

    def new_logbook(self, worker: WorkerId, attempt: int) -> Logbook:
        """Return a log that nobody reads."""
        del worker
        return Logbook(attempt)

    async def recall(self, logbook: Logbook, worker: WorkerId) -> None:
        """Do nothing: there was no earlier engine."""


@asynccontextmanager
async def _aside(tools: Tools, plan: Plan) -> AsyncIterator[tuple[_Aside, Worker]]:
    """Yield a made-up run and its worker; remove what they leave.

    Raises:
        WorkspaceError: Something was changed that the sandbox must not reach.
        MechanismMissing: The manifest requires what this machine cannot enforce.
    """
    plan = replace(plan, runtime=replace(plan.runtime, site=""))
    state = initial_state(RunId(secrets.token_hex(3)), tools.sites.chosen(plan))
    first = next(iter(state.workers.values()))
    root = tools.workspaces / state.run
    w = replace(
        first,
        attempt=replace(first.attempt, number=1),
        begun=replace(first.begun, workspace=str(root / "aside" / "tree"), made=1),
    )
    state = replace(state, workers={w.id: w}, started_at=tools.clock.now())
    run = _Aside(state)
    try:
        yield run, w
    finally:
        with anyio.CancelScope(shield=True):
            tools.proof.forget(state.run)
            for folder in (root, tools.layout.run(state.run)):
                await anyio.to_thread.run_sync(remove_tree, folder)
    if run.violations:
        raise WorkspaceError(f"it changed {', '.join(run.violations)}: nothing of it is taken")


async def made_aside(tools: Tools, question: MakeFile) -> Made:
    """Return the file that a command makes.

    Raises:
        EngineError: The command failed, or cannot be run here.
    """
    wanted = Regeneration(
        path=os.fsencode(question.path),
        command=question.command,
        tree=question.tree,
        parent=question.parent,
        basis="",
    )
    async with _aside(tools, question.plan) as (run, w):
        content = await make_file(tools, run, w, wanted)
    return Made(content=content)


async def formatted_aside(tools: Tools, question: FormatTexts) -> Sequence[ThreeTexts]:
    """Return files as their formatters write them, without those that cannot be formatted.

    Raises:
        EngineError: The surroundings cannot be made.
    """
    files = [
        Unformatted(
            path=os.fsencode(one.path),
            command=one.command,
            texts=(one.base, one.target, one.incoming),
        )
        for one in question.files
    ]
    async with _aside(tools, question.plan) as (run, w):
        found = await format_texts(tools, run, w, files, commit=question.commit)
    return [
        ThreeTexts(
            path=os.fsdecode(path),
            command=one.by,
            base=one.base,
            target=one.target,
            incoming=one.incoming,
        )
        for path, one in found.items()
        if one is not None
    ]


async def said_aside(tools: Tools, question: AskAside, choice: AgentChoice) -> Said:
    """Return an agent's last words, or why there are none, and what was spent in any case."""
    used, began = [Usage()], tools.clock.monotonic()
    bounds = Limits(time_seconds=question.seconds, budget_usd=question.usd)
    text = problem = ""
    try:
        async with _aside(tools, question.plan) as (run, w):
            text = await ask_words(
                tools,
                run.state,
                w,
                choice=choice,
                prompt=question.prompt,
                bounds=bounds,
                count=used.append,
            )
    except (EngineError, OSError) as error:
        text, problem = "", str(error)
    spent = tools.clock.monotonic() - began
    return Said(text=text, problem=problem, usd=used[-1].usd, seconds=spent)
