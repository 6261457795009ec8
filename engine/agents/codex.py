"""Drive Codex with `codex exec --json`: one prompt for each process, resumed by its thread id."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from engine.agents.agent_events import (
    AgentEvent,
    Thought,
    ToolCalled,
    ToolEnded,
)
from engine.agents.contract import (
    AgentLaunch,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchRequest,
    LoginTraces,
    SessionId,
    Steering,
)
from engine.agents.finding import ProgramSearch, find_agent
from engine.agents.options import flag, folders_of, more_arguments, program_of
from engine.agents.permitting import is_allowed_unasked, refuse_asking
from engine.agents.prompting import system_text, user_text
from engine.agents.reading import Closing, Reading
from engine.agents.records import Record, at, count_of, plain_words, tail_of, text_of
from engine.agents.settings.codex import (
    KEYS_OF_CODEX,
    base_url_of_codex,
    environment_of_codex,
    login_of_codex,
    settings_of_codex,
    toml_word,
    wanted_login_of_codex,
)
from engine.agents.waiting import retry_of_codex
from engine.values import dataclass

_LIMIT_REACHED = re.compile(
    r"usage limit|rate limit|quota exceeded|exceeded your current quota|\b429\b", re.IGNORECASE
)
_UNAUTHORIZED = re.compile(
    r"\b401\b|not logged in|log ?in again|token.{0,200}expired", re.IGNORECASE
)
LOGIN_OF_CODEX = LoginTraces(variables=KEYS_OF_CODEX, files=(".codex/auth.json",))
_ENDINGS = {"completed": "done", "declined": "denied"}


class CodexStream(Reading):
    """One attempt's stream of `codex exec --json`."""

    counts_session = True

    def __init__(self, request: LaunchRequest) -> None:
        super().__init__(request)
        self._error_told = ""
        self._readers: dict[str, Callable[[Record], list[AgentEvent]]] = {
            "thread.started": lambda r: self.start(text_of(r["thread_id"])),
            "turn.started": lambda _: [],
            "turn.completed": self._completed,
            "turn.failed": self._failed,
            "error": self._trouble,
            "item.started": lambda r: self._item(r["item"], is_over=False),
            "item.updated": lambda r: self._item(r["item"], is_over=False),
            "item.completed": lambda r: self._item(r["item"], is_over=True),
        }

    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return the events of one record."""
        reader = self._readers.get(text_of(record.get("type")))
        return None if reader is None else reader(record)

    def _item(self, item: Record, *, is_over: bool) -> list[AgentEvent]:
        identity, kind = text_of(item["id"]), text_of(item["type"])
        if kind in {"agent_message", "reasoning", "error"}:
            text = text_of(item.get("text")) or text_of(item.get("message"))
            if not is_over:
                return []
            return [self.say(text) if kind == "agent_message" else Thought(text)]
        if not is_over:
            paths = tuple(text_of(change.get("path")) for change in item.get("changes") or ())
            return [ToolCalled(identity, kind, _title(item, paths), paths)]
        state = _ENDINGS.get(text_of(item.get("status")) or "completed", "failed")
        output = tail_of(text_of(item.get("aggregated_output")))
        return [ToolEnded(identity, state, output, count_of(item.get("exit_code")))]

    def _completed(self, record: Record) -> list[AgentEvent]:
        self.closing = Closing()
        usage = record.get("usage")
        return [
            self.used(
                input_tokens=count_of(at(usage, "input_tokens")),
                output_tokens=count_of(at(usage, "output_tokens")),
                cached_tokens=count_of(at(usage, "cached_input_tokens")),
            )
        ]

    def _failed(self, record: Record) -> list[AgentEvent]:
        error = plain_words(text_of(at(record, "error", "message"))) or self._error_told
        self.closing = Closing(
            error=error or "the turn failed", needs_login=bool(_UNAUTHORIZED.search(error))
        )
        return [self.limited(words=error)] if _LIMIT_REACHED.search(error) else []

    def _trouble(self, record: Record) -> list[AgentEvent]:
        """Most errors are not the end: codex says in this way that it tries again."""
        message = text_of(record["message"])
        if retry := retry_of_codex(message, self._tries):
            self._tries = retry.attempt
            return [retry]
        self._error_told = plain_words(message)
        return [Thought(self._error_told)]


def _title(item: Record, paths: tuple[str, ...]) -> str:
    """Return a tool's title: its command without the shell around it, its files, its query."""
    command = text_of(item.get("command"))
    if command:
        inner = re.fullmatch(r"\S*sh -l?c '(.*)'", command, re.DOTALL)
        return (inner[1] if inner else command).strip().split("\n", 1)[0][:200]
    return ", ".join(paths) or text_of(item.get("query")) or text_of(item.get("tool"))


@dataclass(frozen=True, kw_only=True)
class CodexAdapter:
    """Codex, by its own program `codex`."""

    name: str = "codex"
    install_hint: str = "npm install -g @openai/codex@latest"
    login: LoginTraces = LOGIN_OF_CODEX
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            steer=Steering.BY_RESUME,
            resume=True,
            resume_elsewhere=True,
            fork=True,
            hint=HintChannel.SYSTEM_PROMPT,
            usage=True,
            session_id=SessionId.EARLY,
        )
    )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """One prompt, read from its input: as an argument it could be too long to start."""
        refuse_asking(request, self.name, is_careful=True)
        system = system_text(request)
        settings = [
            *_sandbox(request),
            *((f"developer_instructions={toml_word(system)}",) if system else ()),
        ]
        program = program_of(request, "codex")
        copied = settings_of_codex(request)
        return AgentLaunch(
            argv=(
                *(program, "exec", "--json", "--skip-git-repo-check"),
                *(word for setting in settings for word in ("-c", setting)),
                *flag("--model", request.choice.model),
                *more_arguments(request),
                *_taken_up(request),
                "-",
            ),
            env={**environment_of_codex(request), **request.choice.env},
            files=copied.files,
            first_input=user_text(request, is_resumed=request.session is not None).encode(),
            hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
            reads=(*folders_of(request, program), *copied.reads),
            settings=copied.listed,
            login=login_of_codex(request),
            wants_login=wanted_login_of_codex(request),
            base_url=base_url_of_codex(request),
        )

    def parser(self, request: LaunchRequest) -> CodexStream:
        """A parser for its JSON lines."""
        return CodexStream(request)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        search = ProgramSearch(
            program="codex",
            driven="exec --json",
            settings=settings_of_codex,
        )
        return await find_agent(self, search, environment)


def _taken_up(request: LaunchRequest) -> tuple[str, ...]:
    if request.session is None:
        return ()
    return ("fork" if request.is_fork else "resume", request.session)


def _sandbox(request: LaunchRequest) -> tuple[str, ...]:
    # Within our sandbox its own could not be set up, and would add nothing.
    mode = "danger-full-access" if is_allowed_unasked(request) else "workspace-write"
    return (f'sandbox_mode="{mode}"', 'approval_policy="never"')
