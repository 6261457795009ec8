"""Copy the user's own settings of a client into a worker's HOME, filtered, and list them.

A worker gets copies, made anew at each start, and never the user's files themselves. What runs code
by itself (hooks) and every key that is not passed on by name stay behind, and the list says so.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.agents.contract import BaseUrl, CopiedSettings, LaunchFile, LaunchRequest
from engine.agents.options import folders_of
from engine.agents.records import Record, text_of
from engine.agents.settings.files import (
    MOST_BYTES,
    MOST_FILES,
    UnreadableError,
    data_of,
    entries_of,
    files_below,
)
from engine.errors import AgentError
from engine.plan.model import SettingsWish
from engine.redaction import Redactor, is_key_like, secret_values
from engine.sandbox.view import SYSTEM_FOLDERS

_REFERENCE = re.compile(r"\$\{(\w+)(?::-[^}]*)?\}|\$(\w+)|\{env:(\w+)\}")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*[\s\S]*?\*/')
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
RUN_CODE = "they run code automatically; `user_code: true` includes them"
_OWNER_READS, _OWNER_RUNS = 0o400, 0o500
_ENVIRONMENTS = ("env", "environment")
_HEADERS = ("headers", "http_headers")
_NAMES_OF_KEYS = ("bearer_token_env_var",)


class SettingsCopy:
    """The settings that go along with one attempt, gathered file by file.

    Attributes:
        taken: What goes along, in words.
        model: The model that the settings name.
        base_url: The address of a provider of the user's own, where they name one.
        reads: Folders that must be readable where the client runs, for its MCP servers.
    """

    def __init__(self, request: LaunchRequest, *, folder: str, variable: str = "") -> None:
        """Begin with nothing.

        Args:
            request: The attempt.
            folder: Where the client keeps its settings, below HOME.
            variable: The variable that names another place for them.
        """
        self.request = request
        self.reads: tuple[str, ...] = ()
        named = request.environment.get(variable) if variable else ""
        home = request.user_home
        self._into = folder
        self._from = Path(named or f"{home}/{folder}") if home or named else None
        self._files: dict[str, LaunchFile] = {}
        self._size = 0
        self.taken: list[str] = []
        self.model = ""
        self.base_url: BaseUrl | None = None
        self._left_out: list[str] = []

    @property
    def wants_instructions(self) -> bool:
        """The words of the user's go along."""
        return self.request.choice.user_settings is not SettingsWish.NONE

    @property
    def wants_all(self) -> bool:
        """Everything that may goes along."""
        return self.request.choice.user_settings is SettingsWish.ALL

    @property
    def wants_code(self) -> bool:
        """Also what runs code by itself goes along: hooks, plugins and extensions."""
        return self.wants_all and self.request.choice.user_code

    @property
    def files(self) -> tuple[LaunchFile, ...]:
        """The copies."""
        return tuple(self._files.values())

    @property
    def listed(self) -> CopiedSettings:
        """Return the list of what goes along and what stays behind."""
        return CopiedSettings(
            taken=tuple(self.taken),
            left_out=tuple(dict.fromkeys(self._left_out)),
            model=self.model,
        )

    def leave(self, what: str, why: str) -> None:
        """List something that stays behind."""
        self._left_out.append(f"{what}: {why}")

    def shown(self, name: str = "") -> str:
        """Return the name of a file of the user's as the user knows it."""
        path = os.path.normpath(f"{self._from}/{name}") if self._from else name
        home = self.request.user_home
        return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path

    def is_passed(self, value: str) -> bool:
        """Return True if a value is that of a variable which the user passes on by its name."""
        return any(
            known == value and self.passes(name) for name, known in self.request.environment.items()
        )

    def passes(self, variable: str) -> bool:
        """Return True if the user passes this variable on by its name."""
        named = any(fnmatchcase(variable, pattern) for pattern in self.request.passed)
        return named or variable in self.request.choice.env

    # ------------------------------------------------------------------ files

    def put(self, path: str, text: str, *, mode: int = 0o600) -> None:
        """Write a file of the worker's HOME."""
        into = os.path.normpath(path)
        self._files[into] = LaunchFile(path=into, data=text.encode(), mode=mode)

    def put_own(self, name: str, value: Record) -> None:
        """Write a JSON file into the folder of the client."""
        self.put(f"{self._into}/{name}", json.dumps(value))

    def text(self, name: str) -> str | None:
        """Return the text of a file of the user's; None where there is none.

        Raises:
            AgentError: It is there and cannot be read, so nobody knows whom the client would ask.
        """
        try:
            data = data_of(self._from / name) if self._from else None
        except UnreadableError as error:
            raise self.unreadable(name, error) from error
        return None if data is None else data.decode("utf-8", "replace")

    def json(self, name: str) -> Record:
        """Return the object in a JSON file of the user's, which may hold comments.

        Raises:
            AgentError: It cannot be read, so nobody knows by whom the client would work.
        """
        text = self.text(name) or "{}"
        try:
            bare = _COMMENT.sub(lambda found: found[1] or "", text)
            value = json.loads(_LAST_COMMA.sub(lambda found: found[1] or "", bare))
        except (ValueError, RecursionError) as error:
            raise self.unreadable(name, error) from error
        return value if isinstance(value, dict) else {}

    def unreadable(self, name: str, error: object) -> AgentError:
        """Return the refusal to start beside settings that nobody can read."""
        return AgentError(
            f"{self.shown(name)} cannot be read: {error}",
            hint="Correct the file: it may name your provider, and plait does not fall back to "
            "another.",
        )

    def instructions(self, *names: str, more: str = "") -> None:
        """Copy the first of these files that there is; `more` is written behind its words."""
        found = None
        for name in names if self.wants_instructions else ():
            if (found := self.words_of(name)) is not None:
                self.taken.append(f"instructions of {self.shown(name)}")
                found = self._without_secrets(name, found)
                break
        words = "\n\n".join(filter(None, ((found or "").strip(), more.strip())))
        if words:
            self.put(f"{self._into}/{names[0]}", f"{words}\n", mode=_OWNER_READS)

    def words_of(self, name: str) -> str | None:
        """Return the text of instructions; those that cannot be read stay behind."""
        try:
            return self.text(name)
        except AgentError as error:
            self._left_out.append(str(error))
            return None

    def folders(self, *names: str) -> None:
        """Copy what lies in these folders: skills, commands, sub-agents."""
        self._folders(names if self.wants_all else ())

    def code_folders(self, *names: str) -> None:
        """Copy hooks and extensions that lie in these folders, where the user wants that."""
        if self.wants_code:
            self._folders(names)
            return
        for name in names:
            if self.entries(name):
                self.leave(self.shown(name), RUN_CODE)

    def code_of(self, settings: Record, names: Iterable[str], shown: str) -> Record:
        """Return those of the settings that run code by themselves, where the user wants that."""
        kept: Record = {}
        for name in filter(settings.get, names):
            if not self.wants_code:
                self.leave(f"{name} of {shown}", RUN_CODE)
            elif self.is_secret(json.dumps(settings[name])):
                self.leave(f"{name} of {shown}", "it contains a key")
            else:
                kept[name] = self._moved(settings[name])
                self.taken.append(f"{name} of {shown}")
        return kept

    def _moved(self, value: Any) -> Any:
        """Return a value of the settings with the paths that it has in a worker's HOME."""
        text = json.dumps(value)
        if self._from:
            text = text.replace(str(self._from), f"{self.request.home}/{self._into}")
        return json.loads(text)

    def words(self, *names: str) -> None:
        """Copy all instructions that lie in these folders."""
        self._folders(names if self.wants_instructions else ())

    def _folders(self, names: Iterable[str]) -> None:
        for name in names:
            entries = self.entries(name)
            copied = [entry.name for entry in entries if self.tree(entry, f"{name}/{entry.name}")]
            if copied:
                self.taken.append(f"{name.removeprefix('../')}: {', '.join(copied)}")

    def _place(self, name: str) -> Path:
        """Return a folder of the user's; one beside the client's is there without the client's."""
        return Path(os.path.normpath(f"{self._from}/{name}"))

    def entries(self, name: str) -> list[Path]:
        """Return what lies in a folder of the user's, but for what holds keys by its name."""
        return entries_of(self._place(name)) if self._from else []

    def tree(self, top: Path, name: str) -> bool:
        """Copy a file, or a folder with all below it; a link of the user's is followed once."""
        copied = False
        for path, file in files_below(top, name):
            try:
                data = data_of(file)
            except UnreadableError as error:
                self.leave(self.shown(path), str(error))
                continue
            if data is None or not self._has_room(path, data):
                continue
            clean = self._without_secrets(path, data.decode()).encode() if _is_text(data) else data
            mode = _OWNER_RUNS if os.access(file, os.X_OK) else _OWNER_READS
            into = os.path.normpath(f"{self._into}/{path}")
            self._files[into] = LaunchFile(path=into, data=clean, mode=mode)
            copied = True
        return copied

    def _has_room(self, name: str, data: bytes) -> bool:
        self._size += len(data)
        if len(self._files) < MOST_FILES and self._size < MOST_BYTES:
            return True
        if not any("more than" in line for line in self._left_out):
            self.leave(self.shown(name), f"more than {MOST_FILES} files or {MOST_BYTES >> 20} MB")
        return False

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(secret_values(self.request.environment))

    def _without_secrets(self, name: str, text: str) -> str:
        clean = self._redactor.text(text)
        if clean != text:
            self.leave(self.shown(name), "a key in it was removed")
        return clean

    # ------------------------------------------------------------------ MCP servers

    def servers(self, found: object, where: str) -> dict[str, Record]:
        """Return those MCP servers that can run inside, without keys nobody passes on."""
        if not self.wants_all or not isinstance(found, dict):
            return {}
        kept: dict[str, Record] = {}
        for name, server in found.items():
            if not isinstance(server, dict):
                continue
            if why := self._why_not(server):
                self.leave(f"MCP server {name} of {where}", why)
                continue
            kept[name] = self._without_variables(name, server)
            self.taken.append(f"MCP server {name}")
        return kept

    def _why_not(self, server: Record) -> str:
        """Return why a server cannot go along; nothing if it can."""
        words = _words_of(server)
        if any(self.is_secret(word) for word in (*words, text_of(server.get("url")))):
            return "its command or address contains a key"
        for header, value in _pairs(server, _HEADERS):
            if self.is_secret_header(header, value):
                return f"its header {header} contains a key: use a variable of `sandbox.env` there"
        for key in _NAMES_OF_KEYS:
            if (name := text_of(server.get(key))) and not self.passes(name):
                return f"{name} is not passed on: add it to `sandbox.env`"
        return self._why_not_inside(words)

    def is_secret(self, text: str) -> bool:
        """Return True if a text holds what looks like a key, or one of the user's secrets."""
        return self._redactor.text(text) != text

    def is_secret_header(self, header: str, value: str) -> bool:
        """Return True if a header would carry a key that nobody passes on by name."""
        if names := references_in(value):
            return not all(map(self.passes, names))
        is_named = is_key_like(header) or header.casefold() in {"authorization", "cookie"}
        return is_named or self.is_secret(value)

    def _why_not_inside(self, words: tuple[str, ...]) -> str:
        """Return what of a server's command is not there where the client runs."""
        if not words:
            return ""
        program, *more = words
        path = self.request.choice.env.get("PATH") or self.request.environment.get("PATH")
        real = shutil.which(program, path=path)
        if real is None:
            return f"its program {program} does not exist"
        on_path = Path(real).parent in map(Path, (path or os.defpath).split(os.pathsep))
        named = [word for word in more if word.startswith("/") and os.path.lexists(word)]
        for word in (*(() if on_path else (real,)), *named):
            if not self._is_seen(word):
                return f"{word} is not visible in the sandbox: add it to `sandbox.paths`"
        if on_path:
            self.reads += folders_of(self.request, program)
        return ""

    def _is_seen(self, path: str) -> bool:
        request = self.request
        if not request.is_confined:
            return True
        opened = (re.sub(r":r[ow]$", "", hole) for hole in request.opened)
        homes = (hole.replace("~", request.user_home, 1) for hole in opened)
        seen = (*SYSTEM_FOLDERS, *map(Path, homes))
        real = Path(path).resolve()
        return any(real.is_relative_to(folder.resolve()) for folder in seen)

    def _without_variables(self, name: str, server: Record) -> Record:
        """Return a server without the variables that nobody passes on by name."""
        kept = dict(server)
        for key in _ENVIRONMENTS:
            if not isinstance(server.get(key), dict):
                continue
            kept[key] = {one: value for one, value in server[key].items() if self.passes(one)}
            for one in server[key].keys() - kept[key].keys():
                self.leave(f"{one} of MCP server {name}", "not named in `sandbox.env`")
        return kept


def references_in(text: str) -> tuple[str, ...]:
    """Return the variables that a text refers to, as clients write it."""
    return tuple(next(filter(None, groups)) for groups in _REFERENCE.findall(text))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _words_of(server: Mapping[str, Any]) -> tuple[str, ...]:
    """The command of a server: a program with `args`, or both as one list."""
    command, more = server.get("command"), server.get("args")
    words = command if isinstance(command, list) else [command] if command else []
    return tuple(map(text_of, (*words, *(more if isinstance(more, list) else ()))))


def _pairs(server: Mapping[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    for key in keys:
        found = server.get(key)
        if isinstance(found, dict):
            yield from ((text_of(name), text_of(value)) for name, value in found.items())
