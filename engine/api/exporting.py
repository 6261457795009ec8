"""Write a run as plain files, for people and programs that have no plait."""

from __future__ import annotations

import json
from functools import partial
from os import PathLike, environ
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from engine.agents.options import is_set
from engine.api.casting import cast_of_log, cast_of_terminal
from engine.api.exported import REPLAY_FILE, replay_file
from engine.api.reaching import reach
from engine.api.redacting import redactor_for, without_secrets
from engine.errors import GitFailed
from engine.git.diff import patch_bytes
from engine.ids import AttemptId, RunId, WorkerId
from engine.messages.questions import ReadLog, ReadReport, ReadRun
from engine.port.public import event_json, report_json, view_json
from engine.run.journal import Journal
from engine.site.place import Place, find_place
from engine.work.replay import output_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.api.exported import Logs
    from engine.git.runner import Repo
    from engine.messages.results import RunView, WorkerView
    from engine.port.port import EnginePort
    from engine.store.layout import Layout
    from engine.store.store import Store


async def export_run(
    folder: str | PathLike[str] = ".",
    run: str = "",
    *,
    with_casts: bool = False,
    is_raw: bool = False,
) -> tuple[str, dict[str, bytes]]:
    """Return a run's id, and its files by their names, without secrets unless they are to be raw.

    `report.json` is what came out, `run.json` how it stands, `events.ndjson` all that happened,
    `logs/STEP.worker_I.attempt_K.log` what an attempt wrote, byte for byte,
    `patches/STEP.worker_I.patch` a change as `git apply` takes it, and `replay.db` all that
    `open_exported` needs to play it again elsewhere; with casts,
    `casts/STEP.worker_I.attempt_K.cast` what an attempt showed, as players of asciicasts take it.
    `redactions.json` says how many secrets were replaced in which file, by kind. The latest run
    where none is named.

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
        said = f"too long to be exported: git diff {change.base} {change.head}\n"
        return {f"{name}.txt": said.encode()}
    return {f"{name}.patch": patch}
