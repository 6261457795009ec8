"""Ask an agent in a worker's surroundings: about one conflict, or anything else in words.

About a conflict, three texts and the prompts go in, and one text comes out.

It is an attempt like any other, under a keeper and in the worker's own surroundings, but in an
empty folder: whatever it writes there is thrown away. What it answers is only ever offered.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from secrets import token_hex

import anyio
import anyio.to_thread

from engine.agents import agent_events as a
from engine.agents.contract import Ending, LaunchRequest, StreamParser
from engine.agents.registry import adapter_named
from engine.core.state import RunState, Worker
from engine.errors import AgentError
from engine.host.seam import Host, Stream
from engine.ids import AttemptId
from engine.limits import Limits, Usage
from engine.merge import OutsideAnswer
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice, AssistRule
from engine.review.assisting import Assisted
from engine.review.inquiry import Inquiry
from engine.site.seam import Workplace
from engine.work.logbook import Logbook
from engine.work.tools import Tools
from engine.work.watch import SHORT_LIMIT_S, end_of_limit
from engine.work.workplace import workplace

_WHY = re.compile(r"^WHY:[ \t]*(\S.*)$", re.MULTILINE)
_LONGEST_WHY = 200
_BEGIN, _END = "<<<ANSWER", "ANSWER>>>"
_REFUSED = "its provider refuses this login for now"
_TASK = """Combine two changes of the same lines of {path}. {base}

