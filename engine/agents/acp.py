"""Drive agents over the Agent Client Protocol, version 1: JSON-RPC, one object a line.

They ask, are cancelled, and resumed by id. No file system and no terminal is offered: an agent
works on its own worktree. The end of a turn is an event here, so that version 2, where it is no
longer the answer to a call, changes little.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from engine.agents.agent_events import (
    AgentEvent,
    Asked,
    Decided,
    Heard,
    Progressed,
    ProtocolReply,
    Retrying,
    Thought,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    Withdrawn,
)
from engine.agents.contract import (
    NO_VENDOR,
    AgentLaunch,
    BaseUrl,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchRequest,
    LoginTraces,
    SessionId,
    Steering,
)
from engine.agents.finding import ProgramSearch, find_agent
from engine.agents.models import unknown_model
from engine.agents.options import folders_of, more_arguments, picked, program_of
from engine.agents.permitting import OpenPermission, decide, verdict_of
from engine.agents.prompting import system_text, user_text, whole_text
from engine.agents.reading import (
    INTERRUPTED,
    LIMIT_REACHED,
    UNAUTHORIZED,
    Closing,
    Reading,
)
from engine.agents.records import (
    Record,
    at,
    commands_of,
    content_text,
    count_of,
    edit_of,
    input_of,
    line_of,
    number_of,
    paths_of,
    plain_words,
    read_record,
    subject_of,
    tail_of,
    text_of,
    title_of,
)
from engine.agents.settings.copied import SettingsCopy
from engine.agents.settings.over_acp import copy_for_acp, servers_for_session
from engine.agents.settings.tables import TableHome
from engine.agents.table_agent import login_of
from engine.agents.tables import shipped_table
from engine.agents.waiting import retry_of_claude, retry_of_codex
from engine.errors import AgentError
from engine.values import dataclass

_MODEL, _ANEW, _INITIALIZE, _SESSION, _FIRST_PROMPT = -1, 0, 1, 2, 3
_LOGIN_WANTED = -32000
_NO_SUCH_METHOD = -32601
_WELL = {"end_turn"}
_NOTE = re.compile(r"(?:Info|Warning|Error): ")
"""Copilot puts its own words among those of its model."""
_DENIED = "the agent ended its turn because its request was denied"


def call(identity: int, method: str, **params: object) -> bytes:
    """A request of the client's, as one line."""
    return line_of({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})


def initialize(servers: Sequence[Record] = ()) -> bytes:
    """The first line that a client says.

    It carries the MCP servers of the session that follows: who writes the later lines knows only
    what was sent, so that a recording leads to the same lines again.
    """
    more = {"_meta": {"plait": {"mcpServers": [*servers]}}} if servers else {}
    return call(
        _INITIALIZE,
        "initialize",
        protocolVersion=1,
        clientInfo={"name": "plait", "version": "1"},
        clientCapabilities={
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
        },
        **more,
    )


