"""The logins that agents keep in a file of the user's, and how their own programs renew them.

A refresh token can be used once: whoever renews a login must write the new one back, so only the
agent's own program does it, on the user's own file. Nothing here reads or shows such a token.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL  # noqa: TID251  a number; anyio starts the program

import anyio

from engine.agents.claude import LOGIN_OF_CLAUDE
from engine.agents.codex import LOGIN_OF_CODEX
from engine.agents.presets import OVER_ACP
from engine.agents.records import at, number_of, read_record, text_of
from engine.agents.registry import adapter_named
from engine.agents.settings.claude import CREDENTIALS_OF_CLAUDE
from engine.agents.settings.files import data_of_login
from engine.plan.model import AgentChoice
from engine.values import dataclass

_LONGEST_RENEWAL_S = 60.0
# The smallest request there is: only a request makes claude look at how old its login is.
_RENEWS_CLAUDE = (
    *("claude", "-p", "--model", "haiku", "--tools", "", "--strict-mcp-config"),
    *("--no-session-persistence", "--settings", '{"disableAllHooks": true}', "Say ok."),
)
_PLACES = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
# Asks for the list of models, not for an answer of one.
_RENEWS_CODEX = ("codex", "debug", "models")
_KEPT = {
    "claude": (LOGIN_OF_CLAUDE, "CLAUDE_CONFIG_DIR", CREDENTIALS_OF_CLAUDE, _RENEWS_CLAUDE),
    "codex": (LOGIN_OF_CODEX, "CODEX_HOME", "auth.json", _RENEWS_CODEX),
}
"""Logins in a file that their own program renews."""
_OVER_ACP = frozenset(adapter.name for adapter in OVER_ACP)


@dataclass(frozen=True, kw_only=True)
class KeptLogin:
    """A login in a file.

    Attributes:
        renewal: The words by which the agent's own program renews it.
    """

    agent: str
    file: Path
    renewal: tuple[str, ...]

    def ends_at(self) -> float | None:
        """Return when its access token ends, on the wall clock; None where nothing says so.

        Reads a file, so call it outside an event loop.
        """
        kept = read_record(data_of_login(self.file))
        if self.agent == "claude":
            ends_ms = number_of(at(kept, "claudeAiOauth", "expiresAt"))
            return None if ends_ms is None else ends_ms / 1000
        return _end_of_token(text_of(at(kept, "tokens", "access_token")))

    def written_at(self) -> float | None:
        """Return when the file was last written; None where there is none."""
        try:
            return self.file.stat().st_mtime
        except OSError:
            return None

    async def renew(self, environment: Mapping[str, str], *, folder: Path) -> None:
        """Let the agent's own program renew it; whether it did, the file tells.

        Args:
            environment: The user's own, in which the program finds its login.
            folder: Where it works: an empty one, so that no project has a say in it.
        """
        # Broken off in the middle, it might not write down the token that it was given.
        with anyio.move_on_after(_LONGEST_RENEWAL_S, shield=True):
            try:
                await anyio.run_process(
                    self.renewal,
                    stdin=DEVNULL,
                    check=False,
                    cwd=folder,
                    env={**environment, **_QUIET},
                    start_new_session=True,
                )
            except OSError:
                return  # the program is not there: the login stays as it is


def identity_of_login(choice: AgentChoice, environment: Mapping[str, str]) -> str:
    """Return what all workers of one login have in common; it betrays nothing of the login.

    Reads tables, so call it outside an event loop.

    Raises:
        AgentNotFound: No adapter has that name, so nobody knows by what it logs in.
    """
    family = _family(choice)
    given = {**environment, **choice.env}
    variables = (*adapter_named(choice.adapter).login.variables, *_PLACES)
    told = {name: given[name] for name in variables if given.get(name)}
    named = json.dumps([family, sorted(told.items()), sorted(choice.env.items())])
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _family(choice: AgentChoice) -> str:
    """Return whose login it uses: over ACP another program drives the same agent."""
    adapter = choice.adapter
    return adapter.removesuffix("-acp") if adapter in _OVER_ACP else adapter


def kept_login(choice: AgentChoice, environment: Mapping[str, str]) -> KeptLogin | None:
    """The login in a file that this agent would use; None where a variable says how to log in."""
    family = _family(choice)
    if family not in _KEPT:
        return None
    traces, variable, name, renewal = _KEPT[family]
    given = {**environment, **choice.env}
    if any(given.get(v) for v in traces.variables) or not environment.get("HOME"):
        return None
    folder = environment.get(variable) or f"{environment['HOME']}/.{family}"
    # A program named for an ACP agent is another one.
    program = choice.options.get("program", family) if choice.adapter == family else family
    return KeptLogin(agent=family, file=Path(folder, name), renewal=(program, *renewal[1:]))


def _end_of_token(token: str) -> float | None:
    """Return when a token says that it ends; it is not checked, only read."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004  head, claims and signature of a JSON Web Token
        return None
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        return number_of(at(json.loads(base64.urlsafe_b64decode(padded)), "exp"))
    except ValueError:
        return None
