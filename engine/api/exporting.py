"""Write a run as plain files, for people and programs that have no plait.

An attempt can go along as an asciicast (version 2), for the players that people have already. A
program that had a terminal of its own is played as it wrote, byte for byte. Any other program
writes a protocol more often than not: its log is played, a line at a time.
"""

from __future__ import annotations

import codecs
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from os import PathLike, environ
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from engine.agents.options import is_set
from engine.api.exported import REPLAY_FILE, replay_file
from engine.api.reaching import reach
from engine.errors import GitFailed, WorkspaceError
from engine.git.bundling import Bundled, write_bundle
from engine.git.diff import patch_bytes
from engine.ids import AttemptId, RunId, WorkerId
from engine.keeper.recording import NOTE, OUT, began_at, parse
from engine.messages.questions import ReadLog, ReadReport, ReadRun
from engine.plan.model import Plan
from engine.port.public import event_json, report_json, view_json
from engine.redaction import Redactor
from engine.run.journal import Journal
from engine.site.place import Place, find_place
from engine.site.secrets_of import known_secrets
from engine.work.replay import output_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.api.exported import Logs
    from engine.git.runner import Repo
    from engine.messages.logs import LogLine
    from engine.messages.results import RunView, WorkerView
    from engine.plan.model import Plan
    from engine.port.port import EnginePort
    from engine.store.layout import Layout
    from engine.store.store import Store

REDACTIONS_FILE = "redactions.json"
_SECRET_COLUMNS = (("run", "plan"), ("meta", "value"), ("fact", "json"), ("event", "json"))
_ROWS, _COLUMNS = 40, 120


async def export_run(
    folder: str | PathLike[str] = ".",
    run: str = "",
    *,
    with_casts: bool = False,
    is_raw: bool = False,
) -> tuple[str, dict[str, bytes]]:
    """Return a run's id, and its files by their names, without secrets unless they are to be raw.

    Without a name it is the latest run. The files are:

    - `report.json`: the outcome. `run.json`: how the run stands. `events.ndjson`: all events.
    - `logs/STEP.worker_I.attempt_K.log`: what an attempt wrote, byte for byte.
    - `patches/STEP.worker_I.patch`: a change as `git apply` takes it.
    - `replay.db`: all that `open_exported` needs to play the run again elsewhere.
    - `casts/STEP.worker_I.attempt_K.cast`, with casts: what an attempt showed, as an asciicast.
    - `redactions.json`: how many secrets were replaced in which file, by kind.

    Raises:
        NoSuchRun: There is none of that name.
        StoreError: It was written by another version of plait, and casts are asked for.
    """
    place = await find_place(Path(folder), dict(environ))
    async with reach(folder) as (port, _):
        view = await port.ask(ReadRun(run))
        report = await port.ask(ReadReport(view.run))
        name = RunId(view.run)
        logs = await _read_logs(port, view)
        played = await replay_file(port, place.project.name, view, store=place.store, logs=logs)
    files = {"run.json": _json(view_json(view)), "report.json": _json(report_json(report))}
    files[REPLAY_FILE] = played
    read = partial(_read_events, name, place.store)
    files["events.ndjson"] = await anyio.to_thread.run_sync(read)
    for worker in view.workers:
        files |= await anyio.to_thread.run_sync(partial(_logs, place.layout, view, worker))
        if place.repo:
            files |= await _patch(place.repo, worker)
    if with_casts:
        files |= await anyio.to_thread.run_sync(partial(_casts, place, name, logs))
    if not is_raw:
        clear = partial(_without_secrets, name, place.store, files)
        files = await anyio.to_thread.run_sync(clear)
    return view.run, files


def _without_secrets(run: RunId, store: Store, files: dict[str, bytes]) -> dict[str, bytes]:
    with Journal.open(run, store, read_only=True) as journal:
        plan = journal.plan
    return without_secrets(files, redactor_for(plan, environ))


async def _read_logs(port: EnginePort, view: RunView) -> Logs:
    """Return the log of every attempt of every worker."""
    return {
        (worker.worker, number): await port.ask(ReadLog(view.run, worker.worker, number))
        for worker in view.workers
        for number in range(1, worker.attempt + 1)
    }


def _casts(place: Place, run: RunId, logs: Logs) -> dict[str, bytes]:
    with Journal.open(run, place.store, read_only=True) as journal:
        state = journal.replay()
    files: dict[str, bytes] = {}
    for (name, number), chunk in logs.items():
        worker = WorkerId.parse(name)
        agent = state.agent_of(worker)
        path = place.layout.recording(AttemptId(run, worker, number))
        has_terminal = agent is not None and is_set(agent, "terminal") and path.exists()
        cast = cast_of_terminal(path) if has_terminal else cast_of_log(chunk.lines)
        files[f"casts/{name.replace('/', '.')}.attempt_{number}.cast"] = cast
    return files


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _read_events(run: RunId, store: Store) -> bytes:
    with Journal.open(run, store, read_only=True) as journal:
        lines = [json.dumps(event_json(told), ensure_ascii=False) for told in journal.events()]
    return "".join(f"{line}\n" for line in lines).encode()


def _logs(layout: Layout, view: RunView, worker: WorkerView) -> dict[str, bytes]:
    return dict(_each_log(layout, view, worker))


def _each_log(layout: Layout, view: RunView, worker: WorkerView) -> Iterator[tuple[str, bytes]]:
    for number in range(1, worker.attempt + 1):
        attempt = AttemptId(RunId(view.run), WorkerId.parse(worker.worker), number)
        data = output_bytes(layout.recording(attempt))
        yield f"logs/{worker.worker.replace('/', '.')}.attempt_{number}.log", data


