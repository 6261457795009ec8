"""Remember a repository from one day to the next: seen hunks, comments, prompts, filters, widths.

One small file. It is a convenience: one that is gone, or that cannot be read, is begun anew.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui.kit.session import Session
from tui.kit.starting import Wanted
from tui.words.comments import Comment

_MOST_SEEN = 50_000
_MOST_LOOKED = 500
_MOST_SENT = 200


class Memory:
    """The file of one repository, and what was last written into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = ""
        self.left_at: float | None = None

    def leave(self) -> None:
        """Remember that somebody looked until now: the age of the file says it."""
        with suppress(OSError):
            self.path.touch(0o600)

    def recall(self, session: Session) -> None:
        """Give a session what the one before it left."""
        try:
            left = json.loads(self.path.read_text("utf-8"))
            self.left_at = self.path.stat().st_mtime
            seen = {str(key) for key in left["seen"]}
            comments = [_comment(**comment) for comment in left["comments"]]
            looked = {str(about): str(head) for about, head in left.get("looked", {}).items()}
            filters = [str(kept) for kept in left.get("filters", ())]
            named = {str(name): str(kept) for name, kept in left.get("named", {}).items()}
            widths = {str(name): int(cells) for name, cells in left.get("widths", {}).items()}
            started = [Wanted.read(kept) for kept in left.get("started", ())]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return
        session.seen.update(seen)
        session.comments.extend(comments)
        session.looked.update(looked)
        session.filters = filters
        session.named_filters = named
        session.widths.update(widths)
        if session.starter:
            session.starter.hear(started)

    def changed(self, session: Session) -> str:
        """Return the text to write; nothing if it stands there already."""
        unsent = [comment._asdict() for comment in session.comments if not comment.is_sent]
        sent = [comment._asdict() for comment in session.comments if comment.is_sent]
        looked = dict(list(session.looked.items())[-_MOST_LOOKED:])
        seen = sorted(session.seen)[:_MOST_SEEN]
        started = [wanted.kept() for wanted in session.starter.recent] if session.starter else []
        left = {
            "seen": seen,
            "comments": [*sent[-_MOST_SENT:], *unsent],
            "looked": looked,
            "filters": session.filters,
            "named": session.named_filters,
            "widths": session.widths,
            "started": started,
        }
        text = json.dumps(left)
        return "" if text == self._written else text

    def write(self, text: str) -> None:
        """Write it, whole or not at all; a full disk takes the marks and nothing else."""
        own = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            own.write_text(text, "utf-8")
            own.replace(self.path)
        except OSError:
            own.unlink(missing_ok=True)
        self._written = text


def _comment(answers: Iterable[object] = (), **fields: Any) -> Comment:
    return Comment(**fields, answers=tuple(map(str, answers)))
