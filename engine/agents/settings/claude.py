"""Give Claude Code its login, its provider, and copies of the user's own settings."""

import json
import re
import time
from collections import defaultdict
from pathlib import Path

from engine.agents.base_urls import base_url_in
from engine.agents.contract import BaseUrl, LaunchRequest
from engine.agents.options import more_arguments, picked
from engine.agents.records import Record, at, read_record, table_of, text_of
from engine.agents.settings.copied import SettingsCopy
from engine.agents.settings.files import data_of_login
from engine.agents.settings.plugins import PluginKind, copy_plugin, is_name_of_plugin
from engine.system import IS_PORTABLE

_FOLDER = ".claude"
_KEPT_SETTINGS = (
    *("model", "language", "outputStyle", "effortLevel", "alwaysThinkingEnabled"),
    *("includeCoAuthoredBy", "attribution"),
)
_LEFT_SETTINGS = {"apiKeyHelper": "it runs code", "statusLine": "nobody would see its output"}
_IMPORT = re.compile(r"(?:^|\s)@((?:~/\.claude/)?[\w.-][\w./-]*)", re.MULTILINE)
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - the variable's name, not its value
LOGINS_OF_CLAUDE = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", _TOKEN)
CLOUDS_OF_CLAUDE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_BASE_URL = "ANTHROPIC_BASE_URL"
_VARIABLES = (
    *LOGINS_OF_CLAUDE,
    *CLOUDS_OF_CLAUDE,
    *(_BASE_URL, "ANTHROPIC_MODEL", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_MAX_RETRIES", "API_TIMEOUT_MS", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK"),
    *("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"),
)
CREDENTIALS_OF_CLAUDE = ".credentials.json"
_PLUGINS = "plugins"
_KIND = PluginKind(
    manifest=".claude-plugin/plugin.json",
    words=("skills", "commands", "agents", "output-styles"),
    not_taken=(".mcp.json",),
    servers_hint="add them to your own with `claude mcp add`",
)


def environment_of_claude(request: LaunchRequest) -> dict[str, str]:
    """By what it logs in, whom it asks, and that it is to be quiet."""
    given = {**picked(request, _VARIABLES), **_provider(_copy(request))}
    return {
        **({} if given.keys() & {*LOGINS_OF_CLAUDE, *CLOUDS_OF_CLAUDE} else _token(request)),
        **given,
        **_QUIET,
    }


def environment_of_claude_over_acp(request: LaunchRequest) -> dict[str, str]:
    """Return the same with four tries and not ten: it is silent over the protocol meanwhile."""
    return {"CLAUDE_CODE_MAX_RETRIES": "4", **environment_of_claude(request)}


def _copy(request: LaunchRequest) -> SettingsCopy:
    return SettingsCopy(request, folder=_FOLDER, variable="CLAUDE_CONFIG_DIR")


def _provider(copy: SettingsCopy) -> dict[str, str]:
    """Return the variables of the user's settings that say whom it asks: they are always kept."""
    found = copy.json("settings.json").get("env")
    given = found.items() if isinstance(found, dict) else ()
    return {n: text_of(v) for n, v in given if n in _VARIABLES or copy.passes(n)}


def login_of_claude(request: LaunchRequest) -> str:
    """Return by what it logs in: the first variable of its own that is set, or its file."""
    given = {**environment_of_claude(request), **request.choice.env}
    found = (name for name in (*LOGINS_OF_CLAUDE, *CLOUDS_OF_CLAUDE) if given.get(name))
    is_kept = _TOKEN in given and not request.environment.get(_TOKEN)
    return "the login in ~/.claude" if is_kept else next(found, "")


def base_url_of_claude(request: LaunchRequest) -> BaseUrl | None:
    """Return the address that is asked, where it is not that of the vendor or of a cloud."""
    copy = _copy(request)
    given = environment_of_claude(request)
    if {*given, *request.choice.env} & {*CLOUDS_OF_CLAUDE}:
        return None
    file = copy.shown("settings.json") if _BASE_URL in _provider(copy) else ""
    return base_url_in(request, _BASE_URL, given, file=file)


def wanted_login_of_claude(request: LaunchRequest) -> str:
    """Return how to log in, where there is nothing by which Claude Code could."""
    given = {*environment_of_claude(request), *request.choice.env}
    is_kept = not request.user_home or IS_PORTABLE or bool(data_of_login(_login_file(request)))
    if is_kept or "--settings" in more_arguments(request):
        return ""  # its file may be renewed, a keychain may hold it
    found = given & {*LOGINS_OF_CLAUDE, *CLOUDS_OF_CLAUDE}
    return "" if found else "Start `claude` and type /login, or set ANTHROPIC_API_KEY."


def settings_of_claude(request: LaunchRequest) -> SettingsCopy:
    """Return the user's own instructions, skills, commands, sub-agents and MCP servers."""
    copy = _copy(request)
    copy.instructions("CLAUDE.md")
    for name in _IMPORT.findall(copy.words_of("CLAUDE.md") or ""):
        if ".." not in Path(name).parts:
            copy.instructions(name.removeprefix("~/.claude/"))
    copy.folders("rules", "skills", "commands", "agents", "output-styles")
    copy.code_folders("hooks")
    _copy_settings(request, copy)
    _copy_servers(request, copy)
    return copy


