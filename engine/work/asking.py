"""Ask an agent about one conflict: three texts and the prompts go in, one text comes out.

It is an attempt like any other, under a keeper and in the worker's own surroundings, but in an
empty folder: whatever it writes there is thrown away. What it answers is only ever offered.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
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
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice
from engine.review.inquiry import Inquiry
from engine.site.seam import Workplace
from engine.work.logbook import Logbook
from engine.work.tools import Tools
from engine.work.workplace import workplace

_ANSWER = re.compile(r"^<<<ANSWER[^\n]*\n(.*?)^ANSWER>>>", re.MULTILINE | re.DOTALL)
_TASK = """Two changes of the same lines of {path} have to be made one. {base}

--- {target} has:
{ours}
--- {incoming} has:
{theirs}
---
{about}{words}
Say which lines should stand there so that both intentions are kept. Change no files. Answer with
exactly those lines, without line numbers and without fences, between two lines that read
<<<ANSWER
ANSWER>>>
"""


async def ask_agent(
    tools: Tools, state: RunState, w: Worker, *, choice: AgentChoice, inquiry: Inquiry
) -> str:
    """Return the text that an agent proposes for a hunk.

    Raises:
        EngineError: It could not be asked, or gave no answer.
    """
    if w.begun.workspace is None:
        raise AgentError(f"{w.id} has no place where an agent could be asked")
    beside = workplace(state, w.id, role=f"ask-{token_hex(4)}")
    site = tools.sites.of(state, w.id)
    at = replace(beside, address=await site.aside(beside))
    try:
        return _answer(
            await _asked(tools, state, at, choice=choice, prompt=prompt_of(state, inquiry))
        )
    finally:
        with anyio.CancelScope(shield=True):
            await site.drop(at.address)


def prompt_of(state: RunState, inquiry: Inquiry) -> str:
    """Return the prompt: the three texts, and what each side was asked to do."""
    base = inquiry.base
    said = f"Before both, they were:\n{base}" if base else "Before both, there was nothing."
    sides = {inquiry.incoming, inquiry.target}
    prompts = [
        f"{worker.id} was asked: {worker.begun.prompt.strip()}"
        for worker in state.workers.values()
        if worker.begun.prompt and (str(worker.id) in sides or worker.phase is Phase.LANDED)
    ]
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


def _answer(said: str) -> str:
    found = _ANSWER.findall(said)
    if not found:
        raise AgentError("its answer had no lines between the two marks")
    return str(found[-1])


async def _asked(
    tools: Tools, state: RunState, at: Workplace, *, choice: AgentChoice, prompt: str
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
    parser = await anyio.to_thread.run_sync(adapter_named(choice.adapter).parser, request)
    try:
        launched = await site.launch(at, request, {})
        keeps_stdin = launched.keeps_stdin
        return await _Listening(site.host, at.attempt, parser, keeps_stdin=keeps_stdin).to_end()
    finally:
        await site.end(at.attempt)


class _Listening:
    """One question being answered; nobody is there to be asked back, so permissions are denied."""

    def __init__(
        self, host: Host, attempt: AttemptId, parser: StreamParser, *, keeps_stdin: bool
    ) -> None:
        self._host = host
        self._attempt = attempt
        self._parser = parser
        self._keeps_stdin = keeps_stdin
        self._logbook = Logbook(attempt.number)
        self._sent = 0

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
