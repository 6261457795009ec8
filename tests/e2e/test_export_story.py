"""A run as plain files: what came out, all that happened, every log, changes that git applies."""

import json
import shlex
import signal
from pathlib import Path

import pytest

from tests.support.shells import Shell, rest_of, wait_event

pytestmark = pytest.mark.long
PLAN = """
runtime: {sandbox: {env: [PASSED]}}
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
    repository.env |= {"PASSED": f"{HIDDEN}-passed", "OPENAI_API_KEY": f"{HIDDEN}-key"}
    ran = repository.plait("run", "plait.yaml", "--headless", "--bundle", "work.bundle")
    assert ran.code == 3
    new = {ref: at for ref, at in refs_of(repository).items() if not ref.endswith("base")}
    assert fetched(repository, ran.err) == new
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

    kept = [*repository.folder.rglob("*"), *repository.state.rglob("*")]
    assert folder / "replay.db" in kept
    assert not [f for f in kept if f.is_file() and HIDDEN.encode() in f.read_bytes()]

    patch: Path = folder / "patches" / "write.worker_1.patch"
    repository.git("apply", str(patch))
    assert (repository.folder / "a.txt").read_text() == "one\nTWO\nthree\n"
    assert (repository.folder / "new.txt").exists()

    drops(repository)
    again = repository.plait("export")
    assert again.code == 2
    assert "exists already and is not overwritten" in again.err
    assert repository.plait("export", "nosuch").code == 2
    assert not (folder / "casts").exists()


HIDDEN = "nobody-may-keep-this"
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


def drops(repository: Shell) -> None:
    """Leave a hunk out of the change that waits for review, from a shell."""
    dropped = repository.plait("drop", "write/worker_1", "new.txt:1")
    assert dropped.out == "1 hunk left out; to land: 1 file, +1 -1\n", dropped.err
    listed = repository.plait("drop", "write/worker_1").out.splitlines()
    assert [line.split("  ")[0].strip() for line in listed] == ["", "left out"]
    assert ["a.txt:1" in listed[0], "new.txt:1" in listed[1]] == [True, True]
    assert "lists what it has" in repository.plait("drop", "write/worker_1", "b.txt").err


LOST = """
agents:
  writer:
    adapter: scripted
    script: |
      steps:
        - write: {path: new.txt, text: "half of it"}
        - ask: {text: "And the rest?"}
pipelines:
  - name: half
    steps: [{name: half, agent: writer, prompt: "x"}]
  - name: idle
    steps: [{name: idle, run: "true"}]
"""


def refs_of(shell: Shell) -> dict[str, str]:
    """Every ref of the runs of a repository, and where it points."""
    rows = shell.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return {ref: at for ref, at in map(str.split, rows) if "plait/" in ref}


def fetched(shell: Shell, said: str) -> dict[str, str]:
    """The refs of a fresh clone, made by the commands that the bundle's maker printed."""
    clone = Shell(shell.folder.parent / "fresh", shell.state)
    only_main = ("--no-local", "--single-branch")
    shell.git("clone", "-q", *only_main, str(shell.folder), str(clone.folder))
    told = next(line for line in said.splitlines() if line.startswith("  git fetch"))
    _, *words = shlex.split(told)
    assert not refs_of(clone)
    clone.git(*(str(shell.folder / word) if word.endswith(".bundle") else word for word in words))
    return refs_of(clone)


def test_the_work_of_an_interrupted_run_leaves_in_a_bundle_with_the_edits_it_began_from(
    repository: Shell,
) -> None:
    (repository.folder / "plait.yaml").write_text(LOST)
    words = ("--pipeline", "half", "--base", "WORKTREE", "--bundle", "work.bundle")
    with repository.running("run", "plait.yaml", "--headless", "--json", *words) as process:
        wait_event(process, "Asked")
        process.send_signal(signal.SIGINT)
        rest_of(process)
        assert process.wait(60) == 130
        assert process.stderr
        kept = fetched(repository, process.stderr.read())
    assert kept == refs_of(repository)
    (branch,) = (ref for ref in kept if ref.startswith("refs/heads/"))
    clone = Shell(repository.folder.parent / "fresh", repository.state)
    assert clone.git("show", f"{branch}:new.txt") == "half of it"
    assert clone.git("show", f"{branch}:plait.yaml") == LOST


