"""The runs of a repository at a glance: when, how they stand, how they came out.

Reads one row or two of each journal, never the whole. It cannot know whether a run that is not over
is still alive somewhere: whoever asks knows if an engine lives.
"""

from pathlib import Path

from engine.errors import StoreError
from engine.ids import RunId
from engine.messages.questions import RunSummary, Standing
from engine.store.database import Database
from engine.store.layout import Layout
from engine.store.run_store import SCHEMA, STANDING


def list_runs(layout: Layout) -> list[RunSummary]:
    """Every run of the repository, the newest first; those that cannot be read are among them."""
    if not layout.runs.is_dir():
        return []
    summaries = [_summary(folder) for folder in layout.runs.iterdir() if folder.is_dir()]
    return sorted(summaries, key=lambda run: (run.started, run.id), reverse=True)


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
