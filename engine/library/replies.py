"""The answers of an agent: a reply, or an error that carries the whole result."""

from dataclasses import field

from engine.errors import EngineError
from engine.library.talks import Ended
from engine.limits import Usage
from engine.messages.results import Change, WorkerResult
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An agent's answer and its changes.

    Attributes:
        text: Its last message.
        change: Its commits since the start of the conversation, imported into the repository; None
            if it changed nothing.
        usage: The CPU time, memory, tokens and money of the attempt; None where unknown.
        worker: Its name in the engine, `run/step/worker_1`, to land, inspect or retry it by.
        result: Its part of the engine's report.
    """

    text: str
    change: Change | None
    usage: Usage
    worker: str
    result: WorkerResult

    @property
    def branch(self) -> str | None:
        """Return the branch that holds the work."""
        return self.result.branch

    @property
    def run(self) -> str:
        """Return the run it belongs to."""
        return self.worker.partition("/")[0]


class AgentRunFailed(EngineError):
    """An agent's attempt failed, was stopped, or its check did not pass; its work is kept.

    Attributes:
        result: Its part of the engine's report: phase, cause, limit, error, usage.
        change: Its changes until then, collected like any other work.
    """

    hint = "`result` says why; the work so far is on `result.branch`."

    def __init__(self, worker: str, result: WorkerResult, change: Change | None = None) -> None:
        self.worker, self.result, self.change = worker, result, change
        why = result.error or (f"it was stopped ({result.cause})" if result.cause else "")
        super().__init__(f"{worker} {result.phase.lower()}: {why or 'it did not say why'}")


def reply_of(ended: Ended) -> Reply:
    """Return the reply that an ended turn is.

    Raises:
        AgentRunFailed: It is none.
    """
    result = ended.result
    if not result.outcome.is_well:
        raise AgentRunFailed(ended.worker, result, ended.change)
    return Reply(
        text=result.output,
        change=ended.change,
        usage=result.attempt_usages[-1] if result.attempt_usages else result.usage,
        worker=ended.worker,
        result=result,
    )


@dataclass(frozen=True)
class Turn:
    """One exchange of a conversation; `text` is the answer, or the reason why there is none."""

    prompt: str
    text: str
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class ConversationState:
    """The state of a conversation's work: what it is counted from, and what it has come to."""

    base: str | None = None
    start: str | None = None


_TURN = 4096
_ALL = 24 * 1024


@dataclass(frozen=True)
class TurnHistory:
    """The turns so far, oldest first; never changed, so that forks may share them."""

    turns: tuple[Turn, ...] = field(default=())

    def with_turn(self, turn: Turn) -> "TurnHistory":
        """Return a history with one turn more."""
        return TurnHistory((*self.turns, turn))

    def told(self, text: str) -> str:
        """Return a prompt for one who was not there: what was said, and what is wanted now."""
        parts: list[str] = []
        room = _ALL
        for turn in reversed(self.turns):
            part = f"User:\n{_short(turn.prompt)}\n\nYou:\n{_short(turn.text) or '(no answer)'}"
            room -= len(part)
            if room < 0:
                parts.append("(Earlier messages are left out.)")
                break
            parts.append(part)
        said = "\n\n".join(reversed(parts))
        return (
            "You continue a conversation. The working tree holds the work so far.\n\n"
            f"{said}\n\nUser:\n{text}"
        )


def _short(text: str) -> str:
    if len(text) <= _TURN:
        return text
    half = _TURN // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"
