"""Reads tables: how an agent that writes JSON lines is started, and what its records mean, as data.

A table is one TOML file; people add their own for agents that we have never seen. `docs/agents.md`
describes it.
"""

import functools
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.agents.contract import HintChannel, LoginTraces, SessionId
from engine.agents.records import count_of, number_of
from engine.errors import AgentError

Texts = tuple[str, ...]
Reader = Callable[[Any, Any], Any]
_NUMBERS = {"input_tokens", "output_tokens", "cached_tokens", "usd"}


class TableInvalid(AgentError):
    """A table is wrong; every problem found is reported."""

    hint = "docs/agents.md describes tables."


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableRule(_Part):
    """One meaning of one kind of record; every field but `when` and `tell` is a path into it.

    Attributes:
        when: What a record must hold: wanted values by path; `type` is looked up first.
        tell: What is reported.
        each: The list whose items are each meant; paths that begin with `@` begin at the item.
    """

    when: dict[str, str | bool | int] = Field(min_length=1)
    tell: Literal[
        "started",
        "said",
        "thought",
        "called",
        "ended",
        "used",
        "adds",
        "retrying",
        "trouble",
        "closing",
        "nothing",
    ]
    each: str | None = None
    session: str | None = None
    model: str | None = None
    text: str | None = None
    delta: str | None = None
    id: str | None = None
    name: str | None = None
    input: str | None = None
    output: str | None = None
    failed: str | None = None
    status: str | None = None
    error: str | None = None
    is_error: str | None = None
    attempt: str | None = None
    delay_s: str | None = None
    delay_ms: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    cached_tokens: str | None = None
    usd: str | None = None


class TableFile(_Part):
    """A file in the worker's HOME; one whose text has `{system}` is written if there is any."""

    path: str
    text: str


class Login(_Part):
    """Signs that the agent can log in."""

    variables: Texts = ()
    files: Texts = ()


class UserFiles(_Part):
    """The places where an agent keeps its user's own settings.

    Attributes:
        folder: The folder of all of them, below HOME.
        instructions: Files of words; the first that is there.
        words: Folders of such files, all of which count.
        folders: Folders of skills, commands and the like.
        code_folders: Folders of hooks, plugins and extensions, which go along where that is wanted.
        settings: A JSON file; the first that is there. What the table itself writes wins in it.
        keep: Keys of the settings that go along; a path with dots goes into objects.
        code: Those that run code, which go along where that is wanted.
        provider: Those of them that go along in any case: who is asked, and for which model.
        providers: The key whose object describes providers by name.
        servers: The key whose object describes MCP servers by name.
        servers_file: The JSON file of that key, where it is another one than the settings.
        providers_file: The JSON file of the providers, likewise.
        chosen: The key of the settings that names the provider, where no model does.
        bare_names: A text of capitals in place of a key is the name of a variable.
        variables: A file of variables, of which those of the table go along.
    """

    folder: str = ""
    instructions: Texts = ()
    words: Texts = ()
    folders: Texts = ()
    code_folders: Texts = ()
    settings: Texts = ()
    keep: Texts = ()
    code: Texts = ()
    provider: Texts = ()
    providers: str = ""
    servers: str = ""
    servers_file: str = ""
    providers_file: str = ""
    chosen: str = ""
    bare_names: bool = False
    variables: str = ""


class AgentTable(_Part):
    """An agent as data.

    Attributes:
        user: Where its user's own settings are.
        base_url: The variable that names another address than its vendor's.
        contained: Arguments that let it act unasked, used within an enforced sandbox only.
        unasked: Arguments used without one.
        elsewhere: Arguments that take a session up again in another folder than its own; without
            them an attempt there begins a new one.
        careless: It does everything by itself: it is started within a sandbox only, or where
            everything is allowed.
        session_id: When a stream names the session.
    """

    name: str
    program: str
    install: str = ""
    driven: str = "JSON lines"
    arguments: Texts = ()
    contained: Texts = ()
    unasked: Texts = ()
    careless: bool = False
    model: Texts = ()
    system: Texts = ()
    resume: Texts = ()
    elsewhere: Texts = ()
    fork: Texts = ()
    variables: Texts = ()
    base_url: str = ""
    env: dict[str, str] = {}
    hosts: Texts = ()
    files: tuple[TableFile, ...] = ()
    login: Login = Login()
    user: UserFiles = UserFiles()
    session_id: SessionId = SessionId.EARLY
    hint: HintChannel = HintChannel.PROMPT
    usage: bool = False
    cost: bool = False
    rules: tuple[TableRule, ...] = Field(min_length=1)

    @property
    def traces(self) -> LoginTraces:
        """The signs of its login as every adapter has them."""
        return LoginTraces(**self.login.model_dump())

    @functools.cached_property
    def ready(self) -> dict[str, list["ReadyRule"]]:
        """Its rules by the type of record that they are about, made quick once."""
        return ready_rules(self.rules)


