"""Keep runs in SQLite files: one database for each run, one for each worker.

One process writes a file, any number read it. Every fault of a file is a `StoreError` that says
what to do. `database` knows the dangers of SQLite, `run_store` and `agent_store` know the two kinds
of file, `engine.store.layout` knows their paths.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engine.errors import NoSuchRun, StoreError
from engine.ids import RunId, WorkerId
from engine.messages.questions import RunSummary, Standing
from engine.store.layout import ASIDE, Layout
from engine.store.sqlite.agent_store import AgentStore
from engine.store.sqlite.database import Database
from engine.store.sqlite.run_store import SCHEMA, STANDING, RunStore
from engine.store.sqlite.summaries import Summaries


class SqliteStore:
    """The store of the repository that a layout belongs to."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._summaries = Summaries(layout.summaries_json, _summary)

    def runs(self) -> list[RunSummary]:
        """Return every run, the newest first; those that cannot be read are among them.

        It reads a few rows of each journal that was written since it was read last.
        """
        summaries = self._summaries.of(map(self._layout.run, self.names()))
        return sorted(summaries, key=lambda run: (run.started, run.id), reverse=True)

    def keep_summaries(self) -> None:
        """Write down what is known of the runs at a glance, so that the next process reads less."""
        with suppress(OSError):  # nobody waits for it: the next process reads more
            self._summaries.keep(map(self._layout.run, self.names()))

    def names(self) -> list[RunId]:
        """Return the name of every run, in no order; nothing of it is read."""
        try:
            with os.scandir(self._layout.runs) as folders:
                names = [folder.name for folder in folders if folder.is_dir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [RunId(name) for name in names if not name.startswith(ASIDE)]

    def create(
        self, run: RunId, *, plan_json: str, core_version: int, meta: Mapping[str, str]
    ) -> RunStore:
        """Begin the journal of a new run, in a folder of its own.

        Raises:
            StoreError: There is one already, or it cannot be written.
        """
        path = self._layout.run_db(run)
        self._layout.make(path.parent)
        return RunStore.create(path, plan_json=plan_json, core_version=core_version, meta=meta)

    def run(self, run: RunId, *, read_only: bool = False) -> RunStore:
        """Open the journal of a run, to go on with or only to read.

        Raises:
            NoSuchRun: There is none of that name.
            StoreError: It is damaged, foreign, or of another version of plait.
        """
        return RunStore.open(self._file(run), read_only=read_only)

    def stamp(self, run: RunId) -> tuple[tuple[int, int], ...]:
        """Return the sizes and times of a journal's files: every commit changes one of them.

        Raises:
            NoSuchRun: There is none of that name.
        """
        path = self._file(run)
        files = (path, path.with_name(f"{path.name}-wal"))
        found = [file.stat() for file in files if file.exists()]
        return tuple((stat.st_size, stat.st_mtime_ns) for stat in found)

    def agent(self, run: RunId, worker: WorkerId) -> AgentStore:
        """Return the log of a worker; the first record makes its file."""
        return AgentStore(self._layout.agent_db(run, worker))

    def _file(self, run: RunId) -> Path:
        try:
            path = self._layout.run_db(run)
        except ValueError:
            raise NoSuchRun(run) from None
        if not path.is_file():
            raise NoSuchRun(run)
        return path


def open_copy(path: Path) -> RunStore:
    """Open a file that `RunJournal.copy` wrote, to be read: SQLite, whatever store it came from.

    Raises:
        StoreError: It is missing, damaged, foreign, or of another version of plait.
    """
    return RunStore.open(path, read_only=True)


def _summary(folder: Path) -> RunSummary:
    run, path = RunId(folder.name), folder / "run.db"
    try:
        database = Database.open(path, SCHEMA, read_only=True)
        try:
            return _read(run, database, made=path.stat().st_mtime)
        finally:
            database.close()
    except (StoreError, OSError, ValueError) as error:
        made = folder.stat().st_mtime
        return RunSummary(id=run, started=made, standing=Standing.UNREADABLE, problem=str(error))


def _read(run: RunId, database: Database, *, made: float) -> RunSummary:
    # The same words as those of the index, or SQLite would not use it.
    marks = f"FROM event WHERE {STANDING} ORDER BY seq"
    began = database.rows(f"SELECT at, json_extract(json, '$.name') {marks} LIMIT 1")
    mark = database.rows(
        f"SELECT seq, kind, json_extract(json, '$.report.outcome') {marks} DESC LIMIT 1"
    )
    last = database.rows("SELECT at FROM event ORDER BY seq DESC LIMIT 1")
    seq, kind, verdict = mark[0] if mark else (0, "", None)
    moved = database.rows("SELECT 1 FROM event WHERE seq > ? AND kind = 'WorkerMoved' LIMIT 1", seq)
    return RunSummary(
        id=run,
        started=began[0][0] if began else made,
        standing=Standing.UNFINISHED if moved else _STANDINGS.get(kind, Standing.UNFINISHED),
        verdict=verdict,
        name=str(began[0][1] or "") if began else "",
        last=last[0][0] if last else None,
    )


_STANDINGS = {"RunWaiting": Standing.WAITING, "RunFinished": Standing.FINISHED}