def _copy_settings(request: LaunchRequest, copy: SettingsCopy) -> None:
    settings, shown = copy.json("settings.json"), copy.shown("settings.json")
    copy.model = request.environment.get("ANTHROPIC_MODEL") or text_of(settings.get("model"))
    for name in filter(settings.get, _LEFT_SETTINGS):
        copy.leave(f"{name} of {shown}", _LEFT_SETTINGS[name])
    for name in table_of(settings.get("env")).keys() - _provider(copy).keys():
        copy.leave(f"{name} of {shown}", "not named in `sandbox.env`")
    kept = _kept_settings(request, settings) if copy.wants_all else {}
    if kept:
        copy.taken.append(f"{', '.join(sorted(kept))} of {shown}")
    kept |= copy.code_of(settings, ("hooks",), shown)
    if plugins := _copy_plugins(copy, settings.get("enabledPlugins")):
        kept["enabledPlugins"] = plugins
    if kept:
        copy.put(f"{_FOLDER}/settings.json", json.dumps(kept))


def _kept_settings(request: LaunchRequest, settings: Record) -> Record:
    kept = {name: settings[name] for name in _KEPT_SETTINGS if name in settings}
    if request.choice.model:
        kept.pop("model", None)
    denied = at(settings, "permissions", "deny")
    return {**kept, "permissions": {"deny": denied}} if denied else kept


def _copy_servers(request: LaunchRequest, copy: SettingsCopy) -> None:
    """Copy the MCP servers that the user has everywhere, and those of this repository alone."""
    is_moved = request.environment.get("CLAUDE_CONFIG_DIR")
    known = copy.json(".claude.json" if is_moved else f"{request.user_home}/.claude.json")
    here = at(known, "projects", request.folder) or {}
    found = {**table_of(known.get("mcpServers")), **table_of(at(here, "mcpServers"))}
    if servers := copy.servers(found, "~/.claude.json"):
        copy.put(".claude.json", json.dumps({"mcpServers": servers}))


def _login_file(request: LaunchRequest) -> Path:
    folder = request.environment.get("CLAUDE_CONFIG_DIR") or f"{request.user_home}/.claude"
    return Path(folder, CREDENTIALS_OF_CLAUDE)


def _token(request: LaunchRequest) -> dict[str, str]:
    """The access token of the user's own login, where no variable says how to log in.

    Never the refresh token beside it: it can be used once only, so a copy of the login in a
    worker's HOME would log the user out.
    """
    if not request.user_home:
        return {}
    kept = read_record(data_of_login(_login_file(request)))
    token, expires_ms = (at(kept, "claudeAiOauth", key) for key in ("accessToken", "expiresAt"))
    is_live = isinstance(expires_ms, int | float) and expires_ms / 1000 > time.time()
    return {_TOKEN: token} if isinstance(token, str) and is_live else {}


# ---------------------------------------------------------------------- plugins


def _copy_plugins(copy: SettingsCopy, enabled: object) -> dict[str, bool]:
    """Copy the plugins that are switched on, and return those that go along, as switched on."""
    wanted = [name for name, is_on in table_of(enabled).items() if is_on is True]
    if not (wanted and copy.wants_all):
        return {}
    installed = table_of(copy.json(f"{_PLUGINS}/installed_plugins.json").get("plugins"))
    found: dict[str, Path] = {}
    for name in wanted:
        place = _place_of(installed.get(name))
        if place is None or not is_name_of_plugin(name):
            copy.leave(f"plugin {name}", "it is not installed")
        elif copy_plugin(copy, _KIND, name, place=place, into=_into(name)):
            found[name] = place
    if found:
        copy.taken.append(f"plugins: {', '.join(found)}")
        _describe(copy, found)
    return dict.fromkeys(found, True)


def _place_of(installed: object) -> Path | None:
    """Return where a plugin is installed for its user."""
    for place in installed if isinstance(installed, list) else ():
        path = text_of(table_of(place).get("installPath"))
        if path.startswith("/") and Path(path).is_dir():
            return Path(path)
    return None


def _into(name: str) -> str:
    plugin, _, market = name.partition("@")
    return f"{_PLUGINS}/marketplaces/{market}/{plugin}"


def _describe(copy: SettingsCopy, found: dict[str, Path]) -> None:
    """Write the list of what is installed, and the marketplaces in which the client looks."""
    top = f"{copy.request.home}/.claude"
    markets: dict[str, list[Record]] = defaultdict(list)
    for name in found:
        plugin, _, market = name.partition("@")
        markets[market].append({"name": plugin, "source": f"./{plugin}"})
    for market, plugins in markets.items():
        told = {"name": market, "owner": {"name": "plait"}, "plugins": plugins}
        path = f"{_PLUGINS}/marketplaces/{market}/.claude-plugin/marketplace.json"
        copy.put_own(path, told)
    written = "1970-01-01T00:00:00.000Z"
    known = {}
    for market in markets:
        place = f"{top}/{_PLUGINS}/marketplaces/{market}"
        source = {"source": "directory", "path": place}
        known[market] = {"source": source, "installLocation": place, "lastUpdated": written}
    copy.put_own(f"{_PLUGINS}/known_marketplaces.json", known)
    installed = {
        name: [{"scope": "user", "installPath": f"{top}/{_into(name)}", "version": "1"}]
        for name in found
    }
    copy.put_own(f"{_PLUGINS}/installed_plugins.json", {"version": 2, "plugins": installed})
