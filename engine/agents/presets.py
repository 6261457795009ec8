"""Agents as presets: those that speak plain text only, and those that were tried over ACP."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from engine.agents.acp import ABLE_OVER_ACP, AcpAdapter
from engine.agents.claude import LOGIN_OF_CLAUDE
from engine.agents.claude_settings import (
    environment_of_claude_over_acp,
    login_of_claude,
    settings_of_claude,
    wanted_login_of_claude,
)
from engine.agents.codex import LOGIN_OF_CODEX
from engine.agents.codex_settings import (
    environment_over_acp,
    login_of_codex,
    settings_of_codex,
    wanted_login_of_codex,
)
from engine.agents.command import CommandAdapter
from engine.agents.contract import Capabilities, HintChannel, LaunchRequest
from engine.agents.finding import LoginTraces
from engine.agents.permitting import is_allowed_unasked
from engine.agents.records import Record, text_of
from engine.agents.user_settings import SettingsCopy
from engine.errors import AgentError
from engine.redaction import is_key_like

_LOGINS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY")
_KEYS = (*_LOGINS, "OPENAI_API_BASE")
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
_RUN_CODE = ("lint-cmd", "test-cmd", "notifications-command", "load", "editor")
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
    for name in _RUN_CODE:
        if config.get(name):
            copy.leave(f"{name} of {shown}", "it runs code")
    wanted = (*_OF_THE_PROVIDER, *(_KEPT_OF_AIDER if copy.wants_all else ()))
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
    copy.taken += [f"{name} of ~/{_ENV_OF_MINI}" for name in _variables(copy, _ENV_OF_MINI)]
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


def _variables(copy: SettingsCopy, name: str) -> dict[str, str]:
    found = {variable: value for variable, _, value in _VARIABLE.findall(copy.text(name) or "")}
    known = (*_KEYS, _MODEL_OF_MINI)
    given = copy.request.environment
    return {name: found[name] for name in known if found.get(name) and not given.get(name)}


def _config_of_aider(copy: SettingsCopy) -> Record:
    try:
        config: Any = yaml.safe_load(copy.text(_CONFIG) or "")
    except yaml.YAMLError as error:
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
                f"~/{_CONFIG} holds its key in {name}, which no worker is given",
                hint=f"Set {variable} to it instead.",
            )


def _read(copy: SettingsCopy, config: Record) -> list[str]:
    """Copy the files that are read before the work, and return where they lie for the worker."""
    named = config.get("read") or ()
    home, places = copy.request.user_home, []
    for name in [named] if isinstance(named, str) else named:
        path = str(name).replace("~", home, 1) if str(name).startswith("~/") else str(name)
        if not copy.wants_instructions or not Path(path).is_relative_to(home or "/nowhere"):
            continue
        into = str(Path(path).relative_to(home))
        copy.instructions(into)
        places.append(f"{copy.request.home}/{into}")
    return places


# Both look models up in a list of prices, and would fetch it from the network at each start.
_LOCAL_PRICES = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def own_program(name: str) -> str:
    """A program that an extra has put beside plait's interpreter; else its name, for the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else name


AIDER = CommandAdapter(
    name="aider",
    capabilities=Capabilities(),
    asks_by_litellm=True,
    argv=(
        *("aider", "--message-file", "{prompt_file}", "--yes-always", "--no-pretty", "--no-stream"),
        *("--analytics-disable", "--no-check-update", "--no-show-release-notes"),
        # Its history files belong to the worker, not into the work.
        *("--no-gitignore", "--input-history-file", "{home}/.aider.input.history"),
        *("--chat-history-file", "{home}/.aider.chat.history.md"),
        *("--config", "{home}/.aider.conf.yml"),
    ),
    model_argv=("--model", "{model}"),
    env=_LOCAL_PRICES,
    variables=_KEYS,
    login=LoginTraces(variables=_LOGINS, files=(".aider.conf.yml",)),
    settings=settings_of_aider,
    more_env=environment_of_aider,
    install_hint="uv tool install --python 3.12 aider-chat",
)

MINI = CommandAdapter(
    name="mini",
    capabilities=Capabilities(),
    asks_by_litellm=True,
    is_careless=True,
    argv=(
        *(own_program("mini"), "-y", "--exit-immediately", "-t", "{prompt}"),
        *("-o", "{home}/trajectory.json"),
    ),
    model_argv=("-m", "{model}"),
    env={
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        # Else it gives up on the first answer of a model whose price it does not know.
        "MSWEA_COST_TRACKING": "ignore_errors",
        **_LOCAL_PRICES,
    },
    variables=_KEYS,
    login=LoginTraces(variables=_LOGINS, files=(".config/mini-swe-agent/.env",)),
    settings=settings_of_mini,
    more_env=environment_of_mini,
    install_hint="plait's extra `mini`, or: uv tool install --with mcp mini-swe-agent",
)

_ASKS_OF_OPENCODE = {
    "*": "ask",
    **dict.fromkeys(("read", "glob", "grep", "list", "todoread", "todowrite"), "allow"),
}


def environment_of_opencode_over_acp(request: LaunchRequest) -> dict[str, str]:
    """Return what lets opencode ask before it acts: by itself it asks for nearly nothing."""
    if is_allowed_unasked(request):
        return {}
    return {"OPENCODE_PERMISSION": json.dumps(_ASKS_OF_OPENCODE)}


_BY_MODEL = ("--model", "{model}")
OVER_ACP = (
    AcpAdapter(
        name="gemini-acp",
        argv=("gemini", "--skip-trust", "--acp"),
        model=_BY_MODEL,
        table="gemini",
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.CONFIG_FILE, resume_elsewhere=False),
        install_hint="npm install -g @google/gemini-cli@latest",
    ),
    AcpAdapter(
        name="opencode-acp",
        argv=("opencode", "acp"),
        table="opencode",
        env=environment_of_opencode_over_acp,
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.CONFIG_FILE, resume_elsewhere=False),
        install_hint="npm install -g opencode-ai@latest",
    ),
    AcpAdapter(
        name="copilot-acp",
        argv=("copilot", "--acp"),
        model=_BY_MODEL,
        table="copilot",
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.CONFIG_FILE),
        install_hint="npm install -g @github/copilot@latest",
    ),
    AcpAdapter(
        name="qwen-acp",
        argv=("qwen", "--acp"),
        model=_BY_MODEL,
        table="qwen",
        capabilities=replace(ABLE_OVER_ACP, usage=False, resume_elsewhere=False),
        install_hint="npm install -g @qwen-code/qwen-code@latest",
    ),
    AcpAdapter(
        name="claude-acp",
        argv=("claude-agent-acp",),
        env=environment_of_claude_over_acp,
        settings=settings_of_claude,
        login_name=login_of_claude,
        wants_login=wanted_login_of_claude,
        login=LOGIN_OF_CLAUDE,
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.SYSTEM_PROMPT, cost=True),
        install_hint="npm install -g @agentclientprotocol/claude-agent-acp@latest",
    ),
    AcpAdapter(
        name="codex-acp",
        argv=("codex-acp",),
        env=environment_over_acp,
        settings=settings_of_codex,
        login_name=login_of_codex,
        wants_login=wanted_login_of_codex,
        login=LOGIN_OF_CODEX,
        capabilities=replace(ABLE_OVER_ACP, hint=HintChannel.SYSTEM_PROMPT),
        install_hint="npm install -g @agentclientprotocol/codex-acp@latest",
    ),
)
"""Agents that were tried over the Agent Client Protocol."""
