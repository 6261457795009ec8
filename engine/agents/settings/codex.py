"""Give Codex its login, the user's provider, and copies of the user's settings.

A provider of the user's own is used as it is, or the start is refused: Codex without it would send
the code to somebody else.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.agents.contract import BaseUrl, LaunchRequest
from engine.agents.options import more_arguments
from engine.agents.permitting import is_allowed_unasked
from engine.agents.records import Record, at, read_record, table_of, text_of
from engine.agents.settings.copied import SettingsCopy
from engine.agents.settings.files import data_of_login
from engine.agents.settings.plugins import PluginKind, copy_plugin, is_name_of_plugin
from engine.errors import AgentError
from engine.plan.model import PermissionMode

_FOLDER = ".codex"
_OWN: Record = {"check_for_update_on_startup": False, "analytics": {"enabled": False}}
KEYS_OF_CODEX = ("CODEX_API_KEY", "OPENAI_API_KEY")
_OF_THE_PROVIDER = (
    *("model", "model_provider", "openai_base_url", "chatgpt_base_url", "oss_provider"),
    *("model_context_window", "model_auto_compact_token_limit", "service_tier"),
)
_KEPT = (
    *("model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "personality"),
    *("web_search", "tools", "project_doc_max_bytes", "project_doc_fallback_filenames"),
)
_CODE = ("hooks", "notify")
_PLUGINS, _FROM_HERE = "plugins/cache", "local"
_KIND = PluginKind(
    manifest=".codex-plugin/plugin.json",
    words=("skills",),
    not_taken=(".mcp.json", ".app.json", ".claude-plugin"),
    servers_hint="add them to your own with `codex mcp add`",
)
_LEFT = {
    "model_instructions_file": "it replaces the client's own instructions",
}
_BUILT_IN = {"openai", "ollama", "lmstudio", "amazon-bedrock"}
_KEY_TOLD = re.compile(r"env_key\"?\s*[=:]\s*[\"']?(\w+)")
_URL_TOLD = r"base_url\"?\s*[=:]\s*[\"']?([^\"'\s,}]+)"
_OF_ONE = r"(?:(?!model_providers)[^{}])*?"
"""Words about one provider, and not those of the next."""
_CHOSEN = re.compile(r"model_provider\"?\s*[=:]\s*[\"']?([\w-]+)")


def home_of_codex(request: LaunchRequest) -> dict[str, str]:
    """Return the folder of the worker's in which Codex keeps its things."""
    return {"CODEX_HOME": f"{request.home}/{_FOLDER}"}


def environment_of_codex(request: LaunchRequest) -> dict[str, str]:
    """Return its folder, and the key that the user's own provider wants, by its name."""
    copy = _copy(request)
    provider = _provider(request, _config(copy))
    names = [text_of(provider.get("env_key"))]
    headers = provider.get("env_http_headers")
    names += map(text_of, headers.values()) if isinstance(headers, dict) else ()
    given = {**request.environment, **request.choice.env}
    return {**{n: given[n] for n in names if given.get(n)}, **home_of_codex(request)}


def environment_over_acp(request: LaunchRequest) -> dict[str, str]:
    """Return the same with the mode in which it begins.

    Within our sandbox its own cannot be set up. Read-only, it asks for all that it may not do.
    """
    permissions = request.permissions
    is_left = permissions.mode is PermissionMode.AUTO and not request.is_confined
    mode = "workspace-write" if is_left and not permissions.deny else "read-only"
    mode = "agent-full-access" if is_allowed_unasked(request) else mode
    return {**environment_of_codex(request), "INITIAL_AGENT_MODE": mode}


