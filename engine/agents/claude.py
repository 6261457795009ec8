"""Drive Claude Code: `stream-json` both ways, so that it asks, is steered and is interrupted.

The last record lies twice: `subtype` may be `success` beside `is_error: true`, and a run that was
interrupted exits with 0. What counts is `is_error`, with the exit code.
"""

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.agents.agent_events import (
    AgentEvent,
    Asked,
    Decided,
    Heard,
    RateLimited,
    SubAgents,
    Thought,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    Withdrawn,
)
from engine.agents.contract import (
    ABLE_TO_ALL,
    AgentLaunch,
    Capabilities,
    FoundAgent,
    LaunchRequest,
    LoginTraces,
)
from engine.agents.finding import ProgramSearch, find_agent
from engine.agents.options import flag, folders_of, more_arguments, program_of
from engine.agents.permitting import command_in, decide, is_allowed_unasked, verdict_of
from engine.agents.prompting import system_text, user_text
from engine.agents.reading import INTERRUPTED, Closing, Reading
from engine.agents.records import (
    Record,
    at,
    commands_of,
    content_text,
    count_of,
    edit_of,
    line_of,
    number_of,
    paths_of,
    read_record,
    subject_of,
    tail_of,
    text_of,
    title_of,
)
from engine.agents.settings.claude import (
    CLOUDS_OF_CLAUDE,
    CREDENTIALS_OF_CLAUDE,
    LOGINS_OF_CLAUDE,
    base_url_of_claude,
    environment_of_claude,
    login_of_claude,
    settings_of_claude,
    wanted_login_of_claude,
)
from engine.agents.waiting import retry_of_claude
from engine.values import dataclass

_QUESTION_TOOL = "AskUserQuestion"
_SUB_AGENT_TOOLS = {"Task", "Agent"}
_LIMIT_REACHED = re.compile(r"limit reached|(?:usage|session|weekly) limit", re.IGNORECASE)
_RESETS = re.compile(r"limit reached\|(\d{10})")
_UNAUTHORIZED = {401, 403}
_TOO_MANY = 429
_INIT = b'{"type":"system","subtype":"init"'
_FIRST_UNREAD = b',"slash_commands":'
_TAKEN_UP = {"started", "completed"}
LOGIN_OF_CLAUDE = LoginTraces(
    variables=(*LOGINS_OF_CLAUDE, *CLOUDS_OF_CLAUDE), files=(f".claude/{CREDENTIALS_OF_CLAUDE}",)
)
# Not `--dangerously-skip-permissions`: it is refused to root, which containers often run as.
_UNASKED = (
    *("--permission-mode", "acceptEdits", "--allowedTools"),
    "Bash,Read,Edit,Write,NotebookEdit,Glob,Grep,Task,Agent,WebFetch,WebSearch,Skill",
)


def user_message(text: str, identity: str = "") -> bytes:
    """A prompt, or words said in between, as one line; by its identity it tells how they fare."""
    content = [{"type": "text", "text": text}]
    message = {"role": "user", "content": content}
    said = {"type": "user", "message": message, "parent_tool_use_id": None}
    return line_of({**said, "uuid": identity} if identity else said)


def control_request(identity: str, subtype: str) -> bytes:
    """A request of the host's to the agent, as one line."""
    request = {"subtype": subtype}
    return line_of({"type": "control_request", "request_id": identity, "request": request})


def _control_response(identity: str, response: dict[str, Any]) -> bytes:
    body = {"subtype": "success", "request_id": identity, "response": response}
    return line_of({"type": "control_response", "response": body})


@dataclass(frozen=True)
class _OpenQuestion:
    """A question of the agent's that has not been answered."""

    tool: str
    given: dict[str, Any]