async def _patch(repo: Repo, worker: WorkerView) -> dict[str, bytes]:
    change = worker.change
    if change is None or not (change.head and change.base):
        return {}
    try:
        patch = await patch_bytes(repo, change.base, change.head)
    except GitFailed:  # its commits were cleaned away since
        return {}
    name = f"patches/{worker.worker.replace('/', '.')}"
    if patch is None:  # half a patch would apply, and look like all of it
        said = f"too long to export: git diff {change.base} {change.head}\n"
        return {f"{name}.txt": said.encode()}
    return {f"{name}.patch": patch}


def cast_of_terminal(recording: Path) -> bytes:
    """Return a cast of what a program wrote on its terminal."""
    frames, _ = parse(recording.read_bytes())
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    notes = (began_at(data) for _, stream, data in frames if stream == NOTE)
    began = next((at for at in notes if at is not None), 0.0)
    told = ((at, decode(data)) for at, stream, data in frames if stream == OUT)
    return _cast(began, told)


def cast_of_log(lines: Sequence[LogLine]) -> bytes:
    """Return a cast of a log; nothing in it acts on the terminal that plays it."""
    began = lines[0].at if lines else 0.0
    told = ((line.at - began, f"{_shown(line.text)}\r\n") for line in lines)
    return _cast(began, told)


def _cast(began: float, told: Iterable[tuple[float, str]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in _rows(began, told)).encode()


def _rows(began: float, told: Iterable[tuple[float, str]]) -> Iterator[object]:
    yield {"version": 2, "width": _COLUMNS, "height": _ROWS, "timestamp": int(began)}
    latest = 0.0
    for at, text in told:
        latest = max(latest, at)  # a player takes no step back
        if text:
            yield [round(latest, 6), "o", text]


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def redactor_for(plan: Plan, environ: Mapping[str, str]) -> Redactor:
    """Return a redactor of the values that this run's agents were given, if still set."""
    return Redactor(known_secrets([plan], environ))


def without_secrets(files: Mapping[str, bytes], redactor: Redactor) -> dict[str, bytes]:
    """Return the files of an export without secrets, and one more that says how many there were."""
    out: dict[str, bytes] = {}
    counts: dict[str, dict[str, int]] = {}
    for name, data in files.items():
        redactor.counts.clear()
        out[name] = _redacted(name, data, redactor)
        if redactor.counts:
            counts[name] = dict(sorted(redactor.counts.items()))
    said = {"v": 1, "redacted": counts}
    out[REDACTIONS_FILE] = (json.dumps(said, indent=2) + "\n").encode()
    return out


def _redacted(name: str, data: bytes, redactor: Redactor) -> bytes:
    if name.endswith(".json"):
        value = redactor.json(json.loads(data))
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    if name.endswith(".ndjson"):
        return b"".join(_line(line, redactor) for line in data.splitlines())
    if name.endswith(".cast"):
        return _redacted_cast(data, redactor)
    if name.endswith(".db"):
        return _database(data, redactor)
    if name.endswith(".patch"):
        return _redacted_patch(data, redactor)
    return redactor.data(data)


def _line(line: bytes, redactor: Redactor) -> bytes:
    return json.dumps(redactor.json(json.loads(line)), ensure_ascii=False).encode() + b"\n"


def _redacted_cast(data: bytes, redactor: Redactor) -> bytes:
    """Redact a cast: a program may write a secret in several pieces, each with its time."""
    head, *rows = (json.loads(line) for line in data.splitlines())
    texts = redactor.texts([text for _, _, text in rows])
    told = [[at, kind, text] for (at, kind, _), text in zip(rows, texts, strict=True)]
    return "".join(f"{json.dumps(row)}\n" for row in (redactor.json(head), *told)).encode()


def _redacted_patch(data: bytes, redactor: Redactor) -> bytes:
    redacted = redactor.data(data)
    count = sum(redactor.counts.values())
    if not count:
        return data
    said = f"# plait replaced {count} secrets in this patch: it no longer applies as it is.\n"
    return said.encode() + redacted


def _database(data: bytes, redactor: Redactor) -> bytes:
    with TemporaryDirectory(prefix="plait-") as folder:
        path = Path(folder, "redacted.db")
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            with connection:
                for table, column in (*_SECRET_COLUMNS, ("kept", "text")):
                    _column(connection, table, column, redactor)
            connection.execute("VACUUM")
        return path.read_bytes()


def _column(connection: sqlite3.Connection, table: str, column: str, redactor: Redactor) -> None:
    key = "key" if table == "meta" else "name" if table == "kept" else "rowid"
    rows = connection.execute(f"SELECT {key}, {column} FROM {table}").fetchall()  # noqa: S608  names of ours
    changed = [
        (new, place) for place, text in rows if (new := _json_or_text(text, redactor)) != text
    ]
    connection.executemany(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", changed)  # noqa: S608


def _json_or_text(text: str, redactor: Redactor) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return redactor.text(text)
    redacted = redactor.json(value)
    return text if redacted == value else json.dumps(redacted, ensure_ascii=False)


async def bundle_run(
    folder: str | PathLike[str],
    run: str,
    file: Path,
    *,
    plan: Plan,
    environment: Mapping[str, str] | None = None,
) -> Bundled:
    """Write every branch and every attempt of a run, as far as it has come, into a new file.

    Raises:
        WorkspaceError: No repository holds the folder.
        GitFailed: It could not be written.
    """
    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    if place.repo is None:
        raise WorkspaceError(
            f"{folder} is not in a git repository, so there is nothing to bundle",
            hint="`plait export` writes a run as plain files.",
        )
    below = (f"refs/heads/{plan.runtime.branch_prefix}/{run}", f"refs/plait/{run}")
    return await write_bundle(place.repo, file, below=below, base=f"refs/plait/{run}/@base")
