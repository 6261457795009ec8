"""Fill the HOME of an agent that a table describes: with the table's files and its user's own."""

import json
import re
from collections.abc import Iterator, Mapping

from engine.agents.base_urls import base_url_in
from engine.agents.contract import BaseUrl, LaunchRequest
from engine.agents.options import more_arguments
from engine.agents.prompting import system_text
from engine.agents.records import Record, at, text_of
from engine.agents.settings.copied import SettingsCopy, references_in
from engine.agents.tables import AgentTable
from engine.errors import AgentError
from engine.redaction import is_key_like

_PLACE = re.compile(r"\{(prompt|system|model|session|home)\}")
_VARIABLE = re.compile(r"^\s*(?:export\s+)?(\w+)\s*=\s*([\"']?)(.*?)\2\s*$", re.MULTILINE)
_PROVIDER = re.compile(r"--provider[ =](\S+)")
_BASE_URL = re.compile(r"base_?url", re.IGNORECASE)
_ADDRESSES_BY_MODEL = "modelProviders"
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
_BY_BROWSER = {"oauth-personal", "qwen-oauth", "login-with-google"}
"""Logins that no worker is given: its own way to log in stands in their place."""


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with the places whose values are known filled, in one pass."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text)


class TableHome:
    """The HOME of an agent for one attempt.

    Attributes:
        copy: Its files.
        env: Variables that its user keeps in a file, or that a provider of the user's names.
        login: The variable in which that provider has its key, if it is one of them.
        base_url: The address of a provider of the user's own.
    """

    base_url: BaseUrl | None = None

    def __init__(self, table: AgentTable, request: LaunchRequest) -> None:
        """Gather the files."""
        self.copy = SettingsCopy(request, folder=table.user.folder)
        self.env: dict[str, str] = {}
        self.login = ""
        self._lists_addresses = False
        self._table = table
        self._request = request
        values = {
            "system": system_text(request),
            "home": request.home,
            "prompt": request.prompt,
            "model": request.choice.model or "",
            "session": request.session or "",
        }
        own = {
            file.path: fill(file.text, values)
            for file in table.files
            if values["system"] or "{system}" not in file.text
        }
        if table.user.folder:
            self._copy_users(own)
        for path, text in own.items():
            self.copy.put(path, text)
        self.base_url = self.base_url or self._base_url_in_variable()

    def _copy_users(self, own: dict[str, str]) -> None:
        """Copy what the user has; what the table writes into the same files goes in as well."""
        user, copy = self._table.user, self.copy
        if user.instructions:
            words = own.pop(f"{user.folder}/{user.instructions[0]}", "")
            copy.instructions(*user.instructions, more=words)
        copy.words(*user.words)
        copy.folders(*user.folders)
        copy.code_folders(*user.code_folders)
        self._read_variables()
        given = {**self._request.environment, **self.env}
        models = (name for name in self._table.variables if name.endswith("_MODEL"))
        copy.model = next((given[name] for name in models if given.get(name)), "")
        name = next((one for one in user.settings if copy.text(one) is not None), "")
        if name:
            path = f"{user.folder}/{user.settings[0]}"
            found = copy.json(name)
            said = (at(found, "model", "name"), found.get("model"), found.get("defaultModel"))
            copy.model = copy.model or next(filter(None, map(text_of, said)), "")
            kept = self._settings(found, copy.shown(name))
            own[path] = json.dumps(_merged(kept, json.loads(own.get(path, "{}"))))
        self._read_others(name, own)

    def _read_others(self, settings: str, own: dict[str, str]) -> None:
        """Copy providers and MCP servers that have a file of their own."""
        user, copy = self._table.user, self.copy
        if name := user.providers_file:
            found, chosen = copy.json(name), copy.json(settings) if settings else {}
            by = text_of(chosen.get(user.chosen)) if user.chosen else ""
            if providers := self._providers(found, copy.shown(name), by=by):
                own[f"{user.folder}/{name}"] = json.dumps({user.providers: providers})
        if name := user.servers_file:
            servers = copy.servers(copy.json(name).get(user.servers), copy.shown(name))
            if servers:
                own[f"{user.folder}/{name}"] = json.dumps({user.servers: servers})

    def _read_variables(self) -> None:
        name = self._table.user.variables
        for variable, _, value in _VARIABLE.findall(self.copy.text(name) or "") if name else ():
            if variable in self._table.variables and not self._request.environment.get(variable):
                self.env[variable] = value
                self.copy.taken.append(f"{variable} of {self.copy.shown(name)}")

    def _base_url_in_variable(self) -> BaseUrl | None:
        name = self._table.base_url
        if not name or self._lists_addresses:
            return None
        file = self.copy.shown(self._table.user.variables) if name in self.env else ""
        given = {**self._request.environment, **self.env}
        return base_url_in(self._request, name, given, file=file)

    def _settings(self, found: Record, shown: str) -> Record:
        user, copy = self._table.user, self.copy
        kept = _picked(found, (*user.provider, *(user.keep if copy.wants_all else ())))
        self._lists_addresses = _ADDRESSES_BY_MODEL in kept
        if kept:
            copy.taken.append(f"{', '.join(kept)} of {shown}")
        if user.providers and not user.providers_file:
            by = text_of(found.get(user.chosen)) if user.chosen else ""
            kept[user.providers] = self._providers(found, shown, by=by)
        kept |= copy.code_of(found, user.code, shown)
        if user.servers_file:
            return kept
        if servers := copy.servers(found.get(user.servers), shown):
            kept[user.servers] = servers
        return kept

    def _providers(self, found: Record, shown: str, *, by: str = "") -> Record:
        """Return the provider that is asked; where nobody says which, those without a key in them.

        Raises:
            AgentError: The one that is asked holds its key, or wants one that is not set.
        """
        described = found.get(self._table.user.providers)
        described = described if isinstance(described, dict) else {}
        model = self._request.choice.model or text_of(found.get("model"))
        told = _PROVIDER.search(" ".join(more_arguments(self._request)))
        chosen = told[1] if told else by or model.partition("/")[0]
        if chosen in described:
            self._check(chosen, described[chosen], shown)
            return {chosen: described[chosen]}
        return {
            name: provider for name, provider in described.items() if not self._keys_in(provider)
        }

    def _check(self, name: str, provider: object, shown: str) -> None:
        if keys := self._keys_in(provider):
            raise AgentError(
                f"the provider {name!r} of {shown} has its key in {', '.join(keys)}, which "
                "plait does not pass to workers",
                hint="Name a variable there, or pass one with the same value through "
                "`sandbox.env`.",
            )
        given = {**self._request.environment, **self._request.choice.env}
        for variable in self._references_in(provider):
            if not given.get(variable):
                raise AgentError(
                    f"the provider {name!r} needs its key in {variable}, which is not set",
                    hint=f"Set {variable}, or name another provider in {shown}.",
                )
            self.env[variable] = given[variable]
            self.login = self.login or variable
        for key, text in _texts(provider):
            if _BASE_URL.fullmatch(key) and not references_in(text):
                self.base_url = BaseUrl(url=text, named_by=shown)

    def _references_in(self, value: object) -> tuple[str, ...]:
        """Return the variables that a value refers to."""
        names = [name for _, text in _texts(value) for name in references_in(text)]
        if self._table.user.bare_names:
            names += [t for key, t in _texts(value) if is_key_like(key) and _NAME.fullmatch(t)]
        return tuple(names)

    def _keys_in(self, value: object) -> list[str]:
        return [
            key
            for key, text in _texts(value)
            if not self._references_in({key: text})
            and not self.copy.is_passed(text)
            and (is_key_like(key) or self.copy.is_secret(text))
        ]


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a value, each with the key that it stands under."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str):
        yield key, value


def _picked(found: Record, paths: tuple[str, ...]) -> Record:
    """Return what lies at these paths, but for a login that no worker is given."""
    kept: Record = {}
    for path in paths:
        *folders, last = path.split(".")
        value = at(found, *folders, last)
        if value is None or text_of(value) in _BY_BROWSER:
            continue
        place = kept
        for key in folders:
            place = place.setdefault(key, {})
        place[last] = value
    return kept


def _merged(users: Record, own: Record) -> Record:
    """Return both; what the user says of the provider is among `users` and wins."""
    merged = {**own, **users}
    for key in own.keys() & users.keys():
        if isinstance(own[key], dict) and isinstance(users[key], dict):
            merged[key] = _merged(users[key], own[key])
    return merged
