"""Read the hours in which nobody is called. It loads nothing else: the first frame needs it."""

from datetime import time
from typing import NamedTuple


class QuietHours(NamedTuple):
    """Hold when nobody is called: from a time of the day to another, perhaps over midnight."""

    begin: time
    end: time

    def hold(self, at: time) -> bool:
        """Say if it is quiet at a time of the day."""
        if self.begin <= self.end:
            return self.begin <= at < self.end
        return at >= self.begin or at < self.end


def read_hours(text: str) -> QuietHours | None:
    """Return the hours that `22:00-07:30` means; None where it means none."""
    begin, sign, end = text.replace(" ", "").partition("-")
    try:
        return QuietHours(time.fromisoformat(begin), time.fromisoformat(end)) if sign else None
    except ValueError:
        return None
