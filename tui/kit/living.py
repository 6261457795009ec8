"""Keep what lives in a console besides its screens: its session, what outlives it, its calls.

All that needs the engine's words is loaded with this module, and not before: see `opening`.
"""

from pathlib import Path
from typing import NamedTuple

from tui.kit.memory import Memory
from tui.kit.session import Session
from tui.kit.working import keep_trace
from tui.words.attention import (
    KEEP_TITLE,
    PUT_TITLE_BACK,
    Needs,
    desktop_words,
    needs_of,
    notification,
    sentence_of_absence,
    sentence_of_new,
    set_title,
    title_of_view,
    tmux_words,
    window_state,
)


class Call(NamedTuple):
    """Hold what the terminal shows, and who begins to need a human, since the last look.

    Attributes:
        desktop: The command that notifies, and what the terminal shows if that fails.
        tmux: The command that marks the window of tmux; empty if it is marked.
    """

    sequences: tuple[str, ...]
    rings: bool
    new: Needs
    desktop: tuple[tuple[str, ...], str] | None = None
    tmux: tuple[str, ...] = ()


class Living:
    """A session, the memory that it leaves, and what was last called for."""

    begins, ends = KEEP_TITLE, PUT_TITLE_BACK

    def __init__(
        self,
        session: Session,
        *,
        is_in_tmux: bool,
        terminal: str = "",
        desktop: str = "",
        pane: str = "",
    ) -> None:
        """Live in a terminal.

        Args:
            session: What is kept of it.
            is_in_tmux: It is one of tmux.
            terminal: Its name, as TERM has it.
            desktop: The program that notifies over D-Bus; empty where there is none.
            pane: Its pane in tmux.
        """
        self.session = session
        self.desktop = desktop
        self._pane = pane if is_in_tmux else ""
        self._window = ""
        self._terminal = terminal
        self._is_in_tmux = is_in_tmux
        self._memory: Memory | None = None
        self._needs: Needs | None = None
        self._title = ""

    def recall(self, path: Path) -> None:
        """Take in what an earlier console left, and leave it there again."""
        self._memory = Memory(path)
        self._memory.recall(self.session)

    def unwritten(self) -> str:
        """Return what is not remembered yet; nothing where nothing is new."""
        return self._memory.changed(self.session) if self._memory else ""

    def write(self, text: str) -> None:
        """Remember it."""
        if self._memory and text:
            self._memory.write(text)

    def keep_trace(self, error: Exception) -> str:
        """Keep where an error came from, beside what is remembered; return the name of that log."""
        log = self._memory.path.with_suffix(".log") if self._memory else None
        return str(log) if log and keep_trace(log, error) else ""

    def absence(self) -> str:
        """Return, once, what has happened since the console before this one was left."""
        memory = self._memory
        if memory is None or memory.left_at is None or not self.session.view.runs:
            return ""
        self.session.left_at, memory.left_at = memory.left_at, None
        return sentence_of_absence(self.session.view, self.session.left_at)

    def leave(self) -> None:
        """Remember all, and that somebody looked until now."""
        self.write(self.unwritten())
        if self._memory:
            self._memory.leave()

    def call(self, *, is_quiet: bool = False) -> Call:
        """Return what has come up since the last look; the first look calls nobody."""
        view, before = self.session.view, self._needs
        self._needs = needs_of(view)
        said = "" if before is None or is_quiet else sentence_of_new(before, self._needs)
        title, terminal = title_of_view(view), self._terminal
        sequences: list[str] = []
        desktop: tuple[tuple[str, ...], str] | None = None
        if said:
            notice = notification(said, is_in_tmux=self._is_in_tmux, terminal=terminal)
            if self.desktop:
                desktop = desktop_words(self.desktop, said), notice
            else:
                sequences.append(notice)
        if title != self._title:
            self._title = title
            sequences.append(set_title(title))
        new: Needs = frozenset() if before is None else self._needs - before
        return Call(tuple(sequences), bool(said), new, desktop, self._tell_window())

    def _tell_window(self) -> tuple[str, ...]:
        state = window_state(self.session.view)
        if not self._pane or state == self._window:
            return ()
        self._window = state
        return tmux_words(self._pane, state)

    def leave_window(self) -> tuple[str, ...]:
        """Return the command that removes this console's marks from tmux's window."""
        return tmux_words(self._pane, "") if self._window else ()
