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
    assert not (folder / "casts").exists()


TERMINAL = """
agents:
  painter:
    adapter: command
    argv: [printf, '\\033[31mred\\033[0m \\303\\251\\n']
    terminal: true
  talker: {adapter: command, argv: [printf, 'plain \\033[2Jwords\\n']}
pipelines:
  - name: show
    steps:
      - {name: paint, agent: painter, prompt: "x", merge: none}
      - {name: talk, agent: talker, prompt: "x", merge: none}
"""


def test_a_cast_shows_a_terminal_as_it_was_and_a_log_as_text(repository: Shell) -> None:
    (repository.folder / "plait.yaml").write_text(TERMINAL)
    ran = repository.plait("run", "plait.yaml", "--headless")
    assert ran.code == 0, ran.err
    done = repository.plait("export", "--cast")
    assert done.code == 0, done.err
    casts = repository.folder / done.out.strip() / "casts"
    (head, painted), (_, talked) = (
        read_cast(casts / f"{step}.worker_1.attempt_1.cast") for step in ("paint", "talk")
    )
    assert (head["version"], head["width"], head["height"]) == (2, 120, 40)
    assert "\x1b[31mred\x1b[0m é\r\n" in painted
    assert "plain" in talked
    assert "words" in talked
    assert "\x1b" not in talked


def read_cast(path: Path) -> tuple[dict[str, int], str]:
    """The header and all that is shown; the times must never go back."""
    head, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    times = [at for at, _, _ in rows]
    assert times == sorted(times)
    return head, "".join(text for _, _, text in rows)
