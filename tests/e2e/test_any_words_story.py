"""Every command on every kind of place and stream: a code that means something, no traceback."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

from tests.support.needs import need
from tests.support.shells import PATIENCE_S, Shell
from tests.support.warm import run_warm
from tui.commands.names import COMMANDS

IS_THOROUGH = os.environ.get("PLAIT_THOROUGH") == "1"
WORKER = ("implement/worker_1",)
WORDS: dict[str, tuple[str, ...]] = {
    "run": ("no-such.yaml", "--headless"),
    "validate": ("plait.yaml",),
    "plan": ("plait.yaml",),
    "answer": (*WORKER, "allow"),
    "steer": (*WORKER, "on"),
    "preview": ("main", "side"),
    "shell": (*WORKER, "true"),
    "mergetool": ("a", "b", "c", "d"),
    "completions": ("bash",),
    "init": ("--stdout",),
    "sites": (),
    "site": ("check", "local"),
    "pr": ("--dry-run",),
    **dict.fromkeys(("demo", "serve"), ("--help",)),
    **dict.fromkeys(("replay", "export", "resume", "restore"), ("missing",)),
    **dict.fromkeys(
        ("pause", "status", "runs", "rules", "agents", "doctor", "clean", "attach", "man", "undo"),
        (),
    ),
    **dict.fromkeys(("review", "--help", "--version", ""), ()),
}
MANIFEST = """pipelines:
- name: signs
  steps:
  - {name: s, run: "echo é✓", check: "echo é✓"}
