"""A workspace for a while: isolated, with a branch and a database, removed when it is left."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypedDict

import anyio

from engine.api import Engine, plain_errors
from engine.errors import AgentError
from engine.ids import STEP_NAME
from engine.library import talks
from engine.library.listening import Answerer, Listening, Subscriber
from engine.library.making import (
    AgentSource,
    Brief,
    WorkSettings,
    as_command,
    check_who,
    option_texts,
)
from engine.library.replies import Reply, reply_of
from engine.library.seats import CLOSING_S, Seat, seat_for
from engine.limits import Limits
from engine.messages.commands import Conflicted, Refused, RetryWorker
from engine.messages.events import Landed
from engine.plan.model import RetryMode

SessionWork = str | Sequence[str] | Callable[..., Any]
"""A prompt, an argv, or a Python function."""

_OPENING = AgentSource(command=("true",))


class SessionWords(TypedDict, total=False):
    """The keywords of `IsolatedAgentSession`, for those who hand them on."""

    agent: str | None
    repo: str | PathLike[str]
    limits: Limits | None
    model: str | None
    system: str
    options: Mapping[str, Any] | None
    env: Mapping[str, str] | None
    base: str | None
    target: str | None
    isolation: str | None
    execution_mode: str | None
    subscribers: Iterable[Subscriber]
    answer: Answerer | None


class IsolatedAgentSession:
    """One worker's workspace, branch, database and limits, open for several pieces of work.

    Everything that you run in it works in the same workspace, one after the other. At the end,
    plait stops what runs, and removes the workspace if everything in it is saved. The work stays on
    its ref and its branch, and you can still review and land it.
    """

    def __init__(  # noqa: PLR0913 - keyword-only words that a program says once
        self,
        name: str,
        *,
        agent: str | None = None,
        repo: str | PathLike[str] = ".",
        engine: Engine | Seat | None = None,
        limits: Limits | None = None,
        model: str | None = None,
        system: str = "",
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        base: str | None = None,
        target: str | None = None,
        isolation: str | None = None,
        execution_mode: str | None = None,
        subscribers: Iterable[Subscriber] = (),
        answer: Answerer | None = None,
    ) -> None:
        """Describe the session, without opening or starting anything.

        Args:
            name: Its name, of small letters, digits, `-` and `_`; part of its branch.
            agent: The agent for prompts: an adapter, or an agent of the repository's plait.yaml.
                The default is the manifest's default agent.
            repo: Anywhere inside the repository.
            engine: An open engine, instead of `repo`.
            limits: What each piece of work may use. The defaults are those of `plait run`.
            model: The model to use instead of the agent's default.
            system: Text for the agent's system prompt.
            options: Other options of the agent's adapter.
            env: Additions to the agent's environment.
            base: A revision to start from, instead of HEAD.
            target: The branch to land on, instead of the current one.
            isolation: `worktree`, `clone` or `directory`.
            execution_mode: `thread` runs functions in a thread of this process.
            subscribers: Functions that plait calls with every event of the session.
            answer: A function that answers the agent's questions, as for `Agent`.

        Raises:
            AgentError: The name cannot be part of a branch.
        """
        if not STEP_NAME.fullmatch(name):
            raise AgentError(
                f"{name!r} is not a valid session name",
                hint="Use up to 40 lowercase letters, digits, - and _. Do not start with - or _.",
            )
        self._name = name
        self._who = AgentSource(
            name=agent,
            model=model,
            env=dict(env or {}),
            options=option_texts(options or {}),
            execution_mode=execution_mode,
        )
        self._how = WorkSettings(
            limits=limits or Limits(), system=system, base=base, target=target, isolation=isolation
        )
        self._listening = Listening(subscribers, answer)
        self._seat = seat_for(engine, repo)
        self._place: _Place | None = None
        self._is_busy = False

    async def __aenter__(self) -> Self:
        if self._place is not None:
            raise AgentError(f"the session {self._name} is open already")
        try:
            with plain_errors():
                async with self._seat.back() as back:
                    hearing = self._listening.hearing(back)
                    await self._seat.do(partial(self._open, hearing=hearing))
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *told: object) -> None:
        await self._close()

    async def _close(self) -> None:
        place, self._place = self._place, None
        try:
            with anyio.move_on_after(CLOSING_S, shield=True):
                if place is not None:
                    await self._seat.do(lambda engine: talks.release(engine, place.worker))
        finally:
            await self._seat.leave()

    async def _open(self, engine: Engine, *, hearing: talks.Hearing) -> None:
        """Run a first attempt that does nothing, so that its workspace is there."""
        opening = replace(_OPENING, execution_mode=self._who.execution_mode)
        brief = await Brief.read(engine, opening, self._how)
        plan = brief.plan("", name=self._name, keeps_workspace=True)
        ended = reply_of(await talks.begin(engine, plan, hearing))
        run, _, worker = ended.worker.partition("/")
        # Known here even if the caller never hears of it.
        self._place = _Place(ended, engine.database(run, worker))

    @property
    def _open_place(self) -> "_Place":
        if self._place is None:
            raise AgentError(
                f"the session {self._name} is not open", hint="Use it within `async with`."
            )
        return self._place

    @property
    def name(self) -> str:
        """Return its name."""
        return self._name

    @property
    def workspace(self) -> Path:
        """Return the folder of its workspace."""
        return Path(self._open_place.reply.result.workspace or "")

    @property
    def branch(self) -> str | None:
        """Return the branch that holds its work; None in a plain folder."""
        return self._open_place.reply.branch

    @property
    def db_path(self) -> Path:
        """Return its own SQLite database: events, usage and notes."""
        return self._open_place.database

    @property
    def worker(self) -> str:
        """Return its name in the engine, `run/step/worker_1`."""
        return self._open_place.worker

    async def run(self, work: SessionWork, prompt: str = "") -> Reply:
        """Run something in the workspace, wait for its end, and collect its changes.

        Args:
            work: A prompt for the session's agent, an argv whose exit code is its verdict, or a
                function that takes a prompt and, optionally, a `CallContext`.
            prompt: The prompt for an argv or a function.

        Raises:
            AgentRunFailed: The work failed or was stopped. Its changes are kept, and the session
                continues.
            AgentError: The session is busy or not open.
        """
        who, text = self._meant(work, prompt)
        worker = self.worker  # known to be open before an engine is: nobody would close that
        with self._busy(), plain_errors():
            async with self._seat.back() as back:
                hearing = self._listening.hearing(back)
                act = partial(self._again, worker=worker, who=who, text=text, hearing=hearing)
                ended = await self._seat.do(act)
        return reply_of(ended)

    def _meant(self, work: SessionWork, prompt: str) -> tuple[AgentSource, str]:
        if isinstance(work, str):
            return self._who, work
        bare = replace(self._who, name=None, options={})
        if callable(work):
            who = replace(bare, call=work)
            check_who(who)
            return who, prompt
        return replace(bare, command=as_command(work)), prompt

    async def _again(
        self, engine: Engine, *, worker: str, who: AgentSource, text: str, hearing: talks.Hearing
    ) -> talks.Ended:
        choice = (await Brief.read(engine, who, self._how)).choice
        command = RetryWorker(worker=worker, mode=RetryMode.RESUME, prompt=text, agent=choice)
        ended = await talks.go_on(engine, command, hearing, leave=talks.stop)
        if isinstance(ended, Refused):
            raise AgentError(f"the session cannot continue: {ended.reason}", hint=ended.hint)
        return ended

    @contextmanager
    def _busy(self) -> Iterator[None]:
        if self._is_busy:
            raise AgentError(
                f"the session {self._name} is busy",
                hint="Wait for it, or open another session.",
            )
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    async def land(
        self, *, to: str | None = None, style: str | None = None
    ) -> Landed | Conflicted | Refused:
        """Land its changes on the target; after that, you can run nothing more in it."""
        worker = self.worker
        return await self._seat.do(lambda engine: engine.land(worker, to=to, style=style))


class _Place:
    """The state of an open session."""

    def __init__(self, reply: Reply, database: Path) -> None:
        self.reply = reply
        self.worker = reply.worker
        self.database = database
