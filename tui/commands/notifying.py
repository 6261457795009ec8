"""Read what the user's `config.toml` says of notifications."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tui.commands.base import say


@dataclass(frozen=True, kw_only=True)
class Notify:
    """Hold whether the terminal is told (`notify = false` turns it off), and the user's `hook`."""

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
