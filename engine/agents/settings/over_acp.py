"""Read the MCP servers that a manifest names for an agent over ACP without settings of its own."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from engine.agents.contract import LaunchRequest
from engine.agents.records import Record, read_record, table_of, text_of
from engine.agents.settings.copied import SettingsCopy, references_in
from engine.agents.settings.files import UnreadableError, data_of
from engine.errors import AgentError


def copy_for_acp(request: LaunchRequest) -> SettingsCopy:
    """Return the list of what its session hears of."""
    copy = SettingsCopy(request, folder=".")
    _servers(request, copy)
    return copy


def servers_for_session(request: LaunchRequest) -> list[Record]:
    """Return the servers of the option `mcp` as `session/new` wants them."""
    found = _servers(request, SettingsCopy(request, folder="."))
    return [_told(request, name, server) for name, server in found.items()]


def _servers(request: LaunchRequest, copy: SettingsCopy) -> dict[str, Record]:
    given = request.choice.options.get("mcp")
    if not given:
        return {}
    home = request.user_home
    path = Path(request.folder, given.replace("~", home, 1) if given.startswith("~/") else given)
    try:
        described = read_record(data_of(path) or b"")
    except UnreadableError as error:
        raise _unreadable(given, str(error)) from error
    if described is None or not isinstance(described.get("mcpServers"), dict):
        raise _unreadable(given, "it is not a JSON object with `mcpServers`")
    return copy.servers(described["mcpServers"], given)


def _unreadable(name: str, why: str) -> AgentError:
    return AgentError(
        f"the MCP servers of {name} cannot be read: {why}",
        hint="Use the format of `.mcp.json`; the path is relative to the repository.",
    )


def _told(request: LaunchRequest, name: str, server: Record) -> Record:
    known = {**request.environment, **request.choice.env}
    if url := text_of(server.get("url")):
        kind = text_of(server.get("type")) or "http"
        return {
            "type": kind,
            "name": name,
            "url": url,
            "headers": _pairs(server.get("headers"), known),
        }
    program = text_of(server.get("command"))
    more = server.get("args")
    return {
        "name": name,
        "command": shutil.which(program, path=known.get("PATH")) or program,
        "args": [text_of(word) for word in more] if isinstance(more, list) else [],
        "env": _pairs(server.get("env"), known),
    }


def _pairs(given: object, known: Mapping[str, str]) -> list[Record]:
    return [
        {"name": name, "value": _expanded(text_of(value), known)}
        for name, value in table_of(given).items()
    ]


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Put in the variables that a text refers to."""
    for name in references_in(text):
        for written in (f"${{{name}}}", f"${name}"):
            text = text.replace(written, known.get(name, ""))
    return text
