"""An agent as a Python object: prompted, gone on with, forked, run in parallel."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike
from typing import Any, Self, TypedDict

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine.agents.registry import adapter_named
from engine.api import Engine, plain_errors
from engine.errors import AgentError, EngineError
from engine.library import talks
from engine.library.listening import Answerer, Listening, Subscriber
from engine.library.making import (
    AgentSource,
    Brief,
    Tool,
    WorkSettings,
    as_command,
    check_who,
    option_texts,
)
from engine.library.replies import ConversationState, Reply, Turn, TurnHistory, reply_of
from engine.library.seats import CLOSING_S, Act, Seat, seat_for
from engine.limits import Limits
from engine.messages.commands import Conflicted, Refused, RetryWorker
from engine.messages.events import Landed
from engine.patterns import Outcome as Ended
from engine.patterns import Progress, settled
from engine.phases import Phase
from engine.plan.model import RetryMode


class AgentWords(TypedDict, total=False):
    """The keywords of `Agent`, for those who hand them on."""

    command: Sequence[str]
    call: Callable[..., Any] | None
    repo: str | PathLike[str]
    limits: Limits | None
    model: str | None
    system: str
    options: Mapping[str, Any] | None
    env: Mapping[str, str] | None
    tools: Sequence[Tool]
    check: str | None
    base: str | None
    target: str | None
    isolation: str | None
    execution_mode: str | None
    subscribers: Iterable[Subscriber]
    answer: Answerer | None


class Agent:
    """A coding agent that works in a workspace of its own and answers when it has done.

    `prompt` begins a conversation, `continue_turn` goes on with it, `fork` makes a copy that goes
    on from the same place by itself. What an agent changes is collected onto refs of the
    repository, however it ends, and is landed by `land`, by `engine.land(reply.worker)` or by a
    human in the console.

    It opens an engine for its repository when it is first needed, which all agents of this process
    share, and gives it back with `aclose` or at the end of `async with agent`. Or it is given one
    (`engine=`), and works in that engine's loop.
    """

    def __init__(  # noqa: PLR0913 - keyword-only words that a program says once
        self,
        name: str | None = None,
        *,
        command: Sequence[str] = (),
        call: Callable[..., Any] | None = None,
        repo: str | PathLike[str] = ".",
        engine: Engine | Seat | None = None,
        limits: Limits | None = None,
        model: str | None = None,
        system: str = "",
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        tools: Sequence[Tool] = (),
        check: str | None = None,
        base: str | None = None,
        target: str | None = None,
        isolation: str | None = None,
        execution_mode: str | None = None,
        subscribers: Iterable[Subscriber] = (),
        answer: Answerer | None = None,
    ) -> None:
        """Describe it; nothing is opened or started yet.

        Args:
            name: An adapter (`claude`, `codex`, `scripted`, …), or an agent that the repository's
                plait.yaml names; by default the manifest's own default agent.
            command: Any program instead, as an argv; `{prompt}` is filled, else it reads stdin. Its
                exit code is its verdict.
            call: Any Python function instead, of a prompt and, if it wants, a `CallContext`. In
                a process of its own it must be defined at the top of a module.
            repo: Anywhere inside the repository.
            engine: An engine that is open, in place of `repo`.
            limits: What an attempt may use; what is not said is as for `plait run`.
            model: In place of the agent's usual one.
            system: Put into its system prompt, or before the prompt where it has none.
            options: What else its adapter understands: `script` for `scripted`, for example.
            env: Additions to its environment.
            tools: Python functions that it may use, at `context.tools`; with `call` alone.
            check: A command that must pass on its tree before a reply counts as one.
            base: A revision to begin from, in place of HEAD.
            target: The branch to land on, in place of the current one.
            isolation: `worktree`, `clone` or `directory`.
            execution_mode: `thread` runs a function in a thread of this process: closures may be
                called, and no sandbox and no limit but time holds it.
            subscribers: As for `subscribe`.
            answer: Answers what it asks. Without it permissions are denied, other questions are
                answered with nothing, and an agent that stands still is waited for.

        Raises:
            AgentError: It is described as several things at once, or given tools it cannot take.
        """
        self._who = AgentSource(
            name=name,
            command=as_command(command) if command else (),
            call=call,
            model=model,
            env=dict(env or {}),
            options=option_texts(options or {}),
            tools=tuple(tools),
            execution_mode=execution_mode,
        )
        check_who(self._who)
        self._how = WorkSettings(
            limits=limits or Limits(),
            system=system,
            check=check,
            base=base,
            target=target,
            isolation=isolation,
        )
        self._seat = seat_for(engine, repo)
        self._listening = Listening(subscribers, answer)
        self._history = TurnHistory()
        self._standing = ConversationState()
        self._worker: str | None = None
        self._last: Reply | None = None
        self._is_busy = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *told: object) -> None:
        await self.aclose()

    @property
    def history(self) -> tuple[Turn, ...]:
        """Return the turns of this conversation, oldest first."""
        return self._history.turns

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call a function with every event of the runs that follow; call the result to end that.

        What it raises ends the agent's turn and is raised from it.
        """
        return self._listening.add(subscriber)

    # ------------------------------------------------------------------ talking

    async def prompt(self, text: str) -> Reply:
        """Begin a new conversation, in a new workspace, and wait for its answer.

        If this is cancelled, the agent's processes are ended and its workspace is given back
        before the cancellation goes on; what it had done is kept on its ref.

        Raises:
            AgentRunFailed: It failed, was stopped, or its check did not pass.
            EngineError: It could not even be tried.
        """
        with self._busy():
            self._history, self._standing, self._last = TurnHistory(), ConversationState(), None
            await self._put_away()
            return await self._take_turn(text)

    async def continue_turn(self, text: str) -> Reply:
        """Go on with the conversation where it stands, and wait for the answer.

        The agent's own session is resumed in the same workspace where its adapter can; elsewhere,
        and after a fork, another one is begun on the same tree and told what was said so far.

        Raises:
            AgentRunFailed: It failed, was stopped, or its check did not pass.
            AgentError: Nothing was said yet.
        """
        if not self._history.turns:
            raise AgentError("nothing was said yet", hint="Begin with `prompt`.")
        with self._busy():
            return await self._take_turn(text)

    def fork(self) -> Self:
        """Return an independent copy with the same history, tools, subscribers and settings.

        It begins where this agent's last turn left the tree, in a workspace of its own, and must
        be closed by itself.
        """
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._seat = self._seat.another()
        copy._listening = self._listening.copy()
        copy._worker = None
        copy._is_busy = False
        return copy

    async def run_parallel_prompts(
        self,
        prompts: Iterable[str],
        max_parallel_runs: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> list[Ended[Reply]]:
        """Run prompts beside each other; return a `Success` or `Failure` for each, in input order.

        Each runs in a fork, so with this agent's history if there is one. A failure of any kind
        touches no sibling. The next begins as soon as one has ended. The forks' workspaces are
        given back; the work is on its refs. If this is cancelled, all of them are.

        Args:
            prompts: As many as you like, or none.
            max_parallel_runs: How many may run at once; the engine's own cap holds as well.
            progress: Called with (done, total) after each.
        """
        if isinstance(prompts, str):
            raise TypeError("prompts is one text, not several: write [text]")

        if max_parallel_runs is not None and max_parallel_runs < 1:
            raise ValueError(f"max_parallel_runs must be at least 1, not {max_parallel_runs}")
        works = [partial(self._run_one, prompt) for prompt in prompts]
        if works:
            await self._seat.do(_be_there)  # so that the engine is not closed between two forks
        outcomes: list[Ended[Reply]] = []
        with plain_errors():
            async with anyio.create_task_group() as closing:
                bound = [partial(work, closing=closing) for work in works]
                outcomes += await settled(bound, limit=max_parallel_runs, progress=progress)
        return outcomes

    async def _run_one(self, prompt: str, *, closing: TaskGroup) -> Reply:
        fork = self.fork()
        try:
            return await (fork.continue_turn if fork.history else fork.prompt)(prompt)
        finally:
            closing.start_soon(_close, fork)  # the next one need not wait for that

    async def land(
        self, *, to: str | None = None, style: str | None = None
    ) -> Landed | Conflicted | Refused:
        """Move what this conversation changed onto its target, and wait for what becomes of it."""
        reply = self._last
        if reply is None:
            return Refused("there is no reply to land", hint="Begin with `prompt`.")
        return await self._seat.do(lambda engine: engine.land(reply.worker, to=to, style=style))

    async def aclose(self) -> None:
        """Give its workspace back, as far as everything in it is kept, and its engine with it.

        It may be used again: then it goes on as a fork would.
        """
        try:
            with anyio.move_on_after(CLOSING_S, shield=True):
                await self._put_away()
        finally:
            await self._seat.leave()

    # ------------------------------------------------------------------ one turn

    @contextmanager
    def _busy(self) -> Iterator[None]:
        if self._is_busy:
            raise AgentError(
                "the agent is at work", hint="Ask a `fork()`, or use `run_parallel_prompts`."
            )
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    async def _take_turn(self, text: str) -> Reply:
        old, self._worker = self._worker, None
        try:
            with plain_errors():
                async with self._seat.back() as back:
                    hearing = self._listening.hearing(back)
                    act: Act[talks.Ended] = partial(self._turn, text=text, old=old, hearing=hearing)
                    ended = await self._seat.do(act)
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(EngineError):
                await self._put_away()  # it ended just when the caller had gone
            raise
        return self._note(text, ended)

    async def _put_away(self) -> None:
        old, self._worker = self._worker, None
        if old is not None:
            await self._seat.do(lambda engine: talks.release(engine, old))

    async def _turn(
        self, engine: Engine, *, text: str, old: str | None, hearing: talks.Hearing
    ) -> talks.Ended:
        """Ask the same worker again, or another that is told the story; in the engine's loop."""
        brief = await Brief.read(engine, self._who, self._how)
        if old is not None:
            adapter = await anyio.to_thread.run_sync(adapter_named, brief.choice.adapter)
            words = text if adapter.capabilities.resume else self._history.told(text)
            again = RetryWorker(worker=old, mode=RetryMode.RESUME, prompt=words)
            ended = await talks.go_on(engine, again, hearing)
            if isinstance(ended, talks.Ended):
                self._worker = ended.worker  # known here even if the caller never hears of it
                return ended
            is_landed = (await talks.look(engine, old)).phase is Phase.LANDED
            await talks.release(engine, old)
            self._standing = ConversationState() if is_landed else self._standing
        words = self._history.told(text) if self._history.turns else text
        ended = await talks.begin(engine, brief.plan(words, standing=self._standing), hearing)
        self._worker = ended.worker
        return ended

    def _note(self, text: str, ended: talks.Ended) -> Reply:
        result, change = ended.result, ended.change
        is_well = result.outcome.is_well
        self._worker = ended.worker
        said = result.output if is_well else result.error or ""
        self._history = self._history.with_turn(Turn(text, said, failed=not is_well))
        if change is not None and change.head is not None:
            self._standing = ConversationState(base=change.base, start=change.head)
        self._last = reply_of(ended)
        return self._last


async def _close(fork: Agent) -> None:
    """Give back what a fork had, also when all is cancelled; what cannot be stays to be cleaned."""
    with anyio.CancelScope(shield=True), suppress(EngineError):
        await fork.aclose()


async def _be_there(engine: Engine) -> None:
    del engine
