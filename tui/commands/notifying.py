"""Read what the user's `config.toml` says of notifications: if, how, and when not."""

import os
import tomllib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tui.commands.base import say
from tui.words.hours import QuietHours, read_hours


@dataclass(frozen=True, kw_only=True)
class Notify:
    """Hold if the terminal is notified, the user's `hook`, and the hours of `quiet`.

    In the quiet hours nobody is called.
    """

    is_on: bool = True
    hook: str = ""
    quiet: QuietHours | None = None

    def is_quiet(self) -> bool:
        """Say if these are quiet hours, by the clock of this machine."""
        return self.quiet is not None and self.quiet.hold(datetime.now().astimezone().time())


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
    wanted = str(wishes.get("quiet") or "")
    quiet = read_hours(wanted)
    if wanted and quiet is None:
        say(f'{path}: quiet = "{wanted}": expected two times of day, such as "22:00-07:30"')
    return Notify(
        is_on=wishes.get("notify") is not False, hook=str(wishes.get("hook") or ""), quiet=quiet
    )
