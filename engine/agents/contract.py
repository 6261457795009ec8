"""The promise of every adapter: a launch for a request, a parser for the stream that follows."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from engine.agents.agent_events import AgentEvent, AgentOutcome
from engine.limits import Usage
from engine.phases import StopCause
from engine.plan.model import AgentChoice, Permissions, RetryMode
from engine.values import dataclass


class Steering(StrEnum):
    """The moment at which a working agent hears what is said to it."""

    NOW = "now"
    AFTER_TURN = "after_turn"
    BY_RESUME = "by_resume"
    NO = "no"


class SessionId(StrEnum):
    """The moment at which the id that resumes a session becomes known."""

    EARLY = "early"
    LATE = "late"
    NONE = "none"


class HintChannel(StrEnum):
    """The channel by which an agent learns how many sub-agents it may spawn."""

    SYSTEM_PROMPT = "system prompt"
    CONFIG_FILE = "configuration file"
    PROMPT = "prompt"


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The abilities of an agent that is driven by this adapter.

    Attributes:
        permission: It can ask the host before it acts.
        interrupt: Its turn can be broken off without ending it.
        resume: A new process can take its session up again.
        resume_elsewhere: It can do so in another folder than the one the session began in; else
            an attempt there begins a new session, with the whole prompt.
        two_way: Its input stays open while it works.
    """

    permission: bool = False
    steer: Steering = Steering.NO
    interrupt: bool = False
    resume: bool = False
    resume_elsewhere: bool = False
    fork: bool = False
    hint: HintChannel = HintChannel.PROMPT
    usage: bool = False
    cost: bool = False
    session_id: SessionId = SessionId.NONE
    two_way: bool = False


ABLE_TO_ALL = Capabilities(
    permission=True,
    steer=Steering.NOW,
    interrupt=True,
    resume=True,
    resume_elsewhere=True,
    fork=True,
    hint=HintChannel.SYSTEM_PROMPT,
    usage=True,
    cost=True,
    session_id=SessionId.EARLY,
    two_way=True,
)


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """Everything an adapter may know about the attempt it is to launch.

    Attributes:
        prompt: The worker's prompt, its placeholders filled.
        hint: How many sub-agents it may spawn; None or 1 when nothing is to be said.
        folders: The folders of the repository that its worktree holds; None for all.
        home: The worker's own HOME, kept over its attempts.
        mode: What this attempt goes on from; FRESH where there was none before.
        session: The session to resume, if one is known and the mode wants it.
        session_workspace: Where that session worked before; empty if it was here.
        is_fork: Resume a copy of that session and leave the original as it is.
        used_before: What that session had used already: agents count a session, not an attempt.
        feedback: What a reviewer or a failed check said of the attempt before.
        environment: The user's environment; an adapter takes from it only what it names.
        user_home: The user's real HOME, in which logins and settings are looked for.
        passed: Variables that the run passes on by name, as patterns.
        opened: Paths of the user's that the run opens, as the manifest writes them.
        folder: Where relative paths in the agent's options begin: the manifest's folder.
        is_confined: Files and git are enforced by the sandbox this attempt runs in.
        terminal: Rows and columns for an agent that wants a terminal.
        budget_usd: What it may spend, for an agent that counts by itself while it works.
    """

    choice: AgentChoice
    prompt: str
    workspace: str
    home: str
    worker: str = "task/worker_1"
    attempt: int = 1
    persona_prompt: str = ""
    hint: int | None = None
    folders: tuple[str, ...] | None = None
    permissions: Permissions = field(default_factory=Permissions)
    mode: RetryMode = RetryMode.FRESH
    session: str | None = None
    session_workspace: str = ""
    is_fork: bool = False
    used_before: Usage = field(default_factory=Usage)
    feedback: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    user_home: str = ""
    passed: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    folder: str = ""
    is_confined: bool = False
    terminal: tuple[int, int] = (40, 120)
    budget_usd: float | None = None

    @property
    def is_elsewhere(self) -> bool:
        """The session to be resumed worked in another folder."""
        return self.session_workspace not in {"", self.workspace}


SETTINGS_HEADS = ("your settings", "left out of your settings")
"""The words before what goes along of the user's settings, and before what stays behind."""