def settings_of_codex(request: LaunchRequest) -> SettingsCopy:
    """Return its settings and, where the user has one, a login and settings of the user's own."""
    copy = _copy(request)
    config = _config(copy)
    provider = _provider(request, config)
    copy.model = text_of(config.get("model"))
    copy.instructions("AGENTS.override.md", "AGENTS.md")
    copy.folders("skills", "prompts", "agents")
    for name, why in _LEFT.items():
        if config.get(name):
            copy.leave(f"{name} of {copy.shown('config.toml')}", why)
    wanted = (*_OF_THE_PROVIDER, *(_KEPT if copy.wants_all else ()))
    kept = {name: config[name] for name in wanted if name in config}
    kept |= copy.code_of(config, _CODE, copy.shown("config.toml"))
    copy.code_folders("hooks")
    if kept:
        copy.taken.append(f"{', '.join(kept)} of {copy.shown('config.toml')}")
    if plugins := _copy_plugins(copy, config.get("plugins")):
        kept["plugins"] = plugins
    if provider:
        kept["model_providers"] = {_provider_named(request, config): provider}
    if servers := copy.servers(config.get("mcp_servers"), copy.shown("config.toml")):
        kept["mcp_servers"] = servers
    copy.put(f"{_FOLDER}/config.toml", toml_text({**kept, **_OWN}))
    login = _login(request) if provider.get("requires_openai_auth", not provider) else None
    if login is not None:
        copy.put(f"{_FOLDER}/auth.json", json.dumps(login))
    return copy


def login_of_codex(request: LaunchRequest) -> str:
    """Return by what Codex logs in: the variable of its provider, or of its own, or its file."""
    config = _config(_copy(request))
    provider = _provider(request, config)
    if provider or _provider_named(request, config) != "openai":
        told = _KEY_TOLD.search(_told(request))
        return text_of(provider.get("env_key")) or (told[1] if told else "")
    found = (name for name in KEYS_OF_CODEX if request.environment.get(name))
    return next(found, "the login in ~/.codex" if _login(request) else "")


def base_url_of_codex(request: LaunchRequest) -> BaseUrl | None:
    """Return the address of the provider that is asked, where it is not the vendor's own."""
    copy = _copy(request)
    config = _config(copy)
    name = _provider_named(request, config)
    told = re.search(
        rf"model_providers\W+{re.escape(name)}\b{_OF_ONE}\{{?{_OF_ONE}{_URL_TOLD}", _told(request)
    )
    if told:
        agent = request.choice.name
        return BaseUrl(url=told[1], named_by=f"the agent {agent!r} of the manifest")
    found = _provider(request, config).get("base_url")
    if name == "openai":
        found = found or config.get("openai_base_url")
    url = text_of(found)
    return BaseUrl(url=url, named_by=copy.shown("config.toml")) if url else None


def wanted_login_of_codex(request: LaunchRequest) -> str:
    """Return how to log in, where Codex asks OpenAI and there is nothing by which it could."""
    config = _config(_copy(request))
    is_own = _provider(request, config) or text_of(config.get("model_provider")) not in {
        "",
        "openai",
    }
    if (
        is_own
        or not request.user_home
        or _login(request)
        or request.choice.env.keys() & {*KEYS_OF_CODEX}
    ):
        return ""
    return "Run `codex login`, or set OPENAI_API_KEY."


def _copy(request: LaunchRequest) -> SettingsCopy:
    return SettingsCopy(request, folder=_FOLDER, variable="CODEX_HOME")


def _config(copy: SettingsCopy) -> Record:
    """The user's settings, those of the profile that is chosen there in place of the others."""
    try:
        config = tomllib.loads(copy.text("config.toml") or "")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise copy.unreadable("config.toml", error) from error
    profile = at(config, "profiles", text_of(config.get("profile")))
    return {**config, **(profile if isinstance(profile, dict) else {})}


# ---------------------------------------------------------------------- whom it asks


def _told(request: LaunchRequest) -> str:
    """Return the agent's own settings: arguments, or the JSON that `codex-acp` takes for them."""
    return " ".join((*more_arguments(request), request.choice.env.get("CODEX_CONFIG", "")))


def _provider_named(request: LaunchRequest, config: Record) -> str:
    """Return the provider that the agent's `args` choose, or else the user's settings."""
    told = _CHOSEN.search(_told(request))
    return told[1] if told else text_of(config.get("model_provider")) or "openai"


def _provider(request: LaunchRequest, config: Record) -> Record:
    """Return the provider that the user's settings describe; nothing for one that is built in.

    Raises:
        AgentError: It is not described, or works only with a key that is not passed on by name.
    """
    name = _provider_named(request, config)
    provider = at(config, "model_providers", name)
    if isinstance(provider, dict):
        _check(request, name, provider)
        return provider
    if name == text_of(config.get("model_provider")) and name not in _BUILT_IN:
        raise AgentError(
            f"your settings name the model provider {name!r} but do not describe it",
            hint=f"Describe [model_providers.{name}] in ~/.codex/config.toml: plait uses no "
            "other provider.",
        )
    return {}


