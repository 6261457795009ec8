"""Watch one agent from start to end: turn its output into events, facts and a log.

A watch begun again after a crash reads the recording from its beginning and comes to the same
state; facts that the journal has already seen change nothing the second time.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import singledispatchmethod
from itertools import groupby
from typing import Any

import anyio

from engine.agents import agent_events as a
from engine.agents.contract import Ending, LaunchRequest, Steering, StreamParser
from engine.agents.permitting import danger_of
from engine.clock import Clock
from engine.core import facts as f
from engine.core.state import Worker
from engine.errors import EngineError, HostLost
from engine.host.seam import AttemptExit, Chunk, Frame, Stream, WatchedHost
from engine.ids import AttemptId
from engine.keeper.recording import TRUNCATED, began_at
from engine.limits import LimitHit, Limits, over_budget
from engine.messages.asked import Question
from engine.messages.events import (
    LatestWins,
    OutputAppended,
    ProgressReported,
    ToolUsed,
    UsageSampled,
)
from engine.messages.logs import LogKind
from engine.messages.results import Badge
from engine.phases import StopCause
from engine.work.logbook import AT_ITS_CAP, Logbook, heard_note, raw_text
from engine.work.notebook import Notebook
from engine.work.run_ports import CountSpent

Feed = Callable[[f.Fact], None]
Mention = Callable[[LatestWins], None]
SHORT_LIMIT_S = 60.0
_LONGEST_LIMIT_S = 31 * 24 * 3600.0
"""The longest time for which a vendor refuses a login: some budgets are those of a month."""
_HOLDS_UP = frozenset({"429", "503", "529", a.BUSY})
"""Answers of a model that has too much to do, or too much of this login."""
_SAME_S = 1.0
_LINGER_S = 10.0
_LINGERS = "its work was done, but its program did not exit; plait ended it"
_GOES_ON = (a.Said, a.Thought, a.ToolCalled, a.ToolEnded, a.TurnEnded)
_LATER = {
    False: "it reads this when it resumes",
    True: "it reads nothing while it works; its next attempt gets this",
}


@dataclass
class Watch:
    """One agent being watched.

    Attributes:
        login: By what the agent logs in, as the user knows it.
        sent: How many messages went to its stdin, by this engine or those before it.
        is_caught_up: What it had written and heard before this watch began has been read.
        stop_cause: Set when it is to end; honored also if that came before it was started.
    """

    attempt: AttemptId
    host: WatchedHost
    parser: StreamParser
    request: LaunchRequest
    logbook: Logbook
    notebook: Notebook
    clock: Clock
    limits: Limits
    feed: Feed
    mention: Mention
    keeps_stdin: bool
    started_at: float
    count_spent: CountSpent
    change_kernel_limits: Callable[[Limits], Awaitable[None]] | None = None
    login: str = ""
    sent: int = 0
    read_to: int = 0
    is_started: bool = False
    is_caught_up: bool = False
    stop_cause: StopCause | None = None
    grace_s: float | None = None
    budget_hit: LimitHit | None = None
    _day_hit: LimitHit | None = None
    _outbox: list[bytes] = field(default_factory=list)
    _early: list[str] = field(default_factory=list)
    _sending: anyio.Lock = field(default_factory=anyio.Lock)
    _is_input_open: bool = True
    _done_at: float | None = None
    _carried: tuple[str, ...] = ()
    _is_held_up: bool = False
    _limit: tuple[float | None, str] | None = None

    @property
    def _about(self) -> f.About:
        attempt = self.attempt
        return f.About(worker=attempt.worker, attempt=attempt.number, at=self.clock.now())

    @property
    def _who(self) -> dict[str, Any]:
        return {"worker": str(self.attempt.worker), "attempt": self.attempt.number}

    async def stop(self, cause: StopCause, *, is_kill: bool) -> None:
        """End the agent, now or as soon as it is started; the first cause is kept."""
        self.stop_cause = self.stop_cause or cause
        self.grace_s = 0.0 if is_kill else None
        if self.is_started:
            await self.host.cancel(self.attempt, self.stop_cause, grace_s=self.grace_s)

    async def follow(self, worker: Callable[[], Worker]) -> f.AttemptEnded:
        """Read until the end; `worker` tells how the worker stands, and the messages it got."""
        self.is_started = True
        self._carried = worker().next.carried
        self._count_spent(self.started_at)  # until it tells what it uses, that is unknown
        if self.stop_cause is not None:
            await self.host.cancel(self.attempt, self.stop_cause, grace_s=self.grace_s)
        offset, told = 0, False
        try:
            while True:
                is_focused = self.logbook.is_focused(self.clock.monotonic())
                chunk = await self.host.read(self.attempt, offset, wait=told, is_focused=is_focused)
                await self._take(chunk, offset)
                offset = chunk.next_offset
                if chunk.end is not None:
                    return self._ended(chunk.end, offset)
                # The old recording is read: only now is it clear what the agent has not been told.
                if not told and not chunk.frames:
                    told = True
                    await self._catch_up(worker(), is_adopted=offset > 0)
                await self._send_owed()
        except HostLost as lost:
            # A lost keeper is a fact about the attempt: the rules begin another one.
            outcome = self.parser.finish(Ending(cause=StopCause.HOST_LOST))
            return f.AttemptEnded(
                **self._about,
                ok=False,
                cause=StopCause.HOST_LOST,
                error=str(lost),
                text=outcome.text,
                session=outcome.session,
                usage=self.logbook.usage,
            )

    async def _take(self, chunk: Chunk, offset: int) -> None:
        events: list[a.AgentEvent] = []
        at = self.clock.now()
        for frame in chunk.frames:
            at = self.started_at + frame.at_s
            self._count(frame)
            if frame.stream is Stream.NOTE:
                continue
            if frame.stream is Stream.OUT:
                self._has_begun()
            events = self.parser.feed(frame.stream, frame.data)
            self._note(events, at)
            self.notebook.add(events, at=at, offset=offset)
        if chunk.usage is not None:
            self.logbook.sample(chunk.usage)
            self.mention(
                UsageSampled(
                    worker=str(self.attempt.worker),
                    attempt=self.attempt.number,
                    usage=self.logbook.usage,
                )
            )
        if chunk.frames:
            self.logbook.last_output_at = at
            await self.notebook.save(chunk.next_offset)
            self.mention(
                OutputAppended(
                    worker=str(self.attempt.worker),
                    attempt=self.attempt.number,
                    offset=self.logbook.next,
                )
            )

    def _count(self, frame: Frame) -> None:
        if frame.stream is Stream.IN:
            self.sent += 1
            if frame.data in self._outbox:
                self._outbox.remove(frame.data)
        elif frame.stream is Stream.NOTE:
            self.started_at = began_at(frame.data) or self.started_at
            if frame.data.startswith(TRUNCATED):
                self.logbook.write(LogKind.NOTE, AT_ITS_CAP, self.started_at + frame.at_s)

    def _note(self, events: Sequence[a.AgentEvent], at: float) -> None:
        now = self.clock.monotonic()
        for is_raw, several in groupby(events, key=lambda e: isinstance(e, (a.Raw, a.Printed))):
            if is_raw:
                self.logbook.write_raw(raw_text(several), at, monotonic=now)
                continue
            for event in several:
                self.logbook.note(event, at)
                self.logbook.last_progress = now
                self._act(event, at)
                if self._is_held_up and isinstance(event, _GOES_ON):
                    self._is_held_up, self._limit = False, None
                    self.feed(f.RateLimitSeen(**self._about, until=None))

    def _has_begun(self) -> None:
        """Tell the run that words unheard by the last attempt reached the agent in its prompt."""
        for text in self._carried:
            self.feed(f.SteerHeard(**self._about, text=text))
            self.logbook.remark(LogKind.NOTE, heard_note(text), self.clock.now(), is_once=True)
        self._carried = ()

    @singledispatchmethod
    def _act(self, event: a.AgentEvent, at: float) -> None:
        """Do what an event of the agent asks of the engine; most are only shown."""

    @_act.register
    def _(self, event: a.Asked, at: float) -> None:
        self._ask(event, at)

    @_act.register
    def _(self, event: a.Withdrawn, at: float) -> None:
        del at
        self.feed(f.QuestionWithdrawn(**self._about, question=event.id))

    @_act.register
    def _(self, event: a.ProtocolReply, at: float) -> None:
        del at
        self._outbox.append(event.data)

    @_act.register
    def _(self, event: a.Heard, at: float) -> None:
        del at
        self.feed(f.SteerHeard(**self._about, text=event.text))

    @_act.register
    def _(self, event: a.UsageSeen, at: float) -> None:
        del event
        hit = over_budget(self.limits, self.logbook.usage.usd or 0.0, self._tokens or 0)
        self.budget_hit = self.budget_hit or hit
        self._day_hit = self._count_spent(at)

    @_act.register
    def _(self, event: a.ToolCalled, at: float) -> None:
        del at
        self.mention(ToolUsed(**self._who, tool=event.name, state="begun", title=event.title))

    @_act.register
    def _(self, event: a.ToolEnded, at: float) -> None:
        del at
        self.mention(ToolUsed(**self._who, tool=event.id, state=event.state))

    @_act.register
    def _(self, event: a.Progressed, at: float) -> None:
        del at
        progress = ProgressReported(**self._who, fraction=event.fraction, note=event.note)
        self.mention(progress)

    @_act.register
    def _(self, event: a.Retrying, at: float) -> None:
        if event.status not in _HOLDS_UP:
            return
        self._is_held_up = True
        until = None if event.delay_s is None else at + min(event.delay_s, _LONGEST_LIMIT_S)
        if until is not None or self.is_caught_up:  # without an end it must not be told anew
            self._limited(until, event.status)

    @_act.register
    def _(self, event: a.RateLimited, at: float) -> None:
        self._limited(end_of_limit(event, at), "")

    def _limited(self, until: float | None, status: str) -> None:
        """Tell of a limit, unless the last one was the same: each time it is kept for good."""
        before, self._limit = self._limit, (until, status)
        if before is None or before[1] != status or not _is_same(before[0], until):
            self.feed(f.RateLimitSeen(**self._about, until=until, status=status))

    def _ask(self, event: a.Asked, at: float) -> None:
        about = event.command or event.detail
        whole = event.given or about  # a title is one line: what runs is all of it
        is_whole = event.text in {whole, f"{event.tool}: {whole}"}
        question = Question(
            id=event.id,
            text=f"{event.text}\n{whole}" if whole and not is_whole else event.text,
            choices=event.choices,
            asked_at=at,
            is_permission=event.is_permission,
            about=f"{event.tool}({about})" if event.tool else "",
            danger=danger_of(whole or event.text) if event.is_permission else "",
            command=event.command,
            is_editable=event.is_editable,
            needs_human=event.needs_human,
        )
        self.feed(f.AgentAsked(**self._about, question=question))

    @property
    def _tokens(self) -> int | None:
        """Return the tokens used, without cached ones: those cost next to nothing."""
        usage = self.logbook.usage
        if usage.input_tokens is None and usage.output_tokens is None:
            return None
        spent = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return max(0, spent - self.logbook.cached_tokens)

    def _count_spent(self, at: float) -> LimitHit | None:
        return self.count_spent(at=at, usd=self.logbook.usage.usd, tokens=self._tokens)

    async def stop_for_day(self, hit: LimitHit) -> None:
        """Stop the agent because its login's day is spent; one that is done may end well."""
        if self.stop_cause is None and not self.logbook.is_turn_over:
            self.budget_hit = self.budget_hit or hit
            await self.stop(StopCause.BUDGET, is_kill=False)

    async def _send_owed(self) -> None:
        if self._day_hit is not None:
            await self.stop_for_day(self._day_hit)
        if self.budget_hit is not None and self.stop_cause is None:
            await self.stop(StopCause.BUDGET, is_kill=False)
        while self._outbox:
            await self.send(self._outbox.pop(0))
        if self.keeps_stdin and self._is_input_open and self.logbook.is_turn_over:
            # An agent that reads messages from its input ends only when that is closed.
            self._is_input_open = False
            self._done_at = self.clock.monotonic()
            await self.send(None)

    async def end_what_is_done(self) -> None:
        """End an agent that has had its last turn and does not go, though its input is closed."""
        if self._done_at is not None and self.clock.monotonic() - self._done_at >= _LINGER_S:
            self._done_at = None
            self.logbook.remark(LogKind.NOTE, _LINGERS, self.clock.now())
            with suppress(HostLost):  # it has gone after all
                await self.stop(StopCause.DONE, is_kill=False)

    async def send(self, data: bytes | None) -> None:
        """Write to its input, or close that."""
        async with self._sending:
            self.sent += 1
            await self.host.send(self.attempt, self.sent, data)

    async def _catch_up(self, worker: Worker, *, is_adopted: bool) -> None:
        """Pass on decisions made while no watch was there, and replies the protocol owes.

        Only now the number of messages is known that the agent has had, so nothing goes out before.
        """
        # Time limits stand still while a human is asked, whichever engine stopped the clock.
        if is_adopted or worker.attempt.questions or worker.attempt.said:
            await self.host.hold_clock(self.attempt, held=bool(worker.attempt.questions))
        if Badge.PAUSED in worker.badges:
            await self.host.freeze(self.attempt)
        elif is_adopted:
            # The engine that froze it may have died before it could thaw it.
            await self.host.thaw(self.attempt)
        if worker.limits is not None:
            await self.set_limits(worker.limits)
        self.is_caught_up = True
        owed = list(self.parser.owed)
        self._outbox = [data for data in self._outbox if data in owed] or owed
        await self._repeat(worker)
        while self._early:
            await self.steer(self._early.pop(0))

    async def _repeat(self, worker: Worker) -> None:
        """Pass on answers and words from before this watch existed."""
        for said in worker.attempt.said:
            if said.question is not None:
                await self.answer(said.question, said.text)
            elif not said.is_heard and self.logbook.hears in {Steering.NOW, Steering.AFTER_TURN}:
                await self.steer(said.text)

    async def set_limits(self, limits: Limits) -> None:
        """Hold the agent to other limits from now on."""
        self.limits = limits
        if self.change_kernel_limits is not None:
            try:
                await self.change_kernel_limits(limits)
            except EngineError as error:  # less memory than it has, for example: it works on
                note = f"plait could not change every limit: {error}"
                self.logbook.remark(LogKind.ERROR, note, self.clock.now())
        await self.host.set_limits(self.attempt, limits)

    async def answer(self, question: str, answer: str) -> None:
        """Pass a human's answer on; do not send one that the agent has already had."""
        if not self.is_caught_up:
            return  # the worker remembers it
        data = self.parser.answer(question, answer)
        if data is not None:
            self.logbook.remark(LogKind.YOU, answer, self.clock.now())
            await self.send(data)

    async def steer(self, text: str) -> None:
        """Pass a human's words on, or say that the agent cannot hear them."""
        if not self.is_caught_up:
            self._early.append(text)
            return
        is_deaf = self.logbook.hears in {"", Steering.NO}
        data = None if is_deaf else self.parser.steer(text)
        self.logbook.remark(LogKind.YOU, text, self.clock.now())
        if data is None:
            self.logbook.remark(LogKind.NOTE, _LATER[is_deaf], self.clock.now())
            self.feed(f.SteerUnheard(**self._about, text=text, is_refused=is_deaf))
        elif data:
            await self.send(data)
        else:
            self.logbook.remark(
                LogKind.NOTE, "it reads this after its current turn", self.clock.now()
            )

    async def close(self) -> None:
        """Write down the rest of what was seen; nobody waits for it."""
        usage, now = self.logbook.usage, self.clock.now()
        await self.notebook.finish(usage, at=now, parsed_offset=self.read_to)

    async def interrupt(self) -> None:
        """Interrupt the agent's turn."""
        data = self.parser.interrupt()
        if data is None:
            await self.host.interrupt(self.attempt)
        else:
            await self.send(data)

    def _ended(self, end: AttemptExit, offset: int) -> f.AttemptEnded:
        is_done = end.cause is StopCause.DONE
        cause = None if is_done else end.cause
        outcome = self.parser.finish(
            Ending(
                exit_code=0 if is_done else end.exit_code,
                signal=None if is_done else end.signal,
                not_started=end.not_started,
                cause=cause,
            )
        )
        self._note(outcome.last_events, self.clock.now())
        self.logbook.sample(end.usage)
        self.logbook.end(outcome.text, self.clock.now())
        self.read_to = offset
        if cause is None and self.budget_hit is not None and not outcome.ok:
            cause = StopCause.BUDGET  # it noticed by itself
        return f.AttemptEnded(
            **self._about,
            ok=outcome.ok and cause is None,
            exit_code=end.exit_code,
            text=outcome.text,
            error=self._error(outcome),
            cause=cause,
            limit=self.budget_hit if cause is StopCause.BUDGET else end.limit,
            session=outcome.session,
            usage=self.logbook.usage,
            needs_proof=outcome.needs_proof,
            retry_at=self._retry_at(outcome),
            needs_login=outcome.needs_login,
            is_asleep=outcome.lost_network and self.clock.has_just_woken(),
        )

    def _error(self, outcome: a.AgentOutcome) -> str | None:
        if outcome.needs_login and self.login:
            return f"{outcome.error}; it authenticates with {self.login}"
        return None if outcome.ok else (outcome.error or None)

    def _retry_at(self, outcome: a.AgentOutcome) -> float | None:
        if outcome.limit is None:
            return None
        now = self.clock.now()
        return end_of_limit(outcome.limit, now) or now + SHORT_LIMIT_S


def _is_same(one: float | None, other: float | None) -> bool:
    """Return True for two ends of a wait that nobody can tell apart."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _SAME_S


def end_of_limit(limit: a.RateLimited, now: float) -> float | None:
    """Return when a login may be used again, None where its agent does not say.

    All workers of the login wait for it, and an agent may say anything.
    """
    until = limit.until or (now + limit.delay_s if limit.delay_s else None)
    return None if until is None else min(until, now + _LONGEST_LIMIT_S)
