"""Read a run that `plait export` wrote into one file, to play it anywhere.

The file is a copy of the run's journal with what the journal does not hold beside it: every log as
it was read, and every change. No repository is needed to play it, and no engine is asked.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from engine.api.replaying import Replay, read_journal
from engine.errors import EngineError, NoSuchRun, StoreError
from engine.ids import RunId
from engine.messages.diffs import ChangeDiff
from engine.messages.logs import LogChunk, newest
from engine.messages.questions import A, Ask, ListRuns, ReadDiff, ReadLog, ReadRun
from engine.run.journal import Journal
from engine.store.codec import from_json, to_json
from engine.store.sqlite import open_copy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from os import PathLike

    from engine.messages.results import RunView
    from engine.port.port import EnginePort
    from engine.store.store import Store

    Logs = Mapping[tuple[str, int], LogChunk]
    """The log of every attempt, by worker and number."""

REPLAY_FILE = "replay.db"
"""The name of the file in the folder of an export."""


def exported_file(name: str | PathLike[str]) -> Path | None:
    """Return the file that a name means to be played: itself, or the one in an exported folder."""
    path = Path(name)
    inside = path / REPLAY_FILE
    return next((one for one in (path, inside) if one.is_file()), None)


async def replay_file(
    port: EnginePort, repository: str, view: RunView, *, store: Store, logs: Logs
) -> bytes:
    """Return a run as the bytes of one file that can be played."""
    kept = {"run": view.run, "repository": repository}
    for (name, number), chunk in logs.items():
        kept[f"log/{name}/{number}"] = to_json(chunk)
    for name in (worker.worker for worker in view.workers):
        with suppress(EngineError):  # it changed nothing, or that was cleaned away since
            kept[f"diff/{name}"] = to_json(await port.ask(ReadDiff(view.run, name)))
    return await anyio.to_thread.run_sync(partial(_packed, store, kept))


def _packed(store: Store, kept: Mapping[str, str]) -> bytes:
    with TemporaryDirectory(prefix="plait-") as folder:
        path = Path(folder, REPLAY_FILE)
        with store.run(RunId(kept["run"]), read_only=True) as journal:
            journal.copy(path, kept)
        return path.read_bytes()


@asynccontextmanager
async def open_exported(path: str | PathLike[str]) -> AsyncIterator[Replay]:
    """Open a run that was exported, to be played again.

    Raises:
        StoreError: The file was not written by `plait export`, or not by a plait like this one.
    """
    yield await anyio.to_thread.run_sync(_opened, Path(path))


def _opened(path: Path) -> Replay:
    with open_copy(path) as copy:
        kept = copy.kept()
        if not {"run", "repository"} <= kept.keys():
            raise StoreError(
                f"{path} is not an exported run",
                hint="`plait export` writes one. For a run of this repository, give its id.",
            )
        states, told = read_journal(Journal(RunId(kept["run"]), copy))
    port: Any = _Exported(kept)
    return Replay(port, kept["repository"], states, told)


class _Exported:
    """The part of an exported run that its journal does not hold; no engine is behind it."""

    def __init__(self, kept: Mapping[str, str]) -> None:
        self._kept = kept

    async def ask(self, question: Ask[A]) -> A:
        """Answer from what the file keeps.

        Raises:
            StoreError: The file does not hold it.
        """
        answer: Any = self._answer(question)
        return cast("A", answer)

    def _answer(self, question: Ask[Any]) -> object:
        match question:
            case ReadLog():
                return self._log(question)
            case ReadDiff():
                return self._diff(question)
            case ReadRun():
                raise NoSuchRun(RunId(question.run))
            case ListRuns():
                return ()
            case _:
                raise StoreError("this is an exported run, and its repository is not here")

    def _log(self, question: ReadLog) -> LogChunk:
        """Return an attempt's log as it was when it was exported."""
        if question.run != self._kept["run"]:
            raise NoSuchRun(RunId(question.run))
        text = self._kept.get(f"log/{question.worker}/{question.attempt}")
        chunk = from_json(LogChunk, text) if text else LogChunk()
        return replace(newest(tuple(chunk.lines), question.after, question.most), is_end=True)

    def _diff(self, question: ReadDiff) -> ChangeDiff:
        """Return a worker's last change, against where it began."""
        text = self._kept.get(f"diff/{question.worker}")
        if question.run != self._kept["run"] or question.against or text is None:
            raise StoreError("an exported run has only each worker's last change against its base")
        return from_json(ChangeDiff, text)