def _check(request: LaunchRequest, name: str, provider: Record) -> None:
    copy = _copy(request)
    given = {**request.environment, **request.choice.env}
    variable = text_of(provider.get("env_key"))
    if variable and not given.get(variable):
        raise AgentError(
            f"the model provider {name!r} needs its key in {variable}, which is not set",
            hint=f"Set {variable}, or name another provider in ~/.codex/config.toml.",
        )
    headers = provider.get("http_headers")
    secret = [
        header
        for header, value in (headers.items() if isinstance(headers, dict) else ())
        if copy.is_secret_header(header, text_of(value))
    ]
    found = [key for key in ("experimental_bearer_token", "auth") if provider.get(key)]
    if found or secret or copy.is_secret(text_of(provider.get("base_url"))):
        what = ", ".join((*found, *secret)) or "base_url"
        raise AgentError(
            f"the model provider {name!r} has its key in {what}, which plait does not pass to "
            "workers",
            hint="Name a variable in its `env_key` or `env_http_headers` instead.",
        )


# ---------------------------------------------------------------------- plugins


def _copy_plugins(copy: SettingsCopy, known: object) -> Record:
    """Copy the plugins that are switched on, and return those that go along, as switched on."""
    found: Record = {}
    for name, about in table_of(known).items() if copy.wants_all else ():
        if at(about, "enabled") is False:
            continue
        plugin, _, market = name.partition("@")
        top = f"{_PLUGINS}/{market}/{plugin}"
        version = _newest(copy.entries(top)) if is_name_of_plugin(name) else None
        if version is None:
            copy.leave(f"plugin {name}", "it is not installed")
        elif copy_plugin(copy, _kind(version), name, place=version, into=f"{top}/{version.name}"):
            found[name] = {"enabled": True}
    if found:
        copy.taken.append(f"plugins: {', '.join(found)}")
    return found


def _kind(place: Path) -> PluginKind:
    """Return how a plugin describes itself: Codex also takes those that were made for Claude."""
    if (place / _KIND.manifest).exists():
        return _KIND
    return replace(_KIND, manifest=".claude-plugin/plugin.json")


def _newest(versions: list[Path]) -> Path | None:
    """Return the folder that Codex itself would take: one from this machine, else the newest."""
    folders = [one for one in versions if one.is_dir() and not one.is_symlink()]
    here = [one for one in folders if one.name == _FROM_HERE]
    return max(here or folders, key=_by_number, default=None)


def _by_number(version: Path) -> tuple[list[int], str]:
    """Return what versions are ordered by: their numbers, and a release after its candidates."""
    release, dash, _ = version.name.partition("-")
    numbers = [int(word) for word in re.findall(r"\d+", release)]
    return numbers, "" if dash else version.name


# ---------------------------------------------------------------------- by what it logs in


def _login(request: LaunchRequest) -> Record | None:
    """Return a key, or a login without its refresh token.

    That token can be used once only: a copy of it in a worker's HOME would log the user out.
    """
    kept = _kept_login(request)
    key = next((value for name in KEYS_OF_CODEX if (value := request.environment.get(name))), None)
    if key := key or text_of(at(kept, "OPENAI_API_KEY")):
        return {"auth_mode": "apikey", "OPENAI_API_KEY": key}
    tokens = at(kept, "tokens")
    if not text_of(at(tokens, "access_token")):
        return None
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # else codex would try to renew it
    return {"tokens": {**tokens, "refresh_token": ""}, "last_refresh": now}


def _kept_login(request: LaunchRequest) -> object:
    if not request.user_home:
        return None
    folder = request.environment.get("CODEX_HOME") or f"{request.user_home}/{_FOLDER}"
    return read_record(data_of_login(Path(folder, "auth.json")))


# ---------------------------------------------------------------------- TOML


def toml_word(text: str) -> str:
    """Return a text as TOML writes it: as JSON does, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(table: Mapping[str, Any]) -> str:
    """Return a TOML document; tables in it are written in place."""
    return "".join(f"{toml_word(name)} = {_toml(value)}\n" for name, value in table.items())


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return toml_word(value)
        case dict():
            inner = (f"{toml_word(name)} = {_toml(one)}" for name, one in value.items())
            return f"{{{', '.join(inner)}}}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return str(value)
