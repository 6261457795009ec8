"""The events of an agent at work, and its outcome: the same few words for every agent.

These are the observations of one attempt; `engine.messages.events` is what observers of a run see.
"""

from dataclasses import dataclass, field

from engine.limits import Usage

LONGEST_TEXT = 64 * 1024
"""The most bytes of a last message that are kept as a worker's output."""


@dataclass(frozen=True, slots=True)
class Started:
    """The agent is at work; `session` is what it can be resumed by."""

    session: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """The agent said something; a delta goes on where the one before it ended."""

    text: str
    is_delta: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """The agent thought aloud."""

    text: str
    is_delta: bool = False


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool began; the same id may come again with a better title.

    `edit` counts the lines that it adds and removes, where it says so.
    """

    id: str
    name: str
    title: str = ""
    paths: tuple[str, ...] = ()
    edit: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool ended: `state` is done, failed or denied; `output` is the tail of what it printed."""

    id: str
    state: str
    output: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The agent waits for a human's word; a permission is answered `allow` or `deny`.

    `command` is the whole command that it wants to run; `is_editable` where its client runs another
    one that a human writes in its place. `given` is the whole input of a tool that is about neither
    a command nor a file. `needs_human` where no kept answer may answer it: what it wants is known
    only from a terminal, or it wants several things at once.
    """

    id: str
    text: str
    choices: tuple[str, ...] = ()
    is_permission: bool = False
    tool: str = ""
    detail: str = ""
    command: str = ""
    given: str = ""
    is_editable: bool = False
    needs_human: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The agent no longer waits for the answer to this question."""

    id: str


@dataclass(frozen=True, slots=True)
class Decided:
    """A permission was given or refused by rule; nobody need be asked."""

    id: str
    tool: str
    detail: str
    is_allowed: bool
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeen:
    """The usage of this attempt so far: totals, each None where it is not known.

    `input_tokens` counts all that went in, `cached_tokens` the part of it that a cache held.
    `context` is what the newest request held, of a `window` of so many tokens; `turns` counts the
    answers of its model.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    usd: float | None = None
    context: int | None = None
    window: int | None = None
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class Progressed:
    """The agent's own progress, from 0 to 1; None where it only says what it does."""

    fraction: float | None
    note: str = ""


BUSY = "busy"
"""The status of an answer whose number a client does not report: its server named the wait."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """The agent tries a request to its model again by itself."""

    attempt: int
    delay_s: float | None = None
    status: str = ""


@dataclass(frozen=True, slots=True)
class RateLimited:
    """The login's allowance is used up: until a wall-clock time, for a while, or nobody knows."""

    until: float | None = None
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class SubAgents:
    """The number of sub-agents that the agent has started so far."""

    count: int


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The agent has done its last task and waits: tell it more, or close its input.

    One that was interrupted waits for what it is to do instead: its input stays open.
    """

    is_ok: bool
    text: str = ""
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ProtocolReply:
    """Bytes that the protocol wants written to the agent's input now."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """Words that reached the agent while it worked."""

    text: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A line of output that means nothing more than what it says."""

    line: str
    stream: str = "out"


@dataclass(frozen=True, slots=True)
class Printed:
    """Many lines of output as one text, none of which means more: what a flood is reported in."""

    text: str


AgentEvent = (
    Started
    | Said
    | Thought
    | ToolCalled
    | ToolEnded
    | Asked
    | Withdrawn
    | Decided
    | UsageSeen
    | Progressed
    | Retrying
    | RateLimited
    | SubAgents
    | TurnEnded
    | ProtocolReply
    | Heard
    | Raw
    | Printed
)


@dataclass(frozen=True, kw_only=True)
class AgentOutcome:
    """The outcome of an attempt, judged by its exit code and its closing record together.

    Attributes:
        text: The last message, at most 64 KiB of it.
        error: Why it is not ok, in one sentence; empty when it is.
        needs_proof: Nothing but the exit code speaks for it: a change or a check must prove it.
        limit: It ended because an allowance was used up; to be resumed, not retried.
        needs_login: It ended because its login was refused or has expired.
        lost_network: It ended because it could not reach its model.
        last_events: What its unfinished last line still says.
    """

    ok: bool
    text: str = ""
    error: str = ""
    session: str | None = None
    usage: Usage = field(default_factory=Usage)
    needs_proof: bool = False
    limit: RateLimited | None = None
    needs_login: bool = False
    lost_network: bool = False
    last_events: tuple[AgentEvent, ...] = ()