def read_table(text: str, where: str) -> AgentTable:
    """The table that this TOML text is; TableInvalid names everything that is wrong with it."""
    try:
        return AgentTable.model_validate(tomllib.loads(text))
    except ValidationError as error:
        problems = (f"{_place(e['loc'])}: {e['msg']}" for e in error.errors())
        raise TableInvalid("\n".join(f"{where}: {problem}" for problem in problems)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TableInvalid(f"{where}: {error}") from error


def table_file(path: Path) -> AgentTable:
    """The table in a file of the user's."""
    try:
        return read_table(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise TableInvalid(f"{path}: cannot be read: {error}") from error


@functools.cache
def shipped_table(name: str) -> AgentTable:
    """A table that comes with plait."""
    file = resources.files("engine.agents") / "tables" / f"{name}.toml"
    return read_table(file.read_text(), str(file))


def _place(location: tuple[str | int, ...]) -> str:
    return ".".join(map(str, location))


# ---------------------------------------------------------------------- making it quick to use


class ReadyRule:
    """A rule made quick: its paths are split once, not at each record."""

    def __init__(self, rule: TableRule) -> None:
        self.tell = rule.tell
        self.each = path_reader(rule.each) if rule.each else None
        self._conditions = [(path_reader(p), want) for p, want in rule.when.items() if p != "type"]
        self._fields = {
            key: _sum_reader(path, is_money=key == "usd") if key in _NUMBERS else path_reader(path)
            for key, path in rule.model_dump(exclude_none=True).items()
            if key not in {"when", "tell", "each"}
        }

    def holds(self, record: Any, item: Any) -> bool:
        """The record is what the rule is about."""
        return all(read(record, item) == wanted for read, wanted in self._conditions)

    def read(self, name: str, record: Any, item: Any) -> Any:
        """A field of what is reported; None where the rule or the record has none."""
        read = self._fields.get(name)
        return None if read is None else read(record, item)


def ready_rules(rules: tuple[TableRule, ...]) -> dict[str, list[ReadyRule]]:
    """The rules by the type of record that they are about."""
    ready: dict[str, list[ReadyRule]] = {}
    for rule in rules:
        ready.setdefault(str(rule.when.get("type", "")), []).append(ReadyRule(rule))
    return ready


@functools.cache
def path_reader(paths: str) -> Reader:
    """Reads the first of several paths, split by `|`, at which anything stands."""
    steps = [
        (p.startswith("@"), _keys(p.removeprefix("@"))) for p in map(str.strip, paths.split("|"))
    ]

    def read(record: Any, item: Any) -> Any:
        for is_item, keys in steps:
            value = item if is_item else record
            for key in keys:
                value = _step(value, key)
            if value not in (None, ""):
                return value
        return None

    return read


def _keys(path: str) -> tuple[str | int, ...]:
    return tuple(int(k) if k.lstrip("-").isdigit() else k for k in path.split(".") if k)


def _step(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
        return value[key]
    return None


def _sum_reader(paths: str, *, is_money: bool) -> Reader:
    """Reads the sum of several paths, split by `+`; None where none of them has a number."""
    readers = [path_reader(path) for path in paths.split("+")]

    def read(record: Any, item: Any) -> float | int | None:
        values = [one(record, item) for one in readers]
        numbers = [n for v in values if (n := (number_of if is_money else count_of)(v)) is not None]
        return sum(numbers) if numbers else None

    return read