@dataclass(frozen=True, kw_only=True)
class CopiedSettings:
    """The list of the user's own settings: those that go along, those that stay behind and why.

    Attributes:
        model: The model that they name; empty where they leave it to the client.
    """

    taken: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    model: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return both as lines to be read; none where the user has no settings."""
        told = zip(SETTINGS_HEADS, (self.taken, self.left_out), strict=True)
        return tuple(f"{head}: {'; '.join(found)}" for head, found in told if found)


@dataclass(frozen=True, kw_only=True)
class BaseUrl:
    """The address of a provider of the user's own.

    Attributes:
        named_by: The variable or the file that names it, as the user knows it.
    """

    url: str
    named_by: str


@dataclass(frozen=True, kw_only=True)
class LaunchFile:
    """A file to write before the start; `path` is relative to the worker's HOME."""

    path: str
    data: bytes
    mode: int = 0o600


@dataclass(frozen=True, kw_only=True)
class AgentLaunch:
    """The command, files and environment that start an agent.

    Attributes:
        argv: `argv[0]` is searched on the PATH of the agent's environment.
        env: Additions to the environment; they win over what is there.
        files: Written below the worker's HOME before the start.
        keeps_stdin: Leave its input open after `first_input`, for replies and answers.
        terminal: Rows and columns when it wants a terminal.
        hosts: What it must reach on the network to work at all.
        reads: Paths outside HOME and workspace that must be readable where it runs.
        settings: What of the user's own settings lies among its files.
        login: By what it logs in, as the user knows it: a variable's name, or a file.
        wants_login: How to log in, where nothing by which it could was found.
        base_url: Whom it asks, where that is a provider of the user's own.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[LaunchFile, ...] = ()
    first_input: bytes = b""
    keeps_stdin: bool = False
    terminal: tuple[int, int] | None = None
    hosts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    settings: CopiedSettings = field(default_factory=CopiedSettings)
    login: str = ""
    wants_login: str = ""
    base_url: BaseUrl | None = None


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The end of an agent's process, as its host says; `cause` if it was ended from outside."""

    exit_code: int | None = None
    signal: int | None = None
    not_started: str | None = None
    cause: StopCause | None = None


@dataclass(frozen=True, kw_only=True)
class LoginTraces:
    """Signs that an agent can log in: variables by name, files below the user's HOME."""

    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


NO_VENDOR = LoginTraces()
"""The traces of an agent that is whatever the user starts: nobody knows by what it logs in."""


@dataclass(frozen=True, kw_only=True)
class FoundAgent:
    """The findings of `plait doctor` about an agent on this machine.

    Attributes:
        path: Its program; None when it is not installed.
        login: By what it is logged in, in words; None when nothing was found.
        driven: How the adapter talks to it, in a few words.
        settings: What of the user's own settings its workers get by default.
        models: Those that its program lists; empty where nobody asked, or it lists none.
    """

    name: str
    path: str | None = None
    version: str | None = None
    login: str | None = None
    driven: str = ""
    capabilities: Capabilities = field(default_factory=Capabilities)
    install_hint: str = ""
    settings: CopiedSettings = field(default_factory=CopiedSettings)
    models: tuple[str, ...] = ()


class StreamParser(Protocol):
    """Reads one attempt's stream and words what is said back to it.

    Fed again from the start of a recording (streams `out`, `err` and `in`), it comes to the same
    state; replies that the recording does not show as sent are then `owed`.
    """

    @property
    def owed(self) -> tuple[bytes, ...]:
        """Replies asked for and not yet seen on the stream `in`."""

    def feed(self, stream: str, data: bytes) -> list[AgentEvent]:
        """Return the events of these bytes; half a line is kept until its other half comes."""

    def finish(self, ending: Ending) -> AgentOutcome:
        """The verdict, once everything has been fed and the process has ended."""

    def answer(self, question: str, answer: str) -> bytes | None:
        """Return the bytes that answer a question; None if it does not wait for an answer."""

    def steer(self, text: str) -> bytes | None:
        """Return the bytes that say something to it; `b""` if it will be said after this turn.

        None where it cannot hear.
        """

    def interrupt(self) -> bytes | None:
        """Return the bytes that break its turn off; None where only a signal helps."""


class AgentAdapter(Protocol):
    """One kind of agent: how it is launched, read and found."""

    @property
    def name(self) -> str:
        """The name by which a manifest asks for it."""

    @property
    def capabilities(self) -> Capabilities:
        """The agent's abilities when this adapter drives it."""

    @property
    def install_hint(self) -> str:
        """One line that installs it."""

    @property
    def login(self) -> LoginTraces:
        """Return the traces of its vendor's login; `NO_VENDOR` for what the user starts."""

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """Return how to start it; may read files, so call it outside an event loop."""

    def parser(self, request: LaunchRequest) -> StreamParser:
        """A parser for the stream that this request's launch will write."""

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Find out what is installed of it on this machine."""
