"""A run's journal as a text file, with every view that its facts lead through.

The first line is the plan. Then come the facts and events in their order; a fact carries what it
changed in the view of the run, as paths and values. The last line is the report.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.core.report import report
from engine.core.state import RunState
from engine.ids import RunId
from engine.run.journal import Journal
from engine.run.view import view_of
from engine.store.codec import dump
from engine.store.sqlite.run_store import RunStore

FOLDER = Path(__file__).with_name("journals")
Row = dict[str, Any]
Flat = Mapping[str, Any]


def journal_of(project: Path, run: str) -> Path:
    """The journal of a run of a repository."""
    return project / ".git/plait/runs" / run / "run.db"


def flat(value: Any, at: str = "") -> dict[str, Any]:
    """Return every leaf of a JSON value by its path."""
    if isinstance(value, dict) and value:
        rows = [flat(each, f"{at}.{key}") for key, each in value.items()]
    elif isinstance(value, list) and value:
        rows = [flat(each, f"{at}.{n}") for n, each in enumerate(value)]
    else:
        return {at: value}
    return {path: leaf for row in rows for path, leaf in row.items()}


def views(journal: Journal) -> Iterator[Flat]:
    """Return the view of the run after each fact."""
    for _, state in journal.states():
        yield flat(dump(view_of(state, {})))


def last_report(state: RunState) -> Flat:
    """Return the report of a run, flat."""
    return flat(dump(report(state)))


def save(kept: Path, path: Path, tmp: Path) -> None:
    """Write a journal as text; the folder it was made in is named `/frozen`."""
    with RunStore.open(path, read_only=True) as store:
        journal = Journal(RunId(path.parent.name), store)
        rows: list[Row] = [
            {"plan": store.plan_json, "core": store.core_version, "run": path.parent.name}
        ]
        rows += [{"event": [one.at, one.kind, one.json]} for one in store.events()]
        before: Flat = {}
        for entry, view in zip(store.facts(), views(journal), strict=True):
            changed = {k: v for k, v in view.items() if k not in before or before[k] != v}
            gone = [key for key in before if key not in view]
            rows.append({"fact": [entry.at, entry.kind, entry.json], "view": changed, "gone": gone})
            before = view
        rows.append({"report": last_report(journal.replay())})
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    for found, said in ((str(tmp), "/frozen"), (os.environ.get("HOME", "/nowhere"), "/home/me")):
        text = text.replace(json.dumps(found)[1:-1], said)
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(text)


def load(kept: Path) -> list[Row]:
    """Return the rows of a frozen run."""
    return [json.loads(line) for line in kept.read_text().splitlines()]


def restore(rows: list[Row], folder: Path) -> Path:
    """Write a frozen run back as the journal it was."""
    run = str(rows[0]["run"])
    path = folder / run / "run.db"
    path.parent.mkdir(parents=True)
    store = RunStore.create(
        path, plan_json=rows[0]["plan"], core_version=rows[0]["core"], meta={"frozen": "yes"}
    )
    with store:
        for row in rows:
            if "fact" in row:
                at, kind, text = row["fact"]
                store.append([(kind, text)], [], at=at)
            elif "event" in row:
                at, kind, text = row["event"]
                store.append([], [(kind, text)], at=at)
    return path
