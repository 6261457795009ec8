"""Copy the settings of Aider and mini, who write plain text: a file each, and variables."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from engine.agents.base_urls import base_url_in
from engine.agents.contract import BaseUrl, LaunchRequest
from engine.agents.records import Record, text_of
from engine.agents.settings.copied import RUN_CODE, SettingsCopy
from engine.errors import AgentError
from engine.redaction import is_key_like

LOGINS_BY_LITELLM = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY")
_BASE_URL = "OPENAI_API_BASE"
KEYS_BY_LITELLM = (*LOGINS_BY_LITELLM, _BASE_URL)
_OF_OPENAI = re.compile(r"openai/|gpt|chatgpt|o\d")
"""Models for which that address counts: all others ask another vendor."""
_VARIABLE = re.compile(r"^\s*(?:export\s+)?(\w+)\s*=\s*([\"']?)(.*?)\2\s*$", re.MULTILINE)
_CONFIG = ".aider.conf.yml"
_OF_THE_PROVIDER = (
    *("model", "weak-model", "editor-model", "alias", "edit-format", "openai-api-base"),
    *("openai-api-type", "openai-api-version"),
)
_KEPT_OF_AIDER = (
    *("chat-language", "commit-language", "reasoning-effort", "thinking-tokens", "map-tokens"),
    *("cache-prompts", "architect", "editor-edit-format"),
)
_CODE_OF_AIDER = ("lint-cmd", "test-cmd")
_CODE_OF_ITS_TERMINAL = ("notifications-command", "load", "editor")
_NOBODY_SEES = "it is for a person at the terminal"
_ENV_OF_MINI = ".config/mini-swe-agent/.env"
_MODEL_OF_MINI = "MSWEA_MODEL_NAME"


def settings_of_aider(request: LaunchRequest) -> SettingsCopy:
    """Return its settings, and the files that it is to read before it works.

    Raises:
        AgentError: They cannot be read, or hold a key that nobody passes on.
    """
    copy = SettingsCopy(request, folder=".")
    config = _config_of_aider(copy)
    shown = f"~/{_CONFIG}"
    copy.model = text_of(config.get("model"))
    _check_keys(copy, config)
    if url := text_of(config.get("openai-api-base")):
        copy.base_url = BaseUrl(url=url, named_by=shown) if _asks_openai(copy) else None
    else:
        copy.base_url = _base_url(copy, environment_of_aider(request), "~/.env")
    for name in filter(config.get, (*_CODE_OF_AIDER, *_CODE_OF_ITS_TERMINAL)):
        if not copy.wants_code or name in _CODE_OF_ITS_TERMINAL:
            copy.leave(f"{name} of {shown}", RUN_CODE if name in _CODE_OF_AIDER else _NOBODY_SEES)
    wanted = (
        *_OF_THE_PROVIDER,
        *(_KEPT_OF_AIDER if copy.wants_all else ()),
        *(_CODE_OF_AIDER if copy.wants_code else ()),
    )
    kept = {name: config[name] for name in wanted if name in config}
    if kept:
        copy.taken.append(f"{', '.join(kept)} of {shown}")
    if read := _read(copy, config):
        kept["read"] = read
    # Named on its command line and so always there: it looks for its file by a glob of the HOME,
    # and where that has a bracket in its path it would ask another provider, unseen.
    copy.put(_CONFIG, yaml.safe_dump(kept))
    return copy


def settings_of_mini(request: LaunchRequest) -> SettingsCopy:
    """Return nothing but the list: mini has words of no user's, and variables alone."""
    copy = SettingsCopy(request, folder=".")
    given = environment_of_mini(request)
    copy.model = given.get(_MODEL_OF_MINI, "")
    in_file = _variables(copy, _ENV_OF_MINI)
    copy.taken += [f"{name} of ~/{_ENV_OF_MINI}" for name in in_file]
    copy.base_url = _base_url(copy, in_file, f"~/{_ENV_OF_MINI}")
    return copy


def environment_of_aider(request: LaunchRequest) -> dict[str, str]:
    """Return the variables that aider's user keeps in a file of the HOME."""
    return _variables(SettingsCopy(request, folder="."), ".env")


def environment_of_mini(request: LaunchRequest) -> dict[str, str]:
    """Return the variables that mini's user keeps in its file, and its model.

    Raises:
        AgentError: Nobody says which model it is to ask: it has none of its own.
    """
    found = _variables(SettingsCopy(request, folder="."), _ENV_OF_MINI)
    model = request.environment.get(_MODEL_OF_MINI) or found.get(_MODEL_OF_MINI)
    if not (model or request.choice.model or _MODEL_OF_MINI in request.choice.env):
        raise AgentError(
            f"the agent {request.choice.name!r} has no model",
            hint=f"Name one: `model:` of the agent, or {_MODEL_OF_MINI} in ~/{_ENV_OF_MINI}.",
        )
    return {**found, **({_MODEL_OF_MINI: model} if model else {})}


def _base_url(copy: SettingsCopy, in_file: Mapping[str, str], file: str) -> BaseUrl | None:
    """Return the address that a variable names, where the model that is asked heeds it."""
    if not _asks_openai(copy):
        return None
    given = {**copy.request.environment, **in_file}
    return base_url_in(copy.request, _BASE_URL, given, file=file if _BASE_URL in in_file else "")


def _asks_openai(copy: SettingsCopy) -> bool:
    return bool(_OF_OPENAI.match(copy.request.choice.model or copy.model))


def _variables(copy: SettingsCopy, name: str) -> dict[str, str]:
    found = {variable: value for variable, _, value in _VARIABLE.findall(copy.text(name) or "")}
    known = (*KEYS_BY_LITELLM, _MODEL_OF_MINI)
    given = copy.request.environment
    return {name: found[name] for name in known if found.get(name) and not given.get(name)}


def _config_of_aider(copy: SettingsCopy) -> Record:
    try:
        config: Any = yaml.safe_load(copy.text(_CONFIG) or "")
    except (yaml.YAMLError, RecursionError) as error:
        raise copy.unreadable(_CONFIG, error) from error
    return config if isinstance(config, dict) else {}


def _check_keys(copy: SettingsCopy, config: Record) -> None:
    """Refuse a key that stands in the settings: what they ask is asked by that key alone."""
    env = copy.request.environment
    for name, value in config.items():
        if name in {*_OF_THE_PROVIDER, *_KEPT_OF_AIDER} or not (is_key_like(str(name)) and value):
            continue
        variable = str(name).upper().replace("-", "_")
        if env.get(variable) != value and not copy.is_passed(str(value)):
            raise AgentError(
                f"~/{_CONFIG} has its key in {name}, which plait does not pass to workers",
                hint=f"Set {variable} to it instead.",
            )


def _read(copy: SettingsCopy, config: Record) -> list[str]:
    """Copy the files that are read before the work, and return where they lie for the worker."""
    named = config.get("read")
    home, places = copy.request.user_home, []
    for name in named if isinstance(named, list) else filter(None, [text_of(named)]):
        path = str(name).replace("~", home, 1) if str(name).startswith("~/") else str(name)
        if not copy.wants_instructions or not Path(path).is_relative_to(home or "/nowhere"):
            continue
        into = str(Path(path).relative_to(home))
        copy.instructions(into)
        places.append(f"{copy.request.home}/{into}")
    return places
