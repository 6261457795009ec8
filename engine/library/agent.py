"""An agent as a Python object: prompt it, continue it, fork it, run it in parallel."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike
from typing import Any, Self, TypedDict

import anyio
import anyio.to_thread

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
from engine.patterns import Background, Outcome, Progress, settled
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
    """A coding agent that works in its own workspace and answers when it is done.

    `prompt` starts a conversation, `continue_turn` continues it, and `fork` makes an independent
    copy of it. plait collects the agent's changes onto refs of the repository, however the agent
    ends. `land`, `engine.land(reply.worker)` or a human in the console lands them.

    An agent opens an engine for its repository at its first use. All agents of this process share
    that engine. It closes when the last of them ends, by `aclose` or by `async with agent`. With
    `engine=`, the agent works in the loop of your engine.
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
        """Describe the agent, without opening or starting anything.

        Args:
            name: An adapter (`claude`, `codex`, `scripted`, …), or an agent of the repository's
                plait.yaml. The default is the manifest's default agent.
            command: Any program instead, as an argv. plait fills in `{prompt}`; without it, the
                program reads stdin. Its exit code is its verdict.
            call: Any Python function instead, which takes a prompt and, optionally, a
                `CallContext`. To run in its own process, it must be defined at the top of a module.
            repo: Anywhere inside the repository.
            engine: An open engine, instead of `repo`.
            limits: What an attempt may use. The defaults are those of `plait run`.
            model: The model to use instead of the agent's default.
            system: Text for its system prompt, or before the prompt if it has none.
            options: Other options of its adapter, for example `script` for `scripted`.
            env: Additions to its environment.
            tools: Python functions that it may use, at `context.tools`; only with `call`.
            check: A command that must pass on its tree before the reply counts.
            base: A revision to start from, instead of HEAD.
            target: The branch to land on, instead of the current one.
            isolation: `worktree`, `clone` or `directory`.
            execution_mode: `thread` runs a function in a thread of this process. Closures work, but
                there is no sandbox, and time is the only limit.
            subscribers: As for `subscribe`.
            answer: A function that answers its questions. Without one, plait denies permissions,
                gives empty answers to other questions, and lets an agent that makes no progress
                continue.

        Raises:
            AgentError: The arguments name several kinds of agent, or `tools` without `call`.
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
        """Call a function with each event of later runs; return a function that stops this.

        An exception from the function ends the agent's turn, which raises it.
        """
        return self._listening.add(subscriber)

    # ------------------------------------------------------------------ talking

    async def prompt(self, text: str) -> Reply:
        """Start a new conversation in a new workspace, and wait for the answer.

        If you cancel this, plait ends the agent's processes and releases its workspace first. The
        work so far stays on its ref.

        Raises:
            AgentRunFailed: The agent failed or was stopped, or its check did not pass.
            EngineError: The agent could not be started.
        """
        with self._busy():
            self._history, self._standing, self._last = TurnHistory(), ConversationState(), None
            await self._put_away()
            return await self._take_turn(text)

    async def continue_turn(self, text: str) -> Reply:
        """Continue the conversation, and wait for the answer.

        The agent resumes its session in the same workspace, if its adapter can. Otherwise, and
        after a fork, a new session starts on the same tree and gets the conversation so far.

        Raises:
            AgentRunFailed: The agent failed or was stopped, or its check did not pass.
            AgentError: There is no conversation yet.
        """
        if not self._history.turns:
            raise AgentError("there is no prompt yet", hint="Begin with `prompt`.")
        with self._busy():
            return await self._take_turn(text)

    def fork(self) -> Self:
        """Return an independent copy with the same history, tools, subscribers and settings.

        The copy starts from the tree of this agent's last turn, in its own workspace. Close it
        separately.
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
    ) -> list[Outcome[Reply]]:
        """Run prompts in parallel; return a `Success` or `Failure` for each, in input order.

        Each runs in a fork, with this agent's history. A failure does not affect the others. The
        next prompt starts as soon as one has ended. plait releases the forks' workspaces; the work
        is on its refs. If you cancel this, it cancels all of them.

        Args:
            prompts: As many as you like, or none.
            max_parallel_runs: How many may run at once. The engine's cap applies too.
            progress: Called with (done, total) after each prompt.
        """
        if isinstance(prompts, str):
            raise TypeError("prompts is a string: pass a list, [text]")

        if max_parallel_runs is not None and max_parallel_runs < 1:
            raise ValueError(f"max_parallel_runs must be at least 1, not {max_parallel_runs}")
        works = [partial(self._run_one, prompt) for prompt in prompts]
        if works:
            await self._seat.do(_be_there)  # so that the engine is not closed between two forks
        outcomes: list[Outcome[Reply]] = []
        with plain_errors():
            async with anyio.create_task_group() as tasks:
                bound = [partial(work, closing=Background(tasks)) for work in works]
                outcomes += await settled(bound, limit=max_parallel_runs, progress=progress)
        return outcomes

    async def _run_one(self, prompt: str, *, closing: Background) -> Reply:
        fork = self.fork()
        try:
            return await (fork.continue_turn if fork.history else fork.prompt)(prompt)
        finally:
            # The next one need not wait for that; what cannot be closed stays to be cleaned.
            closing.start_soon(_close, fork, failed=None)

    async def land(
        self, *, to: str | None = None, style: str | None = None
    ) -> Landed | Conflicted | Refused:
        """Land the changes of this conversation on the target, and return the outcome."""
        reply = self._last
        if reply is None:
            return Refused("there is no reply to land", hint="Begin with `prompt`.")
        return await self._seat.do(lambda engine: engine.land(reply.worker, to=to, style=style))

    async def aclose(self) -> None:
        """Remove the workspace if every change is saved, and release the engine.

        If you use the agent again, it continues from the same changes, as a fork does.
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
            raise AgentError("the agent is busy", hint="Use a `fork()` or `run_parallel_prompts`.")
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
        """Ask the same worker again, or another with the story so far; in the engine's loop."""
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