class ClaudeStream(Reading):
    """One attempt's stream of Claude Code."""

    counts_session = True

    def __init__(self, request: LaunchRequest) -> None:
        super().__init__(request)
        self._waiting: dict[str, _OpenQuestion] = {}
        self._counted = ""
        self._sub_agents = 0
        self._interrupts = 0
        self._refusal = ""
        self._told: dict[str, str] = {}
        self._tells_of_words = False
        self._readers: dict[str, Callable[[Record], list[AgentEvent] | None]] = {
            "system": self._system,
            "assistant": self._assistant,
            "user": self._user,
            "result": self._result,
            "control_request": self._control_request,
            "control_response": lambda _: [],
            "control_cancel_request": lambda r: self._withdraw(text_of(r.get("request_id"))),
            "command_lifecycle": self._words_of_ours,
            "rate_limit_event": self._rate_limit,
            "keep_alive": lambda _: [],
        }

    def read(self, line: bytes) -> Record | None:
        """The record; of the one that begins each turn only its first part, which tells enough.

        Its rest, lists of all that this agent knows, is most of what a short turn writes.
        """
        if line.startswith(_INIT) and line.endswith(b"}"):
            end = line.find(_FIRST_UNREAD)
            # A key of that name in an inner object leaves braces open, and then this is no JSON.
            head = read_record(line[:end] + b"}") if end > 0 else None
            if head is not None and "session_id" in head and "model" in head:
                return head
        return read_record(line)

    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return the events of one record."""
        reader = self._readers.get(record.get("type", ""))
        return None if reader is None else reader(record)

    # ------------------------------------------------------------------ talking to it

    def answer(self, question: str, answer: str) -> bytes | None:
        """`allow`, `deny`, or words: to a permission they are a refusal with its reason.

        `allow: COMMAND` allows that command in place of the one it asked for.
        """
        waiting = self._waiting.pop(question, None)
        if waiting is None:
            return None
        if waiting.tool == _QUESTION_TOOL:
            return _control_response(question, _chosen(waiting.given, answer))
        return _control_response(question, _verdict(waiting.given, answer))

    def steer(self, text: str) -> bytes | None:
        """Another message of the user's; it is heard at the next chance within the turn."""
        self.closing = None
        return user_message(text, str(uuid.uuid4()))

    def interrupt(self) -> bytes:
        """The control request that breaks the turn off."""
        self._interrupts += 1
        return control_request(f"interrupt-{self._interrupts}", "interrupt")

    def sent(self, line: bytes) -> list[AgentEvent]:
        """An answer that was given is not waited for any more; a message begins another turn."""
        record = read_record(line)
        self._waiting.pop(text_of(at(record, "response", "request_id")), None)
        if at(record, "type") == "user":
            self.closing = None
            if identity := text_of(at(record, "uuid")):
                self._told[identity] = content_text(at(record, "message", "content"))
        return []

    # ------------------------------------------------------------------ one record each

    def _words_of_ours(self, record: Record) -> list[AgentEvent]:
        """It queues what is said to it, and says when it has taken it up."""
        self._tells_of_words = True
        if record.get("state") not in _TAKEN_UP:
            return []
        text = self._told.pop(text_of(record.get("command_uuid")), None)
        return [] if text is None else [Heard(text)]

    def _system(self, record: Record) -> list[AgentEvent] | None:
        match record.get("subtype"):
            case "init":
                return self.start(text_of(record["session_id"]), text_of(record.get("model")))
            case "api_retry":
                return self._tries_again(record)
            case _:
                return []  # what it tells of its own doings: tasks, hooks, status

    def _tries_again(self, record: Record) -> list[AgentEvent]:
        """Tell of it; a refused login stays refused, so its third try is not waited for."""
        retry, status = retry_of_claude(record), record.get("error_status")
        events: list[AgentEvent] = [retry]
        if status in _UNAUTHORIZED and retry.attempt > 1 and not self._refusal:
            self._refusal = f"its login was refused ({status})"
            events.append(self.reply(self.interrupt()))
        return events

    def _assistant(self, record: Record) -> list[AgentEvent]:
        message = record["message"]
        is_inner = record.get("parent_tool_use_id") is not None
        events: list[AgentEvent] = []
        for block in message["content"]:
            match block.get("type"):
                case "text":
                    text = text_of(block["text"])
                    events.append(Thought(text) if is_inner else self.say(text))
                case "thinking":
                    events.append(Thought(text_of(block.get("thinking"))))
                case "tool_use":
                    events += self._tool(block)
                case _:
                    pass
        events += self._count(message, is_inner=is_inner)
        return events

    def _tool(self, block: Record) -> list[AgentEvent]:
        name, given = text_of(block["name"]), block.get("input")
        about = title_of(given), paths_of(given), edit_of(given)
        called = ToolCalled(text_of(block["id"]), name, *about)
        if name not in _SUB_AGENT_TOOLS:
            return [called]
        self._sub_agents += 1
        return [called, SubAgents(self._sub_agents)]

    def _count(self, message: Record, *, is_inner: bool) -> list[AgentEvent]:
        """Count a request once, though each block of its answer comes as a record of its own.

        What a sub-agent asks is no part of the agent's own context.
        """
        identity, usage = text_of(message.get("id")), message.get("usage")
        if identity == self._counted or not isinstance(usage, dict):
            return []
        self._counted = identity
        look, known = usage.get, self.usage
        cached = count_of(look("cache_read_input_tokens")) or 0
        fresh = count_of(look("input_tokens")) or 0
        fresh += count_of(look("cache_creation_input_tokens")) or 0
        # The totals so far stand in the last result; what came out is told only there.
        self.usage = replace(
            known,
            input_tokens=(known.input_tokens or 0) + fresh + cached,
            cached_tokens=(known.cached_tokens or 0) + cached,
            context=known.context if is_inner else fresh + cached,
            turns=(known.turns or 0) + (not is_inner),
        )
        return [self.usage]

    def _user(self, record: Record) -> list[AgentEvent]:
        content = at(record, "message", "content")
        if not isinstance(content, list):
            return []
        metas = record.get("tool_result_meta") or ()
        refused = [m.get("id") for m in metas if _is_rejected(m)]
        return [
            ToolEnded(
                text_of(block["tool_use_id"]),
                _state(block, is_refused=block["tool_use_id"] in refused),
                tail_of(content_text(block.get("content"))),
            )
            for block in content
            if block.get("type") == "tool_result"
        ]

    def _result(self, record: Record) -> list[AgentEvent]:
        events: list[AgentEvent] = [*map(Withdrawn, self._waiting), self._totals(record)]
        self._waiting.clear()
        spawned = count_of(at(record, "subagent_stats", "spawned"))
        if spawned:
            self._sub_agents = spawned
            events.append(SubAgents(spawned))
        text = text_of(record.get("result"))
        error = _error(record, text) if record.get("is_error") is not False else ""
        error = (error and self._refusal) or error
        status = count_of(record.get("api_error_status"))
        needs_login = status in _UNAUTHORIZED or bool(self._refusal)
        self.closing = Closing(error=error, text=text, needs_login=needs_login)
        if limit := self._limit_of(error, status):
            events.append(limit)
        if not count_of(record.get("queued_turn_count")):
            events.append(TurnEnded(not error, text, error == INTERRUPTED))
            if not self._tells_of_words and not error:  # an older one: its queue is empty
                events += map(Heard, self._told.values())
                self._told.clear()
        return events

    def _totals(self, record: Record) -> AgentEvent:
        """Totals of the session: `modelUsage` counts all models and turns, `usage` does not."""
        models = [m for m in (at(record, "modelUsage") or {}).values() if isinstance(m, dict)]
        usd = number_of(record.get("total_cost_usd"))
        if not models:
            return self.used(usd=usd)
        fresh = cached = made = 0
        for model in models:
            cached += count_of(model.get("cacheReadInputTokens")) or 0
            fresh += count_of(model.get("inputTokens")) or 0
            fresh += count_of(model.get("cacheCreationInputTokens")) or 0
            made += count_of(model.get("outputTokens")) or 0
        windows = [count_of(model.get("contextWindow")) or 0 for model in models]
        self.usage = replace(self.usage, window=max(windows) or self.usage.window)
        return self.used(
            input_tokens=fresh + cached, output_tokens=made, cached_tokens=cached, usd=usd
        )

    def _rate_limit(self, record: Record) -> list[AgentEvent]:
        about = record["rate_limit_info"]
        if about.get("status") != "rejected":
            return []
        return [self.limited(until=number_of(about.get("resetsAt")))]

    def _limit_of(self, error: str, status: int | None) -> RateLimited | None:
        is_reached = status == _TOO_MANY or (error and _LIMIT_REACHED.search(error))
        if self.limit is not None or not is_reached:
            return None
        resets = _RESETS.search(error)
        return self.limited(until=float(resets[1]) if resets else None)

    # ------------------------------------------------------------------ what it asks

    def _control_request(self, record: Record) -> list[AgentEvent]:
        identity, request = text_of(record["request_id"]), record["request"]
        if request.get("subtype") != "can_use_tool":
            body = {
                "subtype": "error",
                "request_id": identity,
                "error": "plait does not support this request",
            }
            return [self.reply(line_of({"type": "control_response", "response": body}))]
        tool, given = text_of(request["tool_name"]), request.get("input") or {}
        if tool == _QUESTION_TOOL:
            return self._question(identity, given)
        about = text_of(request.get("description"))
        title, detail = title_of(given) or about, subject_of(given) or about
        commands = commands_of(given)
        if (decision := decide(self.request, tool, *(commands or [detail]))) is not None:
            allowed, rule = decision
            answer = "allow" if allowed else f"A rule denies this: {rule}"
            return [
                Decided(identity, tool, title, allowed, rule),
                self.reply(_control_response(identity, _verdict(given, answer))),
            ]
        self._waiting[identity] = _OpenQuestion(tool, given)
        return [
            Asked(
                id=identity,
                text=f"{tool}: {title}" if title else tool,
                choices=("allow", "deny"),
                is_permission=True,
                tool=tool,
                detail=detail,
                command="\n".join(commands),
                is_editable=_is_editable(given),
                needs_human=len(commands) > 1,
            )
        ]

    def _question(self, identity: str, given: Record) -> list[AgentEvent]:
        questions = [q for q in given.get("questions") or () if isinstance(q, dict)]
        self._waiting[identity] = _OpenQuestion(_QUESTION_TOOL, given)
        choices = tuple(
            text_of(option.get("label")) for q in questions[:1] for option in q.get("options") or ()
        )
        text = "\n".join(text_of(q.get("question")) for q in questions)
        is_one = len(questions) == 1
        return [Asked(id=identity, text=text, choices=choices if is_one else ())]

    def _withdraw(self, identity: str) -> list[AgentEvent]:
        return [Withdrawn(identity)] if self._waiting.pop(identity, None) else []


