"""From keys as they are pressed to actions: single keys, and chords of two without a time limit."""

from dataclasses import dataclass, field

from tui.keys.table import CHORD_STARTS, Action, Keymap


@dataclass(frozen=True)
class Heard:
    """An action was named by what was pressed."""

    action: Action


@dataclass(frozen=True)
class Waits:
    """A chord has begun; `follow` holds the keys that can end it."""

    begun: str
    follow: tuple[tuple[str, Action], ...]


@dataclass
class Chords:
    """Keep what has been pressed so far on one screen."""

    keymap: Keymap
    begun: str = field(default="", init=False)

    def feed(self, key: str, screen: str) -> Heard | Waits | None:
        """The next key: an action, a begun chord, or None where the key means nothing here."""
        table = self.keymap.on(screen)
        if self.begun:
            sequence, self.begun = self.begun + key, ""
            action = table.get(sequence)
            return Heard(action) if action else None
        if key in CHORD_STARTS:
            follow = tuple((seq[1:], act) for seq, act in table.items() if _is_chord(seq, key))
            if follow:
                self.begun = key
                return Waits(key, follow)
            return None
        action = table.get(key)
        return Heard(action) if action else None

    def leave(self) -> bool:
        """Forget a begun chord; says whether there was one."""
        was_begun, self.begun = bool(self.begun), ""
        return was_begun


def _is_chord(sequence: str, start: str) -> bool:
    return len(sequence) > 1 and sequence[0] == start and "+" not in sequence[1:]
