"""What the user's `config.toml` says of notifications, and the command that is run for one.

The engine that is left alone runs it, so that it is run whether a console is open or not. It hears
what happened in its environment, never in its words: what agents write is no command.
"""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import anyio

from engine.api import Engine
from engine.events import Asked, ChoiceWanted, ConflictsFound, ReviewWanted, RunFinished, Told
from tui.commands.base import say
from tui.commands.following import sentence
from tui.present.clean import clean

_WANTED = Asked | ChoiceWanted | ConflictsFound | ReviewWanted | RunFinished
_PATIENCE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Notify:
    """Whether the terminal is told (`notify = false` turns it off), and the user's `hook`."""

    is_on: bool = True
    hook: str = ""


def read_notify() -> Notify:
    """The user's wishes; a file that cannot be understood is said and left alone."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    path = Path(home) / "plait" / "config.toml"
    try:
        wishes = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Notify()
    except (OSError, ValueError) as error:
        say(f"{path}: {error}")
        return Notify()
    return Notify(is_on=wishes.get("notify") is not False, hook=str(wishes.get("hook") or ""))


async def run_hook(engine: Engine, hook: str) -> None:
    """Run the command whenever a human is needed or a run has ended, from now on."""
    began = (await engine.snapshot()).at
    async for told in engine.events():
        if isinstance(told.event, _WANTED) and told.at >= began:
            with anyio.move_on_after(_PATIENCE_S):
                await anyio.run_process(
                    ["sh", "-c", hook], check=False, env={**os.environ, **_described(told)}
                )


def _described(told: Told) -> dict[str, str]:
    return {
        "PLAIT_EVENT": type(told.event).__name__,
        "PLAIT_RUN": told.run,
        "PLAIT_WORKER": str(getattr(told.event, "worker", "")),
        "PLAIT_TEXT": clean(sentence(told) or f"run {told.run}"),
    }