def _is_rejected(meta: Record) -> bool:
    return bool(at(meta, "permission_decision", "decision") == "reject")


def _state(block: Record, *, is_refused: bool) -> str:
    if is_refused:
        return "denied"
    return "failed" if block.get("is_error") is True else "done"


def _is_editable(given: Record) -> bool:
    """Return True where it runs one command, which another can replace."""
    return commands_of(given) == (text_of(given.get("command")).strip(),)


def _verdict(given: Record, answer: str) -> dict[str, Any]:
    is_allowed, reason = verdict_of(answer)
    if is_allowed:
        return {"behavior": "allow", "updatedInput": given}
    if (command := command_in(answer)) and _is_editable(given):
        return {"behavior": "allow", "updatedInput": {**given, "command": command}}
    return {"behavior": "deny", "message": reason or "The user denied this."}


def _chosen(given: Record, answer: str) -> dict[str, Any]:
    """The answers beside their questions; of several, each has a line, and the last goes on."""
    questions = [text_of(q.get("question")) for q in given.get("questions") or ()]
    lines = answer.splitlines() or [""]
    answers = {
        question: answer if len(questions) == 1 else lines[min(number, len(lines) - 1)]
        for number, question in enumerate(questions)
    }
    return {"behavior": "allow", "updatedInput": {**given, "answers": answers}}


