"""The journal when its writer is killed, and when the disk is full: nothing torn, nothing lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from engine.store.sqlite.run_store import RunStore
from tests.support.needs import WITH_OWN_MOUNTS, need

WRITER = """
import itertools, sys
from pathlib import Path
from engine.store.sqlite.run_store import RunStore

store = RunStore.open(Path(sys.argv[1]))
batch = sum(1 for _ in store.facts()) // 3
while True:
    batch += 1
    facts = [("Fact", f"{batch}")] * 3
    events = [("Event", f"{batch}")] * (1 + batch % 4)
    store.append(facts, events, at=batch, durable=batch % 50 == 0)
    print(batch, flush=True)
"""


def test_a_writer_killed_at_any_moment_loses_and_tears_nothing(tmp_path: Path):
    path = tmp_path / "run.db"
    RunStore.create(path, plan_json="{}", core_version=1, meta={}).close()
    random = Random(7)
    for _ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(random.randrange(1, 400)):
            writer.stdout.readline()
        writer.kill()
        with writer.stdout:
            told = writer.stdout.read().split()
        assert writer.wait() == -signal.SIGKILL
        with RunStore.open(path, read_only=True) as reader:
            batches = [int(fact.json) for fact in reader.facts()]
            events = [int(event.json) for event in reader.events()]
            numbers = [event.seq for event in reader.events()]
        last = batches[-1]
        assert not told or last >= int(told[-1]), "a fact was lost that had been told"
        assert batches == [batch for batch in range(1, last + 1) for _ in range(3)]
        assert events == [batch for batch in range(1, last + 1) for _ in range(1 + batch % 4)]
        assert numbers == list(range(1, len(numbers) + 1))


FILLER = """
import json, os, resource, sys
from pathlib import Path
from engine.errors import StoreError
from engine.store.files import write_atomically
from engine.store.sqlite.run_store import RunStore

folder, how = Path(sys.argv[1]), sys.argv[2]
small = folder / "exit.json"
write_atomically(small, b"old")
store = RunStore.create(folder / "run.db", plan_json="{}", core_version=1, meta={})
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
else:
    (folder / "ballast").write_bytes(bytes(1_000_000))
told = 0
try:
    while True:
        store.append([("Fact", json.dumps("x" * 2_000))] * 3, [("Event", "1")], at=0)
        told += 1
except StoreError as error:
    hint = error.hint
try:
    write_atomically(small, bytes(400_000))
except StoreError:
    kept = small.read_bytes().decode()
left = sorted(each.name for each in folder.iterdir() if not each.name.startswith("run.db"))
full = sum(1 for _ in store.facts()), sum(1 for _ in store.events())
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
else:
    (folder / "ballast").unlink()
again = store.append([("Fact", "1")] * 3, [("Event", "1")], at=0)
store.close()
with RunStore.open(folder / "run.db") as opened:
    after = sum(1 for _ in opened.facts()), sum(1 for _ in opened.events())
print(json.dumps([told, hint, kept, left, full, again, after]))
"""
IN_SMALL_FILE_SYSTEM = (
    'mount -t tmpfs -o size=2m,mode=700 plait "$1" && exec "$2" -c "$3" "$1" full'
)


def fill(how: str, folder: Path) -> list[object]:
    python = [sys.executable, "-c", FILLER, os.fspath(folder), how]
    if how == "full":
        script = [IN_SMALL_FILE_SYSTEM, "sh", os.fspath(folder), sys.executable, FILLER]
        python = [*WITH_OWN_MOUNTS, "sh", "-c", *script]
    done = subprocess.run(python, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: list[object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("how", ["limit", "full"])
def test_a_full_disk_keeps_what_was_told_and_goes_on_when_there_is_room(tmp_path: Path, how: str):
    if how == "full":
        need("small disk")
    told, hint, kept, left, full, again, after = fill(how, tmp_path)
    assert isinstance(told, int)
    assert told > 5
    assert "committed data is safe" in str(hint)
    assert kept == "old"
    assert left == (["ballast", "exit.json"] if how == "full" else ["exit.json"])
    assert full == [told * 3, told]
    assert again == [told + 1]
    assert after == [told * 3 + 3, told + 1]