"""
ALLOWED = {0, 1, 2, 3, 4, 130, 141}


def plain(folder: Path) -> None:
    (folder / "plait.yaml").write_text(MANIFEST, encoding="utf-8")


def empty(folder: Path) -> None:
    plain(folder)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)


def begun(folder: Path) -> None:
    empty(folder)
    commit = ["git", "-c", "user.name=É", "-c", "user.email=a@b", "commit", "-qm", "é ✓"]
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(commit, cwd=folder, check=True)


def nobody_reads() -> IO[bytes]:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb")


PLACES: dict[str, Callable[[Path], None]] = {"plain": plain, "empty": empty, "begun": begun}
STREAMS: dict[str, tuple[Callable[[], IO[bytes]], dict[str, str]]] = {
    "nobody reads": (nobody_reads, {}),
    "full": (lambda: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb"), {}),
    "ASCII": (TemporaryFile, {"PYTHONIOENCODING": "ascii"}),
    "latin-1": (TemporaryFile, {"PYTHONIOENCODING": "latin-1"}),
    "a dumb terminal": (TemporaryFile, {"TERM": "dumb"}),
}
EVERYWHERE = list(itertools.product([*COMMANDS, "--help", "--version", ""], PLACES))
CASES = [
    (name, place, stream)
    for number, (name, place) in enumerate(EVERYWHERE)
    for turn, stream in enumerate(STREAMS)
    if IS_THOROUGH or number % len(STREAMS) == turn
]
"""The streams take turns over commands and places; a thorough run takes every one of them."""


@contextmanager
def said(folder: Path, name: str, stream: str) -> Iterator[tuple[int, str]]:
    """The exit code of a command, and everything it said where that was kept."""
    opened, env = STREAMS[stream]
    with TemporaryFile() as given, opened() as out, TemporaryFile() as err:
        shell = Shell(folder, folder.parent / "state", env)
        words = [word for word in (name, *WORDS.get(name, WORKER)) if word]
        files = (given, out, err)
        kept = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}
        given_env = {**kept, "PLAIT_STATE_HOME": str(shell.state), **env}
        code = run_warm(words, files, cwd=folder, env=given_env, timeout_s=PATIENCE_S)
        text = b""
        for file in files[1:]:
            if file.seekable() and file.readable():
                file.seek(0)
                text += file.read()
        yield code, text.decode(errors="replace")


@pytest.mark.parametrize(("name", "place", "stream"), CASES)
def test_a_command_ends_with_a_code_and_a_sentence(
    tmp_path: Path, name: str, place: str, stream: str
):
    folder = tmp_path / "project"
    folder.mkdir()
    PLACES[place](folder)
    with said(folder, name, stream) as (code, text):
        assert "Traceback" not in text, text
        assert "Exception ignored" not in text, text
        assert code in ALLOWED, text
        assert code == 0 or text.strip()


BARE_C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
FROM_A_SHELL: dict[str, tuple[str, dict[str, str], int]] = {
    "plan plait.yaml >&-": ("stdout closed", {}, 0),
    "plan plait.yaml <&- >&- 2>&-": ("all closed", {}, 0),
    "plan plait.yaml | true": ("nobody reads", {}, 0),
    "--help | true": ("nobody reads", {}, 0),
    "doctor --json | head -1": ("one line is read", {}, 0),
    "plan plait.yaml >/dev/full": ("no room", {}, 1),
    "plan plait.yaml": ("ASCII", BARE_C, 0),
    "run plait.yaml --headless --json": ("ASCII", BARE_C, 0),
    "diff --help": ("latin-1", {"PYTHONIOENCODING": "latin-1"}, 0),
}


@pytest.mark.parametrize("words", FROM_A_SHELL)
def test_a_command_begins_and_ends_as_shells_expect(tmp_path: Path, words: str):
    need("bash")
    _, env, code = FROM_A_SHELL[words]
    folder = tmp_path / "project"
    folder.mkdir()
    begun(folder)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"$0" -m tui.cli {words}', sys.executable],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HOME": str(folder.parent),
            "PLAIT_STATE_HOME": str(folder.parent / "state"),
            **env,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    text = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert "Exception ignored" not in text
    if env is BARE_C:
        assert done.stdout.isascii()
        assert done.stdout


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path):
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.write_text("a file, so that nobody, not even root, makes a folder below it")
    begun(folder)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": ""}
    words = [sys.executable, "-m", "tui.cli", "run", "plait.yaml", "--headless"]
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert str(home) in done.stderr
    assert "PLAIT_STATE_HOME" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "guess"),
    [
        (("sttus",), "plait status"),
        (("comppletions", "bash"), "plait completions"),
        (("status", "--jsno"), "--json"),
        (("run", "x", "--headles"), "--headless"),
        (("run", "x", "--on-question", "dney"), "deny"),
        (("completions", "bsh"), "bash"),
    ],
)
def test_a_slip_is_told_with_the_nearest_right_word(
    shell: Shell, words: tuple[str, ...], guess: str
):
    done = shell.plait(*words)
    assert done.code == 2
    assert "did you mean" in done.err
    assert guess in done.err.rpartition("did you mean")[2]


def test_doctor_is_fit_for_a_bug_report(shell: Shell, tmp_path: Path):
    home = tmp_path / "the home"
    (home / "bin").mkdir(parents=True)
    for name, script in {
        "tmux": "echo tmux 9.9",
        "gh": "echo $HOME/gh 1.0",
        "claude": "echo 9",
    }.items():
        (home / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (home / "bin" / name).chmod(0o755)
    shell.env |= {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    shell.env |= {"ANTHROPIC_API_KEY": "sk-ant-very-secret", "NODE_OPTIONS": "--bad"}
    for words in (("doctor",), ("doctor", "--json")):
        said = shell.plait(*words)
        assert said.code == 0, said.err
        assert str(home) not in said.out
        assert "very-secret" not in said.out
    versions = said.json()["versions"]
    assert (versions["tmux"], versions["gh"]) == ("tmux 9.9", "~/gh 1.0")
    assert versions["git"].startswith("git version")
    assert {"plait", "Python", "textual", "SQLite", "system", "output"} <= set(versions)


def test_agents_are_a_table_of_what_is_here(shell: Shell, tmp_path: Path):
    home = tmp_path / "the home"
    listed = json.dumps({"models": [{"slug": "gpt-x"}, {"slug": "gpt-y"}]})
    for name, script in {
        "bin/claude": "#!/bin/sh\necho 9.8.7\n",
        "bin/codex": f"#!/bin/sh\n[ $1 = debug ] && echo '{listed}' || echo codex 1.2.3\n",
        ".claude/settings.json": json.dumps({"model": "opus"}),
        ".codex/config.toml": 'model = "gpt-y"\n',
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(script)
        (home / name).chmod(0o755)
    bare = os.pathsep.join(("/usr/bin", "/bin"))
    shell.env |= {"HOME": str(home), "PATH": f"{home}/bin:{bare}", "ANTHROPIC_API_KEY": "sk-secret"}
    said = shell.plait("agents", "--models")
    rows = {line.split()[0]: line for line in said.out.splitlines()}
    assert "9.8.7" in rows["claude"]
    assert "by ANTHROPIC_API_KEY" in rows["claude"]
    assert "model opus" in rows["claude"]
    assert "1.2.3" in rows["codex"]
    assert "no login found" in rows["codex"]
    assert "  models: gpt-x, gpt-y" in said.out
    assert "→ npm install -g @google/gemini-cli@latest" in rows["gemini"]
    assert "sk-secret" not in said.out
    assert str(home) not in said.out
    told = {agent["name"]: agent for agent in shell.plait("agents", "--json").json()["agents"]}
    assert told["claude"]["settings"]["model"] == "opus"
    assert told["claude"]["capabilities"]["permission"] is True
    assert (told["gemini"]["path"], told["codex"]["models"]) == (None, [])
    assert told["codex"]["path"] == "~/bin/codex"


def test_where_no_client_is_installed_agents_says_how_to_get_them(shell: Shell, tmp_path: Path):
    shell.env |= {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    said = shell.plait("agents")
    assert said.code == 0, said.err
    installed = said.out.partition("not installed, or")[0]
    assert "claude" not in installed
    assert "→ npm install -g @anthropic-ai/claude-code@latest" in said.out
    assert "→ uv tool install --python 3.12 aider-chat" in said.out


def test_a_mistyped_worker_is_told_with_the_nearest_one(repository: Shell):
    manifest = "pipelines:\n- name: p\n  steps:\n  - {name: implement, run: 'true'}\n"
    (repository.folder / "plait.yaml").write_text(manifest)
    assert repository.plait("run", "plait.yaml", "--headless").code == 0
    named = [name for name in WORDS if WORDS[name][:1] == WORKER]
    for name in (*named, "logs", "diff", "retry", "land", "choose", "approve", "resolve", "check"):
        words = [*WORDS.get(name, WORKER)]
        words[0] = "implment/worker_1"
        said = repository.plait(name, *words)
        assert said.code in {1, 2}, (name, said.err)
        assert "did you mean implement/worker_1?" in said.err, (name, said.err)