def _error(record: Record, text: str) -> str:
    told = text or "; ".join(filter(None, map(text_of, record.get("errors") or ())))
    subtype = text_of(record.get("subtype"))
    reason = text_of(record.get("terminal_reason"))
    if reason.startswith("aborted"):
        return INTERRUPTED
    return told or f"the agent ended with {subtype or 'an error'}"


@dataclass(frozen=True, kw_only=True)
class ClaudeAdapter:
    """Claude Code, by its own program `claude`."""

    name: str = "claude"
    install_hint: str = "npm install -g @anthropic-ai/claude-code@latest"
    capabilities: Capabilities = ABLE_TO_ALL
    login: LoginTraces = LOGIN_OF_CLAUDE

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """One process that takes prompts from its input until that is closed."""
        words = user_text(request, is_resumed=request.session is not None)
        program = program_of(request, "claude")
        settings = settings_of_claude(request)
        return AgentLaunch(
            argv=(
                *(program, "-p", "--verbose"),
                *("--input-format", "stream-json", "--output-format", "stream-json"),
                *("--permission-prompt-tool", "stdio"),
                *(_UNASKED if is_allowed_unasked(request) else ()),
                *flag("--model", request.choice.model),
                *flag("--append-system-prompt", system_text(request)),
                *_budget(request),
                *flag("--resume", request.session),
                *(("--fork-session",) if request.session and request.is_fork else ()),
                *more_arguments(request),
            ),
            env={**environment_of_claude(request), **request.choice.env},
            files=settings.files,
            first_input=control_request("initialize", "initialize") + user_message(words),
            keeps_stdin=True,
            hosts=("api.anthropic.com",),
            reads=(*folders_of(request, program), *settings.reads),
            settings=settings.listed,
            login=login_of_claude(request),
            wants_login=wanted_login_of_claude(request),
            base_url=base_url_of_claude(request),
        )

    def parser(self, request: LaunchRequest) -> ClaudeStream:
        """A parser for its `stream-json`."""
        return ClaudeStream(request)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        search = ProgramSearch(
            program="claude",
            driven="stream-json, both ways",
            settings=settings_of_claude,
        )
        return await find_agent(self, search, environment)


def _budget(request: LaunchRequest) -> tuple[str, ...]:
    """It tells what it has spent when its turn is over, so it has to look itself meanwhile."""
    return () if request.budget_usd is None else ("--max-budget-usd", f"{request.budget_usd:f}")