--- {target} has:
{ours}
--- {incoming} has:
{theirs}
---
{about}{words}
Give the lines that should replace them, so that both intentions are kept. Change no files. First
say in one sentence how, on a line that begins with WHY: and then a blank. Then answer with exactly
those lines, without line numbers and without fences, between two lines that read
<<<ANSWER
ANSWER>>>
"""


Count = Callable[[Usage], None]
"""Hears what a question has used, however it ended."""


async def ask_agent(  # noqa: PLR0913 - who asks whom about what, within which bounds
    tools: Tools,
    state: RunState,
    w: Worker,
    *,
    choice: AgentChoice,
    inquiry: Inquiry,
    bounds: Limits | None = None,
    count: Count = lambda _: None,
) -> OutsideAnswer:
    """Return the text that an agent proposes for a hunk, and its reason.

    Raises:
        EngineError: It could not be asked, or gave no answer.
    """
    prompt = prompt_of(inquiry, _prompts(state, inquiry))
    said = await ask_words(
        tools, state, w, choice=choice, prompt=prompt, bounds=bounds, count=count
    )
    return answer_in(said, by=choice.name)


async def ask_words(  # noqa: PLR0913 - who is asked what, where, within which bounds
    tools: Tools,
    state: RunState,
    w: Worker,
    *,
    choice: AgentChoice,
    prompt: str,
    bounds: Limits | None = None,
    count: Count = lambda _: None,
) -> str:
    """Return what an agent says last to a prompt, in an empty folder beside a worker's workspace.

    Raises:
        EngineError: It could not be asked, or did not end well.
    """
    await tools.ledger.share([choice])
    if (hold := tools.ledger.hold(choice)) is not None:
        raise AgentError(hold.reason or _REFUSED)
    if w.begun.workspace is None:
        raise AgentError(f"{w.id} has no workspace where an agent could answer")
    beside = workplace(state, w.id, role=f"ask-{token_hex(4)}")
    site = tools.sites.of(state, w.id)
    limits = (bounds or Limits()).over(beside.limits)
    at = replace(beside, address=await site.aside(beside), limits=limits)
    try:
        return await _asked(tools, state, at, choice=choice, prompt=prompt, count=count)
    finally:
        with anyio.CancelScope(shield=True):
            await site.drop(at.address)


def bounds_of(rule: AssistRule, so_far: Assisted, own: Limits) -> Limits:
    """Return the limits of one more question: the rest of the budget, and no more than its own."""
    return Limits(
        time_seconds=_least(own.time_seconds, rule.seconds - so_far.seconds),
        budget_usd=_least(own.budget_usd, None if rule.usd is None else rule.usd - so_far.usd),
    )


def _least(*bounds: float | None) -> float | None:
    """Return the least of some bounds; None where there is none."""
    return min((bound for bound in bounds if bound is not None), default=None)


def _prompts(state: RunState, inquiry: Inquiry) -> list[str]:
    """Return what each side was asked to do."""
    sides = {inquiry.incoming, inquiry.target}
    return [
        f"{worker.id} was asked: {worker.begun.prompt.strip()}"
        for worker in state.workers.values()
        if worker.begun.prompt and (str(worker.id) in sides or worker.phase is Phase.LANDED)
    ]


def prompt_of(inquiry: Inquiry, prompts: Sequence[str] = ()) -> str:
    """Return the prompt: the three texts, and what is known of both sides."""
    base = inquiry.base
    said = f"Before both, they were:\n{base}" if base else "Before both, there was nothing."
    subjects = [f"{inquiry.target} says: {subject}" for subject in inquiry.subjects]
    about = "".join(f"{line}\n" for line in (*prompts, *subjects))
    words = f"{inquiry.around}\n" if inquiry.around else ""
    words += f"The reviewer says: {inquiry.words}\n" if inquiry.words else ""
    return _TASK.format(
        path=inquiry.path,
        base=said,
        target=inquiry.target,
        incoming=inquiry.incoming,
        ours=inquiry.ours,
        theirs=inquiry.theirs,
        about=about,
        words=words,
    )


def answer_in(said: str, *, by: str) -> OutsideAnswer:
    """Return the text that an agent proposes in its last message, and its reason.

    Raises:
        AgentError: It proposes none.
    """
    return OutsideAnswer(by, _answer(said), _why(said))


def _answer(said: str) -> bytes:
    """Return the lines between the last two markers; each line is read once."""
    found: list[str] | None = None
    inside: list[str] | None = None
    for line in StringIO(said):
        if inside is None:
            inside = [] if line.startswith(_BEGIN) else None
        elif line.startswith(_END):
            found, inside = inside, None
        else:
            inside.append(line)
    if found is None:
        raise AgentError("its answer had no lines between the two markers")
    return "".join(found).encode(errors="surrogateescape")


def _why(said: str) -> str:
    found = _WHY.findall(said.partition(_BEGIN)[0])
    return str(found[-1]).strip()[:_LONGEST_WHY] if found else ""


async def _asked(
    tools: Tools,
    state: RunState,
    at: Workplace,
    *,
    choice: AgentChoice,
    prompt: str,
    count: Count,
) -> str:
    worker = at.attempt.worker
    site = tools.sites.of(state, worker)
    request = LaunchRequest(
        choice=choice,
        prompt=prompt,
        workspace=at.address.path,
        home="",
        worker=str(worker),
        attempt=at.attempt.number,
        permissions=state.planned(worker).permissions,
        passed=at.terms.runtime.holes.env,
        opened=at.terms.runtime.holes.paths,
        folder=str(tools.project),
        is_confined=site.can_confine,
        budget_usd=at.limits.budget_usd,
    )
    await tools.logins.keep_fresh(choice)
    # The first one who asks for an adapter reads the tables of all.
    adapter = await anyio.to_thread.run_sync(adapter_named, choice.adapter)
    parser = await anyio.to_thread.run_sync(adapter.parser, request)
    try:
        launched = await site.launch(at, request, {})
        keeps_stdin = launched.keeps_stdin
        listening = _Listening(site.host, at.attempt, parser, keeps_stdin=keeps_stdin)
        try:
            return await listening.to_end()
        finally:
            used, now = listening.usage, tools.clock.now()
            if (limit := listening.limit) is not None:
                tools.ledger.refuse(choice, end_of_limit(limit, now) or now + SHORT_LIMIT_S)
            tools.ledger.spend(choice, at.attempt, at=now, usd=used.usd, tokens=used.tokens)
            count(used)
    finally:
        await site.end(at.attempt)


class _Listening:
    """One question being answered; nobody is there to be asked back, so permissions are denied.

    `limit` says that the vendor refused the login.
    """

    def __init__(
        self, host: Host, attempt: AttemptId, parser: StreamParser, *, keeps_stdin: bool
    ) -> None:
        self._host = host
        self._attempt = attempt
        self._parser = parser
        self._keeps_stdin = keeps_stdin
        self._logbook = Logbook(attempt.number)
        self._sent = 0
        self.limit: a.RateLimited | None = None

    @property
    def usage(self) -> Usage:
        """Return what it has used so far, as far as it says so."""
        return self._logbook.usage

    async def to_end(self) -> str:
        """Follow the agent to its end; return its last message.

        Raises:
            AgentError: It did not end well.
        """
        offset = 0
        while True:
            chunk = await self._host.read(self._attempt, offset)
            for frame in chunk.frames:
                if frame.stream is not Stream.NOTE:
                    await self._take(self._parser.feed(frame.stream, frame.data))
            offset = chunk.next_offset
            if chunk.end is None:
                continue
            end = chunk.end
            outcome = self._parser.finish(
                Ending(
                    exit_code=end.exit_code,
                    signal=end.signal,
                    not_started=end.not_started,
                    cause=end.cause,
                )
            )
            self.limit = outcome.limit
            if not outcome.ok or end.cause is not None:
                raise AgentError(outcome.error or f"it was stopped ({end.cause})")
            return outcome.text

    async def _take(self, events: Sequence[a.AgentEvent]) -> None:
        for event in events:
            self._logbook.note(event, 0.0)
            match event:
                case a.ProtocolReply():
                    await self._send(event.data)
                case a.Asked():
                    answer = self._parser.answer(event.id, "deny")
                    if answer is None:
                        await self._host.cancel(self._attempt, StopCause.USER)
                    else:
                        await self._send(answer)
                case _:
                    pass
        if self._keeps_stdin and self._logbook.is_turn_over:
            self._keeps_stdin = False
            await self._send(None)

    async def _send(self, data: bytes | None) -> None:
        self._sent += 1
        await self._host.send(self._attempt, self._sent, data)