class AcpStream(Reading):
    """One attempt's conversation over the protocol: one session in one process."""

    retries_beside = True

    def __init__(
        self,
        request: LaunchRequest,
        *,
        has_system_file: bool = False,
        is_told_model: bool = False,
        stays: bool = False,
        meta: Record | None = None,
    ) -> None:
        """Expect one session.

        Args:
            request: What it is for.
            has_system_file: Persona and hint stand in a file that the agent reads by itself.
            is_told_model: Its arguments choose the model, so that its session need not.
            stays: It takes a session up in the folder alone in which that began.
            meta: What its session is asked for beside the protocol.
        """
        super().__init__(request)
        self._wanted_model = "" if is_told_model else request.choice.model or ""
        self._stays = stays and request.is_elsewhere
        self._more: Record = {"_meta": meta} if meta else {}
        self._servers: list[Record] = []
        self._models: tuple[str, ...] = ()
        self._is_open = False
        self._is_resumed = False
        self._takes_system = False
        self._has_system = has_system_file
        self._prompts = _FIRST_PROMPT - 1
        self._running: int | None = None
        self._queue: deque[str] = deque()
        # By the JSON of a call's id: 1 and "1" are different ids.
        self._waiting: dict[str, OpenPermission] = {}
        self._answered: dict[str, OpenPermission] = {}
        self._message: object = None
        self._calls: dict[str, Record] = {}
        self._shown: set[str] = set()
        self._is_broken = False
        self._is_cancelled = False
        self._told = ""
        self._updates: dict[str, Callable[[Record], list[AgentEvent]]] = {
            "agent_message_chunk": self._chunk,
            "agent_thought_chunk": lambda u: [Thought(content_text(u["content"]), is_delta=True)],
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "plan": self._plan,
            "usage_update": self._cost,
            "session_info_update": self._session_info,
        }

    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return the events of one message of the protocol."""
        if record.get("jsonrpc") != "2.0":
            return None
        method = record.get("method")
        if method is None:
            return self._response(record)
        if method == "session/update":
            update = record["params"]["update"]
            reader = self._updates.get(text_of(update.get("sessionUpdate")))
            # What comes before the session is open is the history of one that is taken up again.
            return [*self._heard(), *reader(update)] if reader and self._is_open else []
        if "id" not in record:
            is_claudes = method == "_claude/sdkMessage"
            return [retry_of_claude(record["params"]["message"])] if is_claudes else []
        if method == "session/request_permission":
            return self._permission(record["id"], record["params"])
        error = {"code": _NO_SUCH_METHOD, "message": "plait does not support this method"}
        return [self.reply(line_of({"jsonrpc": "2.0", "id": record["id"], "error": error}))]

    def answer(self, question: str, answer: str) -> bytes | None:
        """Allowed or denied; the protocol carries no words, so a reason is the next prompt."""
        waiting = self._waiting.pop(question, None)
        if waiting is None:
            return None
        self._answered[question] = waiting
        is_allowed, reason = verdict_of(answer)
        if reason:
            self._queue.append(f"The user denied this: {reason}")
        return waiting.answer(is_allowed=is_allowed)

    def steer(self, text: str) -> bytes | None:
        """The next prompt: now if it waits for one, else when this turn has ended."""
        if self._is_open and self._running is None:
            return self._prompt(text)
        self._queue.append(text)
        return b""

    def interrupt(self) -> bytes | None:
        """The protocol's cancel; what it asked for is answered as the protocol wants it."""
        if not self._is_open:
            return None
        cancel = {"method": "session/cancel", "params": {"sessionId": self.session}}
        answers = [waiting.cancelled() for waiting in self._waiting.values()]
        self._waiting.clear()
        return b"".join([line_of({"jsonrpc": "2.0", **cancel}), *answers])

    def sent(self, line: bytes) -> list[AgentEvent]:
        """Return the events of what was sent: prompts that were begun, answers that were given."""
        record = read_record(line) or {}
        if record.get("method") == "initialize":
            self._servers = at(record, "params", "_meta", "plait", "mcpServers") or []
        elif record.get("method") == "session/cancel":
            self._is_cancelled = True
        elif record.get("method") == "session/prompt":
            self._is_cancelled = False
            self._running = count_of(record.get("id"))
            self._prompts = max(self._prompts, self._running or 0)
            if self._running != _FIRST_PROMPT:
                self._told = content_text(at(record, "params", "prompt"))
        elif "method" not in record:
            name = json.dumps(record.get("id"))
            waiting = self._waiting.pop(name, None) or self._answered.pop(name, None)
            chosen = at(record, "result", "outcome", "optionId")
            if waiting is not None and waiting.tool and chosen not in waiting.allowing:
                return [ToolEnded(waiting.tool, "denied")]
        return []

    def _beside(self, text: str, stream: str) -> list[AgentEvent]:
        """Return the events of other words; some bring those of a turn when it is over."""
        events = super()._beside(text, stream)
        is_late = self._running is None
        return [event for event in events if not (is_late and isinstance(event, Retrying))]

    def _heard(self) -> list[AgentEvent]:
        """Words that were a prompt have reached it as soon as it works on that prompt."""
        text, self._told = self._told, ""
        return [Heard(text)] if text else []

    def _response(self, record: Record) -> list[AgentEvent]:
        identity = record.get("id")
        if (error := record.get("error")) is not None:
            return self._refused(identity, error)
        result = record.get("result") or {}
        if identity == _INITIALIZE:
            return [self.reply(self._session_call(result.get("agentCapabilities") or {}))]
        if identity in {_SESSION, _ANEW} and not self._is_open:
            return self._opened(result)
        if identity == _MODEL:
            return [self.reply(self._first_prompt())]
        if identity == self._running:
            return self._turn_ended(result)
        return []

    def _session_call(self, able: Record) -> bytes:
        """Open a session: a new one, or the one to be resumed in a way that it knows."""
        more = at(able, "sessionCapabilities") or {}
        self._takes_system = "systemPrompt" in more
        session = self.request.session
        if session is None or self._stays or not (way := self._way_back(able, more)):
            return self._new_session(_SESSION)
        self._is_resumed = True
        cwd = self.request.workspace
        place = {"sessionId": session, "cwd": cwd, "mcpServers": self._servers}
        return call(_SESSION, way, **place, **self._more)

    def _new_session(self, identity: int) -> bytes:
        place: dict[str, object] = {"cwd": self.request.workspace, "mcpServers": self._servers}
        system = system_text(self.request)
        if system and self._takes_system:
            self._has_system = True
            content = [{"type": "text", "text": system}]
            place["systemPrompt"] = {"mode": "append", "content": content}
        return call(identity, "session/new", **place, **self._more)

    def _way_back(self, able: Record, more: Record) -> str | None:
        if self.request.is_fork:
            return "session/fork" if "fork" in more else None
        if "resume" in more:
            return "session/resume"
        return "session/load" if able.get("loadSession") is True else None

    def _opened(self, result: Record) -> list[AgentEvent]:
        self._is_open = True
        taken_up = self.request.session if self._is_resumed else None
        events = self.start(text_of(result.get("sessionId")) or taken_up or "")
        said = self._model_call(result) if self._wanted_model else self._first_prompt()
        if said is None:
            error = f"it does not let plait choose a model, but {self._wanted_model!r} is wanted"
            return [*events, *self._end_turn(error)]
        return [*events, self.reply(said)]

    def _first_prompt(self) -> bytes:
        words = user_text if self._has_system else whole_text
        return self._prompt(words(self.request, is_resumed=self._is_resumed))

    def _model_call(self, result: Record) -> bytes | None:
        """Choose the model that is wanted; a session may take names beside those it offers."""
        for option in result.get("configOptions") or ():
            if at(option, "category") == "model":
                self._models = tuple(text_of(at(one, "value")) for one in option["options"])
                given = {"configId": option["id"], "value": self._wanted_model}
                return call(_MODEL, "session/set_config_option", sessionId=self.session, **given)
        return None

    def _prompt(self, text: str) -> bytes:
        self._prompts += 1
        self._running = self._prompts
        self.closing = None
        return call(
            self._prompts,
            "session/prompt",
            sessionId=self.session,
            prompt=[{"type": "text", "text": text}],
        )

    def _turn_ended(self, result: Record) -> list[AgentEvent]:
        reason = text_of(result.get("stopReason"))
        used = self._tokens(result)
        error = "" if reason in _WELL else _fault(reason)
        if error == INTERRUPTED and not self._is_cancelled:
            error = _DENIED  # codex ends its turn where what it asked for is denied
        text = self.last_message
        # Two agents report a refusal of their model as a good turn that says what was wrong.
        if not error and not used and (self._is_broken or text.startswith("Error: ")):
            error = plain_words(text) or "the agent ended its turn without doing anything"
        return [*self._heard(), *used, *self._end_turn(error)]

    def _refused(self, identity: object, error: object) -> list[AgentEvent]:
        if identity not in {_MODEL, _INITIALIZE, _SESSION, _ANEW, self._running}:
            return []
        if identity == _MODEL:
            return self._end_turn(unknown_model(self._wanted_model, self._models))
        if identity == _SESSION and self._is_resumed and at(error, "code") != _LOGIN_WANTED:
            self._is_resumed, self.session = False, None
            note = "its session could not be resumed: a new one starts"
            return [Progressed(None, note), self.reply(self._new_session(_ANEW))]
        details = at(error, "data", "details")
        said = ": ".join(
            filter(None, (plain_words(text_of(at(error, "message"))), text_of(details)))
        )
        needs_login = at(error, "code") == _LOGIN_WANTED
        self._queue.clear()
        return self._end_turn(said or "the agent refused the call", needs_login=needs_login)

    def _end_turn(self, error: str, *, needs_login: bool = False) -> list[AgentEvent]:
        events: list[AgentEvent] = [Withdrawn(name) for name in self._waiting]
        self._waiting.clear()
        self._running, self._message, self._is_broken = None, None, False
        if self._queue:
            return [*events, self.reply(self._prompt(self._queue.popleft()))]
        is_refused = needs_login or bool(UNAUTHORIZED.search(error))
        self.closing = Closing(error=error, needs_login=is_refused)
        if LIMIT_REACHED.search(error):
            events.append(self.limited(words=error))
        return [*events, TurnEnded(not error, self.last_message, error == INTERRUPTED)]

    def _tokens(self, result: Record) -> list[AgentEvent]:
        """Tokens of this turn, added to those of the turns before it."""
        usage, quota = result.get("usage"), at(result, "_meta", "quota", "token_count")
        cached = count_of(at(usage, "cachedReadTokens")) or 0
        told_in = count_of(at(usage, "inputTokens"))
        if told_in is None:
            told_in = count_of(at(quota, "input_tokens"))
        told_out = count_of(at(usage, "outputTokens"))
        if told_out is None:
            told_out = count_of(at(quota, "output_tokens"))
        if told_in is None and told_out is None:
            return []
        known = self.usage
        self.usage = replace(
            known,
            input_tokens=(known.input_tokens or 0) + (told_in or 0) + cached,
            output_tokens=(known.output_tokens or 0) + (told_out or 0),
            cached_tokens=(known.cached_tokens or 0) + cached,
        )
        return [self.usage]

    # ------------------------------------------------------------------ what it tells

    def _chunk(self, update: Record) -> list[AgentEvent]:
        """A piece of a message; another id, a tool or a note of the client's own begins another."""
        message, text = update.get("messageId") or "message", content_text(update["content"])
        is_delta = message == self._message and not _NOTE.match(text)
        self._message = message
        return [self.say(text, is_delta=is_delta)]

    def _tool(self, update: Record) -> list[AgentEvent]:
        self._message = None
        identity, state = text_of(update["toolCallId"]), text_of(update.get("status"))
        known = self._calls.setdefault(identity, {})
        known.update({key: value for key, value in update.items() if value})
        events: list[AgentEvent] = []
        # Some tell a tool's name first and what it is about afterwards: shown once, when known.
        is_vague = "rawInput" not in known and state in {"", "pending"}
        if identity not in self._shown and not is_vague:
            self._shown.add(identity)
            events.append(_called(identity, known))
        if state in {"completed", "failed"}:
            output = content_text(update.get("content")) or content_text(update.get("rawOutput"))
            ended = "done" if state == "completed" else "failed"
            events.append(ToolEnded(identity, ended, tail_of(output)))
        return events

    def _plan(self, update: Record) -> list[AgentEvent]:
        entries = [entry for entry in update["entries"] if isinstance(entry, dict)]
        done = sum(entry.get("status") == "completed" for entry in entries)
        now = [text_of(e.get("content")) for e in entries if e.get("status") == "in_progress"]
        return [Progressed(done / len(entries), now[0] if now else "")] if entries else []

    def _cost(self, update: Record) -> list[AgentEvent]:
        usd, context = number_of(at(update, "cost", "amount")), count_of(update.get("used"))
        if usd is None and context is None:
            return []
        window = count_of(update.get("size"))
        self.usage = replace(self.usage, context=context, window=window or self.usage.window)
        return [self.used(usd=usd)]

    def _session_info(self, update: Record) -> list[AgentEvent]:
        codex = at(update, "_meta", "codex")
        if at(codex, "threadStatus", "type") == "systemError":
            self._is_broken = True
        said, why = (text_of(at(codex, "error", key)) for key in ("message", "additionalDetails"))
        retry = retry_of_codex(f"{said} ({why})" if why else said, self._tries)
        self._tries = retry.attempt if retry else self._tries
        return [retry] if retry else []

    # ------------------------------------------------------------------ what it asks

    def _permission(self, identity: object, params: Record) -> list[AgentEvent]:
        asked = params["toolCall"]
        known = text_of(asked.get("toolCallId"))
        about = self._calls.setdefault(known, {})
        about.update({key: value for key, value in asked.items() if value})
        # Some tell of a tool by this question alone until it has ended.
        begun = [] if not known or known in self._shown else [_called(known, about)]
        self._shown.add(known)
        tool = text_of(about.get("name")) or text_of(about.get("kind")) or "tool"
        given, named = about.get("rawInput"), text_of(about.get("title"))
        title, detail = title_of(given) or named, subject_of(given) or named
        options = {
            text_of(option.get("kind")): text_of(option.get("optionId"))
            for option in reversed(params["options"])
        }
        waiting, name = OpenPermission(identity, options, known), json.dumps(identity)
        commands = commands_of(given)
        if (decision := decide(self.request, tool, *(commands or [detail]))) is not None:
            allowed, rule = decision
            answer: ProtocolReply = self.reply(waiting.answer(is_allowed=allowed))
            ended = [] if allowed or not known else [ToolEnded(known, "denied")]
            return [*begun, Decided(name, tool, title, allowed, rule), *ended, answer]
        self._waiting[name] = waiting
        return [
            *begun,
            Asked(
                id=name,
                text=named or f"{tool}: {title}",
                choices=("allow", "deny"),
                is_permission=True,
                tool=tool,
                detail=detail,
                command="\n".join(commands),
                given=input_of(about.get("rawInput")),
                needs_human=len(commands) > 1,
            ),
        ]


