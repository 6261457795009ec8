"""Try results in the checkout that the console was opened in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a console that tries nothing needs none of what the front door imports
    from engine.api import OpenTry, TakenBack
    from engine.messages.commands import Seen


class Trials:
    """Puts results into a checkout, and takes them back byte for byte."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._environment = environment

    async def put(self, run: str, worker: str, seen: Seen | None) -> OpenTry:
        """Put a worker's merged result into the checkout, in place of another one there.

        Raises:
            EngineError: It cannot be done safely, and why; no file was touched.
        """
        from engine.api import try_worker  # noqa: PLC0415  only where something is tried

        trial, _ = await try_worker(
            self.folder, worker, run=run, seen=seen, environment=self._environment
        )
        return trial

    async def back(self) -> TakenBack | None:
        """Take back what is tried; None where nothing is.

        Raises:
            EngineError: It cannot be done safely, and why; no file was touched.
        """
        from engine.api import end_try  # noqa: PLC0415  only where something is tried

        return await end_try(self.folder, environment=self._environment)
