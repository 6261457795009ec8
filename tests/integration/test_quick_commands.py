"""Commands that a living engine runs for a shell say the same words as in the ordinary way."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from engine.port import capability, direct
from engine.port.finding import state_around
from tests.support.shells import Shell, end_engine
from tui.commands import quick as quick_module
from tui.commands.quick import LOOKING

PLAN = """
agents:
  asker:
    adapter: scripted
    script: |
      steps:
        - say: "ein Wört"
        - ask: "Well?"
  writer:
    adapter: scripted
    script: |
      steps:
        - write: {path: "ä.txt", text: "one\\ntwo\\n"}
        - result: "done ✓"
pipelines:
  - name: talk
    steps:
      - {name: ask, agent: asker, prompt: "talk", merge: none}
      - {name: write, agent: writer, prompt: "write"}
"""
COMMAND = """
import os, sys
if os.environ.pop("WAY") == "ordinary":
    from tui.commands import quick, shells
    quick.LOOKING = ()
    shells.from_journals = lambda act, folder, **_: act.close()
sys.argv[0] = "plait"
from tui.cli import main
try:
    sys.exit(main())
finally:
    with open(os.environ["LOADED"], "w") as file:
        file.write(" ".join(sys.modules))
"""
QUICK = [
    "status",
    "status --json",
    "status {run} -C sub",
    "status -C {second}",
    "status nosuch",
    "status --profile",
    "status --profile --json",
    "runs",
    "runs --json",
    "logs write/worker_1",
    "logs ask/worker_1 --attempt 1",
    "logs {run}/write/worker_1@1",
    "logs write/worker_1 --moments",
    "logs nobody",
    "logs write/worker_1@7",
    "diff write/worker_1",
    "diff write/worker_1 --stat",
    "diff nobody",
    "preview main side",
    "preview main side --json",
    "preview main apart",
    "preview main apart --json",
    "preview HEAD apart -C {second}",
    "preview main nosuch",
]
ORDINARY = [
    "status --help",
    "status --jsn",
    "status -Csub",
    "status -C nosuch",
    "status -C /",
    "logs write/worker_1 --raw",
    "logs",
    "preview main",
]


@dataclass
class Said:
    """The words of a command in a process of its own, and the modules that it loaded."""

    code: int
    out: bytes
    err: bytes
    loaded: set[str]

    @property
    def is_quick(self) -> bool:
        return "argparse" not in self.loaded

    @property
    def words(self) -> tuple[int, bytes, bytes]:
        return self.code, self.out, self.err


@dataclass
class Place:
    """A repository whose engine lives, with a worktree beside it."""

    shell: Shell
    run: str

    def says(self, line: str, *, way: str = "quick", **env: str) -> Said:
        words = line.format(run=self.run, second=self.shell.folder.parent / "second").split()
        loaded = self.shell.folder.parent / "loaded"
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *words],
            cwd=self.shell.folder,
            env={**self.shell._environment(), "LOADED": str(loaded), "WAY": way, **env},
            capture_output=True,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr, set(loaded.read_text().split()))

    def both(self, line: str, **env: str) -> tuple[Said, Said]:
        """Return both answers to one question; the engine may have moved on between two of them."""
        while True:
            before = self.says(line, way="ordinary", **env)
            quick = self.says(line, **env)
            if self.says(line, way="ordinary", **env).words == before.words:
                return quick, before


def repository(top: Path) -> Shell:
    """A repository with branches that merge and clash, and a worktree beside it."""
    folder = top / "project"
    (folder / "sub").mkdir(parents=True)
    shell = Shell(folder, top / "state")
    (folder / "plait.yaml").write_text(PLAN)
    (folder / "sub" / "a.txt").write_text("one\ntwo\nthree\n")
    shell.git("init", "-q", "-b", "main")
    shell.git("add", ".")
    shell.git("commit", "-qm", "first")
    for branch, text in (("side", "one\ntwo\nthree\nfour\n"), ("apart", "ONE\ntwo\nthree\n")):
        shell.git("checkout", "-qb", branch)
        (folder / "sub" / "a.txt").write_text(text)
        shell.git("commit", "-qam", branch)
        shell.git("checkout", "-q", "main")
    (folder / "sub" / "a.txt").write_text("One\ntwo\nthree\n")
    shell.git("commit", "-qam", "mine")
    shell.git("worktree", "add", "-q", str(top / "second"), "side")
    return shell


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    shell = repository(tmp_path_factory.mktemp("quick"))
    run = shell.plait("run", "plait.yaml", "--detach").out.split()[0]
    try:
        found = Place(shell, run)
        while (
            b"asks: Well?" not in (said := found.says("status")).out or b"claimed" not in said.out
        ):
            assert said.code == 0, said.err
        with shell.running("logs", "-f", "ask/worker_1") as client:  # or the engine would leave
            assert client.stdout is not None
            assert client.stdout.readline()
            yield found
    finally:
        end_engine(shell)


@pytest.mark.parametrize("line", QUICK)
def test_an_engine_says_what_the_command_itself_says(place: Place, line: str):
    quick, ordinary = place.both(line)
    assert quick.words == ordinary.words
    assert quick.out or quick.err
    assert quick.is_quick
    assert not ordinary.is_quick


@pytest.mark.parametrize("line", ORDINARY)
def test_what_an_engine_does_not_run_is_said_by_the_command_itself(place: Place, line: str):
    quick, ordinary = place.both(line)
    assert quick.words == ordinary.words
    assert not quick.is_quick


def test_every_quick_command_is_compared():
    assert {line.split()[0] for line in QUICK} == set(LOOKING)


def test_a_stream_without_unicode_gets_the_same_signs(place: Place):
    for line in ("logs write/worker_1", "diff write/worker_1", "status --json"):
        quick, ordinary = place.both(line, PYTHONIOENCODING="ascii")
        assert (quick.out, quick.is_quick) == (ordinary.out, True)
        assert quick.out.isascii()
    assert not place.says("logs write/worker_1", PYTHONIOENCODING="utf-8").out.isascii()


@pytest.mark.parametrize("more", [{"TZ": "Asia/Tokyo"}, {"GIT_CEILING_DIRECTORIES": "/x"}])
def test_a_shell_that_reads_other_times_or_settings_runs_its_command_itself(
    place: Place, more: dict[str, str]
):
    quick, ordinary = place.both("runs", **more)
    assert (quick.out, quick.is_quick) == (ordinary.out, False)
    assert place.says("runs", PATH=f"{os.environ['PATH']}:/nosuch").is_quick  # which says nothing
    assert place.says("runs", XDG_SESSION_ID="another").is_quick


def test_a_plait_that_is_replaced_right_now_goes_the_ordinary_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".git/plait").mkdir(parents=True)
    (tmp_path / ".git/plait/engine.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quick_module, "__file__", str(tmp_path / "gone"))
    assert quick_module.quick_answer("status", []) is None


def test_a_terminal_gets_its_colors(place: Place):
    said = {}
    for way in ("quick", "ordinary"):
        ours, theirs = pty.openpty()
        subprocess.run(
            [sys.executable, "-c", COMMAND, "diff", "write/worker_1"],
            cwd=place.shell.folder,
            env={**place.shell._environment(), "LOADED": os.devnull, "WAY": way},
            stdout=theirs,
            check=True,
        )
        os.close(theirs)
        said[way] = b"".join(iter(partial(_read, ours), b""))
        os.close(ours)
    assert said["quick"] == said["ordinary"]
    assert b"\x1b[32m+one" in said["quick"]


def _read(terminal: int) -> bytes:
    """Return what comes next; nothing where nobody holds the other side any more."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_a_reader_who_leaves_early_is_no_error(place: Place):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "status", "--json"],
            cwd=place.shell.folder,
            env={**place.shell._environment(), "LOADED": os.devnull, "WAY": "quick"},
            stdout=nobody,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_told_in_the_same_words(place: Place):
    said = {}
    for way in ("quick", "ordinary"):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-c", COMMAND, "status", "--json"],
                cwd=place.shell.folder,
                env={**place.shell._environment(), "LOADED": os.devnull, "WAY": way},
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        said[way] = done.returncode, done.stderr
    assert said["quick"] == said["ordinary"]
    assert said["quick"][0] == 1


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A repository with two runs behind it, for which no engine works."""
    shell = repository(tmp_path_factory.mktemp("past"))
    plan = PLAN.replace("      - {name: ask, agent: asker", "      # - {name: ask, agent: asker")
    (shell.folder / "write.yaml").write_text(plan)
    for _ in range(2):
        done = shell.plait("run", "write.yaml", "--headless")
        assert done.code in {0, 3}, done.err
    return Place(shell, shell.plait("runs", "--json").json()[-1]["run"])


JOURNALS = [
    "status",
    "status --profile",
    "status {run} --json",
    "status -C {second}",
    "status nosuch",
    "runs",
]


@pytest.mark.parametrize("line", [*JOURNALS, "runs --json -C sub"])
def test_journals_alone_say_what_the_command_says(past: Place, line: str):
    """Neither an event loop nor anything that works with git is loaded for that."""
    quick, ordinary = past.both(line)
    assert quick.words == ordinary.words
    assert quick.out or quick.err
    heavy = {"anyio", "asyncio", "subprocess", "secrets", "shutil"}
    heavy |= {"engine.git.runner", "engine.port.client"}
    assert not heavy & quick.loaded
    assert heavy <= ordinary.loaded


@pytest.mark.parametrize("line", ["status", "status --json", "runs -C sub", "runs --json"])
def test_what_was_said_is_said_again_with_next_to_nothing_loaded(past: Place, line: str):
    while not (again := past.says(line)).is_quick:  # the first one keeps it
        assert again.code == 0
    assert again.words == past.says(line, way="ordinary").words
    heavy = {"typing", "dataclasses", "pathlib", "sqlite3", "datetime", "engine.errors"}
    assert not heavy & again.loaded
    assert {one for one in again.loaded if one.startswith("engine")} == KEPT_NEEDS


KEPT_NEEDS = {"engine", "engine.port", "engine.port.finding", "engine.port.kept"}
KEPT_NEEDS |= {"engine.store", "engine.store.stamps"}


def test_an_engine_that_goes_leaves_both_answers(tmp_path: Path):
    shell = repository(tmp_path)
    plan = PLAN.replace("      - {name: ask, agent: asker", "      # - {name: ask, agent: asker")
    (shell.folder / "write.yaml").write_text(plan)
    run = shell.plait("run", "write.yaml", "--detach").out.split()[0]
    here = Place(shell, run)
    while b"claimed" not in here.says("status").out:
        pass
    end_engine(shell)
    for line in ("status", "runs"):
        first = here.says(line)
        assert first.is_quick
        assert first.words == here.says(line, way="ordinary").words


def test_a_live_worker_is_never_told_from_what_was_said(past: Place):
    """Without an engine, who works no more may be resumed by one at any moment."""
    for line in ("status {run}", "status --profile", "status nosuch"):
        past.says(line)
        assert not past.says(line).is_quick


@contextmanager
def impostor(folder: Path, key: bytes) -> Iterator[None]:
    """Somebody who listens where `engine.json` says, and answers with words of their own."""
    state = folder / ".git" / "plait"
    state.mkdir(parents=True, exist_ok=True)
    named = {"pid": 1, "socket": str(folder.parent / "s"), "v": capability.VERSION}
    (state / "engine.json").write_text(json.dumps(named))
    (state / "engine.key").write_text(key.hex())
    with socket(AF_UNIX) as door:
        door.bind(named["socket"])
        door.listen()

        def talk() -> None:
            line, _ = door.accept()
            with line, line.makefile("rwb") as stream:
                hello = {"plait": "engine", "v": capability.VERSION, "pid": 1, "nonce": "n"}
                stream.write(json.dumps(hello).encode() + b"\n")
                stream.flush()
                said = json.loads(stream.readline())
                mine = capability.proof(KEY, said["role"], capability.ENGINE, ("n", said["nonce"]))
                told = {"said": [[True, "\x1b]2;mine\x07"]], "code": 0}
                stream.write(json.dumps({"role": "owner", "proof": mine}).encode() + b"\n")
                stream.write(json.dumps({"id": 1, "ok": told}).encode() + b"\n")
                stream.flush()
                stream.readline()

        talking = threading.Thread(target=talk)
        talking.start()
        try:
            yield
        finally:
            talking.join()


KEY, OTHER = bytes(32), bytes([1]) * 32


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_only_an_engine_that_knows_the_key_is_believed(tmp_path: Path, key: bytes):
    folder = tmp_path / "project"
    with impostor(folder, key):
        answer = direct.answer_of(str(folder / ".git/plait"), {"do": "run"})
    assert (answer is not None) == (key == KEY)


def test_a_killed_engine_and_a_broken_note_are_no_answer(tmp_path: Path):
    state = tmp_path / ".git" / "plait"
    state.mkdir(parents=True)
    for note in ("", "[]", '{"v": 5}', json.dumps({"v": 5, "socket": str(tmp_path / "gone")})):
        (state / "engine.json").write_text(note)
        assert direct.answer_of(str(state), {"do": "run"}) is None


def test_a_repository_is_found_as_git_finds_it(tmp_path: Path):
    def git(*words: str, at: Path = tmp_path) -> str:
        done = subprocess.run(["git", *words], cwd=at, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    me = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    git("init", "-q", "one")
    one = tmp_path / "one"
    git(*me, "commit", "-q", "--allow-empty", "-m", "x", at=one)
    git("init", "-q", "two")
    git(*me, "commit", "-q", "--allow-empty", "-m", "x", at=tmp_path / "two")
    git(*me, "submodule", "--quiet", "add", str(tmp_path / "two"), "within", at=one)
    git("worktree", "add", "-q", str(tmp_path / "beside"), at=one)
    git("worktree", "add", "-q", str(one / "inside"), at=one)
    git("init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"), "three")
    (one / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(one / "deep")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").symlink_to(one / ".git/worktrees/beside")
    places = [one, one / "within", tmp_path / "beside", one / "inside", one / "deep" / "er"]
    for place in (*places, tmp_path / "three", tmp_path / "link", tmp_path / "linked"):
        wanted = git("rev-parse", "--path-format=absolute", "--git-common-dir", at=place)
        found = state_around(str(place))
        assert found is not None
        assert os.path.realpath(found) == os.path.realpath(f"{wanted}/plait"), place
    git("clone", "-q", "--bare", str(one), "bare")
    assert state_around(str(tmp_path / "bare")) is None  # left to git, as all that is rare
    assert state_around(str(tmp_path)) is None
