"""Remember answers in one file per repository: read, offer, correct, never lose any."""

import json
from functools import partial
from pathlib import Path
from typing import Self

from anyio import Lock, to_thread

from engine.merge import Memory, ResolutionSession, text_of
from engine.messages.commands import ConfirmAnswer, ForgetAnswer, ResolutionAction
from engine.store.files import write_atomically
from engine.store.layout import Layout

_MOST = 2000
"""More answers than this are not kept: the oldest go first."""


class MemoryFile:
    """The remembered answers of one repository."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: Memory | None = None
        self._writing = Lock()

    @classmethod
    def of(cls, layout: Layout) -> Self:
        """Return the remembered answers of a repository."""
        return cls(layout.root / "resolutions.json")

    async def read(self) -> Memory:
        """Return every remembered answer; an unreadable file counts as empty."""
        if self._known is None:
            self._known = await to_thread.run_sync(_read, self._path)
        return self._known

    async def learn(self, session: ResolutionSession, *, note: str) -> None:
        """Remember what was decided for every hunk."""
        async with self._writing:
            memory = await self.read()
            for conflict in session.conflicts:
                decided = session.resolutions.get(conflict.path)
                for hunk in conflict.open.hunks if decided else ():
                    choice = decided.hunks.get(hunk.key) if decided else None
                    text = text_of(hunk, choice) if choice is not None else None
                    if text is not None:
                        memory = memory.learned(hunk, text, note=note)
            await self._keep(memory)

    async def heeded(self, action: ResolutionAction) -> bool:
        """Do what an action asks of an answer: never offer it again, or mark it as right.

        Return False if the action is about no answer. An unknown answer is ignored.
        """
        if not isinstance(action, ForgetAnswer | ConfirmAnswer):
            return False
        async with self._writing:
            memory = await self.read()
            if isinstance(action, ForgetAnswer):
                await self._keep(memory.forgotten(action.key))
            elif action.key in memory.answers:
                await self._keep(memory.confirmed(action.key))
        return True

    async def _keep(self, memory: Memory) -> None:
        if memory.answers == (await self.read()).answers:
            return
        answers = list(memory.answers.items())[-_MOST:]
        kept = Memory(dict(answers))
        data = json.dumps(kept.to_json(), separators=(",", ":")).encode()
        await to_thread.run_sync(partial(write_atomically, self._path, data))
        self._known = kept


def _read(path: Path) -> Memory:
    try:
        return Memory.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return Memory()
