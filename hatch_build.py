"""Puts the manual page and the completions, where `make pages` has made them, into the wheel."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {
    "plait.1": "share/man/man1/plait.1",
    "plait.bash": "share/bash-completion/completions/plait",
    "_plait": "share/zsh/site-functions/_plait",
    "plait.fish": "share/fish/vendor_completions.d/plait.fish",
}


class Pages(BuildHookInterface[Any]):
    """A build from a clone, where nobody has made them, goes without."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what is there, and where it belongs."""
        del version
        for name, place in PLACES.items():
            made = Path(self.root, "pages", name)
            if made.exists():
                build_data["shared_data"][str(made)] = place
