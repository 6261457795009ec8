"""The lowest rung of git's protection: what git executes is the same after an attempt as before.

Looked at only where nothing keeps an attempt from the shared repository; where mounts do, a change
there is the user's own.
"""

import os
from pathlib import Path

import anyio.to_thread

from engine.ids import AttemptId
from engine.sandbox.tamper import Fingerprint, fingerprint, violations

_EXECUTED = ("config", "config.worktree", "hooks", "info/attributes", "info/exclude")


class TamperCheck:
    """Remembers what a repository's own files were when each attempt began."""

    def __init__(self, common_dir: str, *, is_needed: bool) -> None:
        self._paths = tuple(Path(common_dir, name) for name in _EXECUTED)
        self._is_needed = is_needed
        self._before: dict[AttemptId, Fingerprint] = {}

    async def begin(self, attempt: AttemptId) -> None:
        """Look before the agent starts."""
        if self._is_needed:
            self._before[attempt] = await anyio.to_thread.run_sync(fingerprint, self._paths)

    async def end(self, attempt: AttemptId) -> tuple[str, ...]:
        """The paths that are not as they were."""
        before = self._before.pop(attempt, None)
        if before is None:
            return ()
        after = await anyio.to_thread.run_sync(fingerprint, self._paths)
        return tuple(os.fsdecode(found.path) for found in violations(before, after))