def _called(identity: str, update: Record) -> ToolCalled:
    given = update.get("rawInput")
    places = [at(place, "path") for place in update.get("locations") or ()]
    paths = tuple(dict.fromkeys(p for p in (*places, *paths_of(given)) if isinstance(p, str)))
    name = text_of(update.get("name")) or text_of(update.get("kind")) or "tool"
    # Some call a command by what it is for, or all of them by one word.
    first, second = title_of(given), text_of(update.get("title"))
    title = (first or second) if update.get("kind") == "execute" else (second or first)
    return ToolCalled(identity, name, title, paths, edit_of(given))


def _fault(reason: str) -> str:
    if reason == "cancelled":
        return INTERRUPTED
    return f"the agent stopped: {reason.replace('_', ' ') or 'it did not say why'}"


ABLE_OVER_ACP = Capabilities(
    permission=True,
    steer=Steering.AFTER_TURN,
    interrupt=True,
    resume=True,
    resume_elsewhere=True,
    usage=True,
    session_id=SessionId.EARLY,
    two_way=True,
)
"""The capabilities that the protocol gives."""


@dataclass(frozen=True, kw_only=True)
class AcpAdapter:
    """An agent that speaks the protocol; without an argv of its own it is named by the manifest.

    Attributes:
        table: The agent's table, for what does not depend on how it is driven.
        model: Arguments that choose the model; `{model}` stands for it.
        env: What its environment has beside what the table says.
        login_name: What tells by what it logs in.
        wants_login: What tells how to log in, where nothing by which it could was found.
        base_url: What tells whom it asks, where that is a provider of the user's own.
        settings: What lies in the worker's HOME where no table says it.
        traces: Those of its login, likewise.
        meta: What its session is asked for beside the protocol.
    """

    name: str = "acp"
    argv: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    table: str = ""
    env: Callable[[LaunchRequest], Mapping[str, str]] = lambda _: {}
    settings: Callable[[LaunchRequest], SettingsCopy] | None = None
    login_name: Callable[[LaunchRequest], str] = lambda _: ""
    wants_login: Callable[[LaunchRequest], str] = lambda _: ""
    base_url: Callable[[LaunchRequest], BaseUrl | None] = lambda _: None
    traces: LoginTraces = NO_VENDOR
    meta: Record | None = None
    capabilities: Capabilities = ABLE_OVER_ACP
    install_hint: str = "any agent that speaks the Agent Client Protocol: set `argv`"

    @property
    def login(self) -> LoginTraces:
        """Return the traces that its table has, else its own."""
        return shipped_table(self.table).traces if self.table else self.traces

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """One process with one session; its input stays open until the last turn has ended."""
        table = shipped_table(self.table) if self.table else None
        if not (argv := request.choice.argv or self._argv(request)):
            raise AgentError(
                f"the agent {request.choice.name!r} has no argv",
                hint="Name the program that speaks it: `argv: [my-agent, --acp]`.",
            )
        home = TableHome(table, request) if table else None
        copied = home.copy if home else (self.settings or copy_for_acp)(request)
        return AgentLaunch(
            argv=(*argv, *more_arguments(request)),
            env={
                **(picked(request, table.variables) if table else {}),
                **(home.env if home else {}),
                **(table.env if table else {}),
                **self.env(request),
                **request.choice.env,
            },
            files=copied.files,
            # A known client reads those of its own settings: told here, too, they would run twice.
            first_input=initialize(() if self.argv else servers_for_session(request)),
            keeps_stdin=True,
            hosts=table.hosts if table else (),
            reads=(*folders_of(request, argv[0]), *copied.reads),
            settings=copied.listed,
            login=self.login_name(request)
            or (home and home.login)
            or (login_of(table, request) if table else ""),
            wants_login=self.wants_login(request),
            base_url=home.base_url if home else self.base_url(request),
        )

    def parser(self, request: LaunchRequest) -> AcpStream:
        """The client's side of the protocol."""
        return AcpStream(
            request,
            has_system_file=self.capabilities.hint is HintChannel.CONFIG_FILE,
            is_told_model=bool(self.model),
            stays=not self.capabilities.resume_elsewhere,
            meta=self.meta,
        )

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        driven = "Agent Client Protocol 1, both ways"
        if not self.argv:
            return FoundAgent(name=self.name, driven=driven, install_hint=self.install_hint)
        table = shipped_table(self.table) if self.table else None
        settings = self.settings or (table and (lambda request: TableHome(table, request).copy))
        search = ProgramSearch(program=self.argv[0], driven=driven, settings=settings or None)
        return await find_agent(self, search, environment)

    def _argv(self, request: LaunchRequest) -> tuple[str, ...]:
        if not self.argv:
            return ()
        model = request.choice.model
        chosen = tuple(word.replace("{model}", model) for word in self.model) if model else ()
        return (program_of(request, self.argv[0]), *self.argv[1:], *chosen)
