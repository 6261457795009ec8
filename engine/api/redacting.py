"""Remove secrets from an export: each kind of file redacted as what it is."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.redaction import Redactor
from engine.site.secrets_of import known_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.plan.model import Plan

REDACTIONS_FILE = "redactions.json"
_COLUMNS = (("run", "plan"), ("meta", "value"), ("fact", "json"), ("event", "json"))


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
        return _cast(data, redactor)
    if name.endswith(".db"):
        return _database(data, redactor)
    if name.endswith(".patch"):
        return _patch(data, redactor)
    return redactor.data(data)


def _line(line: bytes, redactor: Redactor) -> bytes:
    return json.dumps(redactor.json(json.loads(line)), ensure_ascii=False).encode() + b"\n"


def _cast(data: bytes, redactor: Redactor) -> bytes:
    """Redact a cast: a program may write a secret in several pieces, each with its time."""
    head, *rows = (json.loads(line) for line in data.splitlines())
    texts = redactor.texts([text for _, _, text in rows])
    told = [[at, kind, text] for (at, kind, _), text in zip(rows, texts, strict=True)]
    return "".join(f"{json.dumps(row)}\n" for row in (redactor.json(head), *told)).encode()


def _patch(data: bytes, redactor: Redactor) -> bytes:
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
                for table, column in (*_COLUMNS, ("kept", "text")):
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
