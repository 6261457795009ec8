"""Drives an agent by its table, and reads the JSON lines it writes by the same table.

Arguments have their places filled, files lie in the worker's HOME.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.agents.agent_events import (
    AgentEvent,
    Retrying,
    Thought,
    ToolCalled,
    ToolEnded,
)
from engine.agents.command import as_argument
from engine.agents.contract import (
    NO_VENDOR,
    AgentLaunch,
    Capabilities,
    FoundAgent,
    LaunchRequest,
    LoginTraces,
    Steering,
)
from engine.agents.finding import ProgramSearch, find_agent
from engine.agents.options import folders_of, more_arguments, picked, program_of
from engine.agents.permitting import is_allowed_unasked, refuse_asking
from engine.agents.prompting import system_text, user_text, whole_text
from engine.agents.reading import (
    LIMIT_REACHED,
    UNAUTHORIZED,
    Closing,
    Reading,
)
from engine.agents.records import (
    Record,
    content_text,
    count_of,
    edit_of,
    number_of,
    paths_of,
    tail_of,
    text_of,
    title_of,
)
from engine.agents.settings.tables import TableHome, fill
from engine.agents.tables import (
    AgentTable,
    ReadyRule,
    read_table,
    table_file,
)
from engine.agents.waiting import status_in, wait_told
from engine.errors import AgentError
from engine.values import dataclass

_MILLISECONDS = 1000
_BAD = {"error", "failed", "failure", "cancelled", "aborted", "rejected"}


class TableStream(Reading):
    """One attempt's stream of an agent that a table describes."""

    retries_beside = True

    def __init__(self, request: LaunchRequest, table: AgentTable) -> None:
        super().__init__(request)
        self._rules = table.ready
        self._trouble = ""
        self._is_fresh = True  # a piece of a message begins a new one here, as after every tool
        self._tellers: dict[str, Callable[[Callable[[str], Any]], list[AgentEvent]]] = {
            "started": self._started,
            "said": self._says,
            "thought": lambda get: [Thought(text)] if (text := content_text(get("text"))) else [],
            "called": self._called,
            "ended": self._ended,
            "used": self._used,
            "adds": self._adds,
            "retrying": self._retrying,
            "trouble": self._troubled,
            "closing": self._closed,
            "nothing": lambda _: [],
        }

    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return the events of one record by the rules for its type."""
        rules = self._rules.get(text_of(record.get("type")))
        if rules is None:
            return None
        events: list[AgentEvent] = []
        for rule in rules:
            for item in _items(rule, record):
                if rule.holds(record, item):
                    get = functools.partial(rule.read, record=record, item=item)
                    events += self._tellers[rule.tell](get)
        return events

    # ------------------------------------------------------------------ one teller each

    def _started(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        self._is_fresh = True
        return self.start(text_of(get("session")), text_of(get("model")))

    def _says(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        text = content_text(get("text"))
        if not text:
            return []
        is_delta, self._is_fresh = bool(get("delta")) and not self._is_fresh, False
        return [self.say(text, is_delta=is_delta)]

    def _called(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        self._is_fresh = True
        name, given = text_of(get("name")), get("input")
        about = title_of(given), paths_of(given), edit_of(given)
        return [ToolCalled(text_of(get("id")) or name, name, *about)]

    def _ended(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        failed, status = get("failed"), text_of(get("status"))
        is_bad = failed is True or bool(count_of(failed)) or status in _BAD
        output = tail_of(content_text(get("output")))
        return [ToolEnded(text_of(get("id")), "failed" if is_bad else "done", output)]

    def _used(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        return [
            self.used(
                input_tokens=get("input_tokens"),
                output_tokens=get("output_tokens"),
                cached_tokens=get("cached_tokens"),
                usd=get("usd"),
            )
        ]

    def _adds(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        known = self.usage
        self.usage = replace(
            known,
            context=get("input_tokens") or known.context,
            turns=(known.turns or 0) + 1,
        )
        return [
            self.used(
                input_tokens=(known.input_tokens or 0) + (get("input_tokens") or 0),
                output_tokens=(known.output_tokens or 0) + (get("output_tokens") or 0),
                cached_tokens=(known.cached_tokens or 0) + (get("cached_tokens") or 0),
                usd=(known.usd or 0.0) + (get("usd") or 0.0),
            )
        ]

    def _retrying(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        delay_ms = number_of(get("delay_ms"))
        delay_s = number_of(get("delay_s")) if delay_ms is None else delay_ms / _MILLISECONDS
        said = text_of(get("status"))
        delay_s = wait_told(said) if delay_s is None else delay_s
        return [Retrying(count_of(get("attempt")) or 1, delay_s, status_in(said))]

    def _troubled(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        self._trouble = content_text(get("error")) or self._trouble
        return [Thought(self._trouble)]

    def _closed(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        text = content_text(get("text"))
        error = self._fault(get, text)
        self.closing = Closing(
            error=error,
            text=text if not error else "",
            needs_login=bool(UNAUTHORIZED.search(error)),
        )
        events: list[AgentEvent] = []
        if session := text_of(get("session")):
            events += self.start(session)
        if LIMIT_REACHED.search(error):
            events.append(self.limited(words=error))
        return events

    def _fault(self, get: Callable[[str], Any], text: str) -> str:
        """Return why it ended badly, if it did: by a flag or exit code, by a word, by an error."""
        error = content_text(get("error"))
        if get("is_error") or text_of(get("status")) in _BAD or error:
            return error or self._trouble or text or "the agent reported an error"
        return ""


def _items(rule: ReadyRule, record: Record) -> list[Any]:
    if rule.each is None:
        return [None]
    found = rule.each(record, None)
    return found if isinstance(found, list) else []


@dataclass(frozen=True, kw_only=True)
class TableAdapter:
    """An agent whose stream is JSON lines and whose ways are written in a table."""

    table: AgentTable

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.table.name

    @property
    def install_hint(self) -> str:
        """One line that installs it."""
        return self.table.install

    @property
    def login(self) -> LoginTraces:
        """The traces of its login."""
        return self.table.traces

    @property
    def capabilities(self) -> Capabilities:
        """The abilities that the table claims."""
        table = self.table
        return Capabilities(
            steer=Steering.BY_RESUME if table.resume else Steering.NO,
            resume=bool(table.resume),
            resume_elsewhere=bool(table.elsewhere),
            fork=bool(table.fork),
            hint=table.hint,
            usage=table.usage,
            cost=table.cost,
            session_id=table.session_id,
        )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """One prompt, as an argument; its input is closed."""
        table = self.table
        refuse_asking(request, self.name, is_careful=not table.careless)
        taken_up = _way_back(table, request)
        is_resumed = bool(taken_up)
        home = TableHome(table, request)
        system = system_text(request)
        has_channel = bool(table.system) or any("{system}" in file.text for file in table.files)
        is_whole = not has_channel and not is_resumed
        values = {
            "prompt": whole_text(request)
            if is_whole
            else user_text(request, is_resumed=is_resumed),
            "system": system,
            "model": request.choice.model or "",
            "session": request.session or "",
            "home": request.home,
        }
        return AgentLaunch(
            argv=_filled(self._argv(request, values, taken_up), values),
            env={**picked(request, table.variables), **home.env, **table.env, **request.choice.env},
            files=home.copy.files,
            settings=home.copy.listed,
            hosts=table.hosts,
            login=home.login or login_of(table, request),
            base_url=home.base_url,
            reads=(*folders_of(request, program_of(request, table.program)), *home.copy.reads),
        )

    def parser(self, request: LaunchRequest) -> TableStream:
        """A parser that reads by the table."""
        return TableStream(request, self.table)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        table = self.table
        search = ProgramSearch(
            program=table.program,
            driven=table.driven,
            settings=lambda request: TableHome(table, request).copy,
        )
        return await find_agent(self, search, environment)

    def _argv(
        self, request: LaunchRequest, values: Mapping[str, str], taken_up: tuple[str, ...]
    ) -> tuple[str, ...]:
        table = self.table
        argv = (
            program_of(request, table.program),
            *table.arguments,
            *(table.contained if is_allowed_unasked(request) else table.unasked),
            *(table.model if values["model"] else ()),
            *(table.system if values["system"] else ()),
            *taken_up,
            *more_arguments(request),
        )
        return as_argument(argv, values["prompt"])


@dataclass(frozen=True, kw_only=True)
class JsonLinesAdapter:
    """Any agent that a table of the user's describes: the option `table` is its file."""

    name: str = "jsonl"
    install_hint: str = "any agent that writes JSON lines: set `table`"
    capabilities: Capabilities = Capabilities()
    login: LoginTraces = NO_VENDOR

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """As the table says."""
        return self._by_table(request).launch(request)

    def parser(self, request: LaunchRequest) -> TableStream:
        """A parser that reads by the table."""
        return self._by_table(request).parser(request)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Nothing to look for: what it drives is named by the manifest."""
        del environment
        return FoundAgent(
            name=self.name, driven="JSON lines, read by a table", install_hint=self.install_hint
        )

    def _by_table(self, request: LaunchRequest) -> TableAdapter:
        given = request.choice.options.get("table")
        if not given:
            raise AgentError(
                f"the agent {request.choice.name!r} has no table",
                hint="Name the file: `table: my-agent.toml`. docs/agents.md describes tables.",
            )
        if "\n" in given:
            return TableAdapter(table=read_table(given, f"the table of {request.choice.name!r}"))
        return TableAdapter(table=table_file(Path(request.folder, given)))


def login_of(table: AgentTable, request: LaunchRequest) -> str:
    """Return the first variable by which it could log in."""
    given = {**request.environment, **request.choice.env}
    return next((name for name in table.login.variables if given.get(name)), "")


def _way_back(table: AgentTable, request: LaunchRequest) -> tuple[str, ...]:
    """The arguments that take the session up again, if there is one and a way back to it."""
    if not request.session:
        return ()
    if request.is_fork:
        return table.fork
    return table.elsewhere if request.is_elsewhere else table.resume


def _filled(words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(fill(word, values) for word in words)
