"""Map pressed keys to actions, by one table and the key file of the user.

This room knows ideas, screens and chords. It does not know what an action does, or if it may be
done now: screens do.
"""

from tui.keys.file import KeyProblem, read_key_file
from tui.keys.ideas import PLAYING, Idea
from tui.keys.table import (
    ACTIONS,
    CHORD_STARTS,
    IDEAS,
    SCREENS,
    Action,
    Keymap,
    actions_on,
    default_keymap,
    key_of,
    shown,
)

__all__ = [
    "ACTIONS",
    "CHORD_STARTS",
    "IDEAS",
    "PLAYING",
    "SCREENS",
    "Action",
    "Idea",
    "KeyProblem",
    "Keymap",
    "actions_on",
    "default_keymap",
    "key_of",
    "read_key_file",
    "shown",
]
