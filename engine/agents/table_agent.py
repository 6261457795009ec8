"""Drives an agent by its table: arguments with their places filled, files in the worker's HOME."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.agents.command import as_argument
from engine.agents.contract import (
    AgentLaunch,
    Capabilities,
    FoundAgent,
    LaunchFile,
    LaunchRequest,
    Steering,
)
from engine.agents.finding import LoginTraces, ProgramSearch, find_agent
from engine.agents.options import folders_of, more_arguments, picked, program_of
from engine.agents.permitting import is_allowed_unasked, refuse_asking
from engine.agents.prompting import system_text, user_text, whole_text
from engine.agents.table_stream import TableStream
from engine.agents.tables import AgentTable, read_table, table_file
from engine.errors import AgentError

_PLACE = re.compile(r"\{(prompt|system|model|session|home)\}")


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
    def capabilities(self) -> Capabilities:
        """What the table says that it can do."""
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
            env={**picked(request, table.variables), **table.env, **request.choice.env},
            files=tuple(
                LaunchFile(path=file.path, data=fill(file.text, values).encode())
                for file in table.files
                if system or "{system}" not in file.text
            ),
            hosts=table.hosts,
            reads=folders_of(request, program_of(request, table.program)),
        )

    def parser(self, request: LaunchRequest) -> TableStream:
        """A parser that reads by the table."""
        return TableStream(request, self.table)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Its program, version and login."""
        table = self.table
        traces = LoginTraces(**table.login.model_dump())
        search = ProgramSearch(program=table.program, driven=table.driven, traces=traces)
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
    capabilities: Capabilities = Capabilities()  # noqa: RUF009 - frozen, and the same for all

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
            name=self.name, driven="JSON lines by a table", install_hint=self.install_hint
        )

    def _by_table(self, request: LaunchRequest) -> TableAdapter:
        given = request.choice.options.get("table")
        if not given:
            raise AgentError(
                f"the agent {request.choice.name!r} has no table",
                hint="Say where it is: `table: my-agent.toml`; docs/agents.md describes tables.",
            )
        if "\n" in given:
            return TableAdapter(table=read_table(given, f"the table of {request.choice.name!r}"))
        return TableAdapter(table=table_file(Path(request.folder, given)))


def _way_back(table: AgentTable, request: LaunchRequest) -> tuple[str, ...]:
    """The arguments that take the session up again, if there is one and a way back to it."""
    if not request.session:
        return ()
    if request.is_fork:
        return table.fork
    return table.elsewhere if request.is_elsewhere else table.resume


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with the places whose values are known filled, in one pass."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text)


def _filled(words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(fill(word, values) for word in words)
