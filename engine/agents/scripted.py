"""The scripted agent: plays a script as a real program, needs no key, no network and no model.

Demo, tests and pictures stand on it, so it goes the way every other agent goes.
"""

import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from engine.agents.contract import (
    ABLE_TO_ALL,
    NO_VENDOR,
    AgentLaunch,
    Capabilities,
    FoundAgent,
    LaunchFile,
    LaunchRequest,
    LoginTraces,
)
from engine.agents.own_stream import OwnStream
from engine.agents.prompting import hint_of, system_text, user_text
from engine.agents.script import Script, ScriptInvalid, read_script
from engine.ids import WorkerId
from engine.plan.model import AgentChoice
from engine.values import dataclass

PLAYER_FILE = ".plait/script_player.py"
SCRIPT_FILE = ".plait/script.json"
_DEFAULT = "[{say: 'I was asked: {prompt}'}, {sleep: 0.1}, {result: 'Done.'}]"
_PLAYER = Path(__file__).with_name("script_player.py")


@dataclass(frozen=True, kw_only=True)
class ScriptedAdapter:
    """Plays the option `script`: a path, relative to the manifest, or the YAML itself."""

    name: str = "scripted"
    install_hint: str = "comes with plait"
    capabilities: Capabilities = ABLE_TO_ALL
    login: LoginTraces = NO_VENDOR

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """The player with the steps of this worker's attempt, both written into its HOME."""
        script = _script(request)
        worker = WorkerId.parse(request.worker)
        is_resumed = request.session is not None
        played = {
            "steps": script.steps_for(worker, request.attempt, is_resumed=is_resumed),
            "seed": f"{script.seed}/{request.worker}/{request.attempt}",
            "pace": script.pace * float(request.choice.options.get("pace", "1")),
            "session": _session(request),
            "values": {
                "prompt": user_text(request, is_resumed=is_resumed),
                "system": system_text(request),
                "hint": hint_of(request),
                "worker": request.worker,
                "index": str(worker.index),
                "step": worker.step,
                "attempt": str(request.attempt),
                "feedback": request.feedback,
                "model": request.choice.model or "scripted",
            },
        }
        return AgentLaunch(
            # The base interpreter and -S: no packages are needed, and it starts in half the time.
            argv=(_interpreter(), "-I", "-S", *(f"{request.home}/{f}" for f in _FILES)),
            env=dict(request.choice.env),
            files=(
                LaunchFile(path=PLAYER_FILE, data=_PLAYER.read_bytes()),
                LaunchFile(path=SCRIPT_FILE, data=json.dumps(played).encode()),
            ),
            keeps_stdin=True,
            reads=(sys.base_prefix,),
        )

    def parser(self, request: LaunchRequest) -> OwnStream:
        """Our own protocol, which the player speaks."""
        return OwnStream(request, speaks=True)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Always there."""
        del environment
        return FoundAgent(
            name=self.name,
            path=str(_PLAYER),
            version="1",
            login="needs none",
            driven="plait's own line protocol, both ways",
            capabilities=self.capabilities,
            install_hint=self.install_hint,
        )


_FILES = (PLAYER_FILE, SCRIPT_FILE)


def _interpreter() -> str:
    return getattr(sys, "_base_executable", None) or sys.executable


def _session(request: LaunchRequest) -> str:
    if request.session and not request.is_fork:
        return request.session
    return str(uuid.uuid4())


def check_script(choice: AgentChoice) -> None:
    """Refuse a script that is wrong, before anything runs; a path's file is read at the start.

    Raises:
        ScriptInvalid: It has problems; all of them are named.
    """
    given = choice.options.get("script", "")
    if choice.adapter == "scripted" and _is_written_out(given):
        _read(choice, given)


def _is_written_out(given: str) -> bool:
    return "\n" in given or given.lstrip().startswith(("{", "[", "-"))


def _read(choice: AgentChoice, text: str) -> Script:
    return read_script(text, f"the script of {choice.name!r}")


def _script(request: LaunchRequest) -> Script:
    given = request.choice.options.get("script", _DEFAULT)
    if _is_written_out(given):
        return _read(request.choice, given)
    path = Path(request.folder, given)
    try:
        return read_script(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptInvalid(str(path), [f"cannot be read: {error}"]) from error
