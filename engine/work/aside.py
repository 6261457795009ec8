"""Help with a merge that is no run's: its commands and its agent run as those of a worker do.

The worker is made up for one request and never journaled. Its surroundings are those of the
plan; whatever they leave on disk is removed at the end.
"""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.to_thread

from engine.agents.registry import adapters
from engine.beneath import remove_tree
from engine.core import facts as f
from engine.core.state import RunState, Worker, initial_state
from engine.errors import EngineError, WorkspaceError
from engine.ids import RunId, WorkerId
from engine.limits import Limits, Usage
from engine.messages.events import LatestWins
from engine.messages.helping import AskAside, FormatTexts, LastWords, MadeFile, MakeFile, ThreeTexts
from engine.plan.model import AgentChoice, Plan
from engine.review.review import Regeneration, Unformatted
from engine.store.layout import ASIDE
from engine.work.asking import ask_words
from engine.work.helping import format_texts, make_file
from engine.work.logbook import Logbook
from engine.work.tools import Tools
from engine.work.trouble import Troubles
from engine.work.workplace import terms_of


class _Aside:
    """A run of one worker that nobody journals. It notes what changed outside, and no more."""

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


class Asides:
    """Makes up runs for merges that are no run's, one for each request."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._live: set[str] = set()

    @asynccontextmanager
    async def begun(self, plan: Plan) -> AsyncIterator[tuple[_Aside, Worker]]:
        """Yield a made-up run and its worker; remove what they leave.

        Raises:
            WorkspaceError: Something was changed that the sandbox must not reach.
            MechanismMissing: The manifest requires what this machine cannot enforce.
        """
        tools = self._tools
        plan = tools.sites.chosen(replace(plan, runtime=replace(plan.runtime, site="")))
        await tools.sites.near.admit(terms_of(plan))
        state = initial_state(RunId(f"{ASIDE}{secrets.token_hex(3)}"), plan)
        first = next(iter(state.workers.values()))
        tree = tools.workspaces / state.run / "aside" / "tree"
        w = replace(
            first,
            attempt=replace(first.attempt, number=1),
            begun=replace(first.begun, workspace=str(tree), made=1),
        )
        run = _Aside(replace(state, workers={w.id: w}, started_at=tools.clock.now()))
        await anyio.to_thread.run_sync(self._sweep)  # after what an engine that was killed left
        self._live.add(state.run)
        try:
            yield run, w
        finally:
            self._live.discard(state.run)
            tools.proof.forget(state.run)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._sweep)
        if run.violations:
            names = ", ".join(run.violations)
            raise WorkspaceError(f"it changed {names}, so plait discards its work")

    def _sweep(self) -> None:
        """Remove the folders of made-up runs that are over; their processes ended before."""
        for place in (self._tools.workspaces, self._tools.layout.runs):
            for folder in place.glob(f"{ASIDE}*"):
                if folder.name not in self._live:
                    remove_tree(folder)

    async def made(self, question: MakeFile) -> MadeFile:
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
        async with self.begun(question.plan) as (run, w):
            content = await make_file(self._tools, run, w, wanted)
        return MadeFile(content=content)

    async def formatted(self, question: FormatTexts) -> tuple[ThreeTexts, ...]:
        """Return files as their formatters write them, without those that cannot be formatted.

        Raises:
            EngineError: The environment cannot be made.
        """
        files = [
            Unformatted(
                path=os.fsencode(one.path),
                command=one.command,
                texts=(one.base, one.target, one.incoming),
            )
            for one in question.files
        ]
        async with self.begun(question.plan) as (run, w):
            found = await format_texts(self._tools, run, w, files, commit=question.commit)
        return tuple(
            ThreeTexts(
                path=os.fsdecode(path),
                command=one.by,
                base=one.base,
                target=one.target,
                incoming=one.incoming,
            )
            for path, one in found.items()
            if one is not None
        )

    async def said(self, question: AskAside) -> LastWords:
        """Return an agent's last words, or why there are none, and what was spent in any case.

        Raises:
            WorkspaceError: There is no such agent.
        """
        choice = await anyio.to_thread.run_sync(_choice, question)
        used, began = [Usage()], self._tools.clock.monotonic()
        bounds = Limits(time_seconds=question.seconds, budget_usd=question.usd)
        text = problem = ""
        try:
            await self._tools.ledger.share([choice])
            async with self.begun(question.plan) as (run, w):
                text = await ask_words(
                    self._tools,
                    run.state,
                    w,
                    choice=choice,
                    prompt=question.prompt,
                    bounds=bounds,
                    count=used.append,
                )
        except (EngineError, OSError) as error:
            text, problem = "", str(error)
        spent = self._tools.clock.monotonic() - began
        return LastWords(text=text, problem=problem, usd=used[-1].usd, seconds=spent)


def _choice(question: AskAside) -> AgentChoice:
    name, assist = question.agent, question.plan.review.assist
    if assist is not None and name in {"", assist.agent.name}:
        return assist.agent
    if name in adapters():
        return AgentChoice(name=name, adapter=name)
    raise WorkspaceError(
        f"there is no agent {name!r}" if name else "the manifest names no agent to ask",
        hint="Name one in the manifest: `review: {assist: {agent: NAME}}`.",
    )
