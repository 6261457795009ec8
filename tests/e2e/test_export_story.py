"""A run as plain files: what came out, all that happened, every log, changes that git applies."""

import json
from pathlib import Path

from tests.support.shells import Shell

PLAN = """
agents:
  writer:
    adapter: scripted
    script: |
      steps:
        - say: "I write"
        - replace: {path: a.txt, old: two, new: TWO}
        - write: {path: new.txt, text: "new"}
        - result: "written"
pipelines:
  - name: write
    steps: [{name: write, agent: writer, prompt: "write"}]
"""


def test_a_run_is_exported_as_plain_files(repository: Shell) -> None:
    (repository.folder / "plait.yaml").write_text(PLAN)
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    done = repository.plait("export")
    assert done.code == 0, done.err
    folder = repository.folder / done.out.strip()
    assert folder.name.startswith("plait-")

    report = json.loads((folder / "report.json").read_text())
    assert report["steps"]["write"]["success_count"] == 1
    events = [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]
    assert "RunStarted" in [e["type"] for e in events]
    assert [e["seq"] for e in events] == sorted({e["seq"] for e in events})
    assert json.loads((folder / "run.json").read_text())["is_waiting"]
    assert "I write" in (folder / "logs" / "write.worker_1.attempt_1.log").read_text()

    patch: Path = folder / "patches" / "write.worker_1.patch"
    repository.git("apply", str(patch))
    assert (repository.folder / "a.txt").read_text() == "one\nTWO\nthree\n"
    assert (repository.folder / "new.txt").exists()

    again = repository.plait("export")
    assert again.code == 2
    assert "nothing is written over" in again.err
    assert repository.plait("export", "nosuch").code == 2