def test_a_bundle_is_refused_before_anything_runs_and_never_empty(repository: Shell) -> None:
    (repository.folder / "plait.yaml").write_text(LOST)
    idle = ("run", "plait.yaml", "--pipeline", "idle", "--headless", "--bundle")
    for file, why in (
        ("a.txt", "exists already and is not overwritten"),
        ("no/such", "cannot be written"),
    ):
        refused = repository.plait(*idle, file)
        assert refused.code == 2
        assert why in refused.err
    assert repository.plait("run", "x", "--detach", "--bundle", "b").code == 2
    assert not (repository.folder / ".git" / "plait" / "runs").exists()
    done = repository.plait(*idle, "idle.bundle")
    assert done.code == 0, done.err
    assert "nothing to bundle" in done.err
    assert not (repository.folder / "idle.bundle").exists()


GITHUB = "ghp_" + "a1B2c3D4" * 5
PEM_BODY = "MIIEpAIBAAKCAQEA7bq" * 3
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n-----END PRIVATE KEY-----"
LEAKING = """
runtime: {sandbox: {env: [PASSED_ON]}}
agents:
  painter:
    adapter: command
    argv: [sh, -c, 'printf ghp_a1B2c3D4a1B2; sleep 0.3; echo "c3D4$REST"; echo "$PASSED_ON"']
    terminal: true
  talker:
    adapter: scripted
    script: |
      steps:
        - say: "I use TOKEN"
        - write: {path: key.pem, text: "PEM\\n"}
        - write: {path: config, text: "url = https://me:pa55word@host/x\\n"}
        - result: "TOKEN is done"
pipelines:
  - name: show
    steps:
      - {name: paint, agent: painter, prompt: "with TOKEN", merge: none}
      - {name: talk, agent: talker, prompt: "x"}
"""


def test_no_byte_of_an_export_holds_a_secret(repository: Shell) -> None:
    text = LEAKING.replace("$REST", GITHUB[len("ghp_a1B2c3D4a1B2c3D4") :])
    text = text.replace("TOKEN", GITHUB).replace("PEM", PEM.replace("\n", "\\n"))
    (repository.folder / "plait.yaml").write_text(text)
    repository.env |= {"PASSED_ON": 'a "quoted" value'}
    ran = repository.plait("run", "plait.yaml", "--headless")
    assert ran.code == 3, ran.err
    done = repository.plait("export", "--cast")
    assert done.code == 0, done.err
    folder = repository.folder / done.out.strip()
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    secrets = (GITHUB, PEM_BODY, "pa55word", 'a "quoted" value', 'a \\"quoted\\" value')
    for name, data in files.items():
        assert not [secret for secret in secrets if secret.encode() in data], name
    assert b"[redacted github-token 1]" in files["paint.worker_1.attempt_1.cast"]
    assert files["talk.worker_1.patch"].startswith(b"# plait replaced 2 secrets in this patch")
    counts = json.loads(files["redactions.json"])["redacted"]
    assert counts["patches/talk.worker_1.patch"] == {"private-key": 1, "url-password": 1}
    said = [line for line in done.err.splitlines() if "logs/paint.worker_1" in line]
    assert "github-token" in said[0]
    assert "1 variable" in said[0]
    assert repository.plait("replay", str(folder)).code != 1  # it can still be read

    asked = repository.plait("export", "--raw", "--to", "raw")
    assert asked.code == 2
    assert "--yes" in asked.err
    raw = repository.plait("export", "--cast", "--raw", "--yes", "--to", "raw")  # the control
    assert raw.code == 0, raw.err
    copied = [path for path in (repository.folder / "raw").rglob("*") if path.is_file()]
    all_raw = b"".join(path.read_bytes() for path in copied)
    assert all(secret.encode() in all_raw for secret in secrets)
    assert b"# plait" not in (repository.folder / "raw/patches/talk.worker_1.patch").read_bytes()
