"""Copy plugins that a user has switched on: their words, and what runs code where that is wanted.

Their MCP servers never go along with them: those are filtered one by one, in the client's own file.
"""

import re
from pathlib import Path

from engine.agents.records import Record, read_record
from engine.agents.settings.copied import RUN_CODE, SettingsCopy
from engine.agents.settings.files import UnreadableError, data_of, entries_of
from engine.values import dataclass

_NAME = re.compile(r"\w[\w.-]*@\w[\w.-]*")
_KEPT = ("name", "version", "description", "author", "keywords", "interface", "outputStyles")


@dataclass(frozen=True, kw_only=True)
class PluginKind:
    """The plugins of one client.

    Attributes:
        manifest: The file in which a plugin describes itself.
        words: Its folders of words, which run nothing by themselves.
        not_taken: What never goes along, beside the folder of the manifest.
        servers_hint: How the user gets its MCP servers instead.
    """

    manifest: str
    words: tuple[str, ...]
    not_taken: tuple[str, ...]
    servers_hint: str


def is_name_of_plugin(name: str) -> bool:
    """Return True for a plugin and its marketplace, both of which could be names of folders."""
    return _NAME.fullmatch(name) is not None


def copy_plugin(copy: SettingsCopy, kind: PluginKind, name: str, *, place: Path, into: str) -> bool:
    """Copy one plugin and write its manifest anew; return False where nothing of it goes along.

    Args:
        copy: The settings that go along.
        kind: The client's plugins.
        name: Its name and its marketplace.
        place: Where the user has it.
        into: Where it lies in the client's folder.
    """
    never = {Path(kind.manifest).parts[0], *kind.not_taken}
    entries = [one for one in entries_of(place) if one.name not in never]
    taken = [one for one in entries if copy.wants_code or one.name in kind.words]
    if len(taken) < len(entries):
        others = ", ".join(one.name for one in entries if one not in taken)
        copy.leave(f"{others} of plugin {name}", RUN_CODE)
    about = _about(place / kind.manifest)
    if about.get("mcpServers") or (place / ".mcp.json").exists():
        copy.leave(f"MCP servers of plugin {name}", kind.servers_hint)
    copied = [copy.tree(one, f"{into}/{one.name}") for one in taken]
    kept = (*_KEPT, *kind.words, *(("hooks",) if copy.wants_code else ()))
    told = {"name": name.partition("@")[0], **{key: about[key] for key in kept if key in about}}
    copy.put_own(f"{into}/{kind.manifest}", told)
    return any(copied)


def _about(manifest: Path) -> Record:
    try:
        return read_record(data_of(manifest) or b"") or {}
    except UnreadableError:
        return {}
