"""Nothing that a repository's configuration can say makes our git run a program.

Every key is planted and every kind of call is made; a plain git with the same calls is the control
that the plants are live.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.runner import Call, Repo, Where
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
IS_LONG = bool(os.environ.get("PLAIT_THOROUGH"))

Plant = Callable[[RepositoryBuilder, str], None]


def key(*names: str) -> Plant:
    def plant(built: RepositoryBuilder, program: str) -> None:
        for name in names:
            built.configure(name, program)
            if name.startswith("gpg."):
                built.configure("commit.gpgSign", "true")
            if name.endswith("signers"):
                built.configure("gpg.format", "ssh")

    return plant


def attribute(line: str, *names: str) -> Plant:
    def plant(built: RepositoryBuilder, program: str) -> None:
        key(*names)(built, program)
        built.write(".git/info/attributes", line)

    return plant


def hooks(built: RepositoryBuilder, program: str) -> None:
    for name in (
        "pre-commit", "post-checkout", "post-commit", "post-merge", "post-index-change",
        "reference-transaction", "commit-msg", "pre-merge-commit", "prepare-commit-msg",
    ):  # fmt: skip
        built.write(f".git/hooks/{name}", f"#!/bin/sh\n{program}\n", mode=0o755)


def hooks_path(built: RepositoryBuilder, program: str) -> None:
    hooks(built, program)
    (built.path / ".git/hooks").rename(built.path / ".git/elsewhere")
    built.configure("core.hooksPath", str(built.path / ".git/elsewhere"))


def included(built: RepositoryBuilder, program: str) -> None:
    built.write(
        ".git/more", f'[core]\n\tfsmonitor = "{program}"\n[diff]\n\texternal = "{program}"\n'
    )
    built.configure("include.path", "more")


PLANTS: dict[str, Plant] = {
    "core.fsmonitor": key("core.fsmonitor"),
    "core.hooksPath": hooks_path,
    "hooks": hooks,
    "include.path": included,
    "core.pager": key("core.pager", "pager.diff", "pager.log"),
    "core.editor": key("core.editor", "sequence.editor"),
    "core.sshCommand": key("core.sshCommand"),
    "core.askPass": key("core.askPass"),
    "core.alternateRefsCommand": key("core.alternateRefsCommand"),
    "credential.helper": key("credential.helper"),
    "diff.external": key("diff.external"),
    "gpg.program": key("gpg.program"),
    "alias": key("alias.status", "alias.diff"),
    "diff driver": attribute("* diff=x\n", "diff.x.command"),
    "diff text": attribute("* diff=x\n", "diff.x.textconv"),
    "filter": attribute("* filter=x\n", "filter.x.clean", "filter.x.smudge"),
    "filter process": attribute("* filter=x\n", "filter.x.process"),
    "filter, odd name": attribute("* filter=x.y=z\n", "filter.x.y=z.clean", "filter.x.y=z.smudge"),
    "merge driver": attribute("* merge=x\n", "merge.x.driver"),
}

COMMANDS: dict[str, tuple[str, ...]] = {
    "status": ("status", "--porcelain"),
    "diff": ("diff", "HEAD"),
    "diff trees": ("diff", "HEAD~1", "HEAD"),
    "show": ("show", "HEAD"),
    "log": ("log", "-p", "-2"),
    "worktree add": ("worktree", "add", "-q", "--detach", "../w", "HEAD~1"),
    "checkout": ("checkout", "-q", "-f", "--detach", "HEAD~1"),
    "read-tree": ("read-tree", "--reset", "-u", "HEAD~1"),
    "add": ("add", "-A"),
    "commit": ("commit", "-qam", "x"),
    "merge": ("merge", "-q", "-m", "x", "side"),
    "merge-tree": ("merge-tree", "--write-tree", "main", "clash"),
    "update-ref": ("update-ref", "refs/heads/new", "HEAD"),
    "fetch": ("fetch", "-q", "../other", "+refs/heads/*:refs/o/*"),
    "ls-files": ("ls-files", "-o", "-m"),
}
LIVE = {
    "core.fsmonitor", "core.hooksPath", "hooks", "include.path", "diff.external", "gpg.program",
    "diff driver", "diff text", "filter", "filter process", "filter, odd name", "merge driver",
}  # fmt: skip


def planted(tmp_path: Path, plant: Plant) -> tuple[RepositoryBuilder, Path]:
    """A repository with something to do for every command, and the file a program would make."""
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("branch", "side")
    built.git("checkout", "-q", "-b", "clash")
    built.commit({"src/a.py": "a = 5\n"}, "clash")
    built.git("checkout", "-q", "side")
    built.commit({"side.txt": "s\n"}, "side")
    built.git("checkout", "-q", "main")
    built.commit({"src/a.py": "a = 2\n", "README.md": "# other\n"}, "two")
    built.git("clone", "-q", str(built.path), str(tmp_path / "other"))
    sentinel = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {sentinel}\nexit 1\n")
    program.chmod(0o755)
    plant(built, str(program))
    built.write("src/a.py", "a = 3\n")
    return built, sentinel


def everything(built: RepositoryBuilder, program: str) -> None:
    """All of them in one repository, with every driver named for every path."""
    for plant in PLANTS.values():
        plant(built, program)
    hooks(built, program)
    built.write(".git/info/attributes", "* filter=x diff=x merge=x\n*.md filter=x.y=z\n")


ONE_BY_ONE = PLANTS if IS_LONG else {"everything at once": everything}


@pytest.mark.parametrize("plant", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
async def test_nothing_planted_runs_in_our_git(tmp_path: Path, plant: Plant):
    built, sentinel = planted(tmp_path, plant)
    repo = await Repo.open(built.path, built.environment)
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree)
    me = repo.settings.sign(0)
    call = Call(
        ok=tuple(range(256)),
        flags=("-c", "protocol.file.allow=always"),
        env=me.environment("AUTHOR") | me.environment("COMMITTER"),
        timeout_s=60,
    )
    for number, name in enumerate(COMMANDS):
        built.write("src/a.py", f"a = {number}\n")
        await repo.run(*COMMANDS[name], call=call, where=where)
        assert not await to_thread.run_sync(sentinel.exists), f"{name} ran the program"


@pytest.mark.parametrize("name", sorted(LIVE))
def test_the_same_plants_run_in_a_plain_git(tmp_path: Path, name: str):
    built, sentinel = planted(tmp_path, PLANTS[name])
    for number, command in enumerate(COMMANDS.values()):
        built.write("src/a.py", f"a = {number}\n")
        built.try_git(*command)
        if sentinel.exists():
            return
    pytest.fail("the plant is dead: the guard proves nothing by surviving it")


async def test_a_configuration_changed_behind_our_back_is_seen(tmp_path: Path):
    built, sentinel = planted(tmp_path, lambda *_: None)
    repo = await Repo.open(built.path, built.environment)
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree)
    await repo.read("add", "-A", where=where)
    PLANTS["filter"](built, str(tmp_path / "program"))
    built.write("src/a.py", "a = 4\n")

    await repo.read("add", "-A", where=where)

    assert not await to_thread.run_sync(sentinel.exists)


@pytest.mark.parametrize("tick_ns", [4_000_000, 1_000_000_000])
async def test_a_configuration_changed_twice_within_one_tick_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tick_ns: int
):
    """Give the disk a coarse clock; keep each write in place and within the same size."""
    lstat = Path.lstat

    def coarse(path: Path) -> SimpleNamespace:
        seen = lstat(path)
        at = seen.st_ctime_ns // tick_ns * tick_ns
        known = {name: getattr(seen, name) for name in ("st_mode", "st_ino", "st_size")}
        return SimpleNamespace(**known, st_ctime_ns=at)

    built = RepositoryBuilder.small(tmp_path / "repo")
    repo = await Repo.open(built.path, built.environment)
    monkeypatch.setattr(Path, "lstat", coarse)
    config = built.path / ".git/config"
    before = config.read_text()
    for number in range(10, 40):
        await to_thread.run_sync(config.write_text, f"{before}[x]\n\ty = {number}\n")
        assert dict(await repo.configuration())["x.y"] == str(number)


async def test_a_configuration_is_listed_once_while_it_does_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    built = RepositoryBuilder.small(tmp_path / "repo")
    now = time.time_ns
    monkeypatch.setattr("engine.git.runner.time.time_ns", lambda: now() + 1_000_000_000)
    repo = await Repo.open(built.path, built.environment)
    before = await repo.configuration()
    monkeypatch.setattr(repo, "program", "/no/git")
    assert await repo.configuration() == before


async def test_a_file_whose_merge_driver_was_disarmed_is_a_conflict(tmp_path: Path):
    built, _ = planted(tmp_path, PLANTS["merge driver"])
    repo = await Repo.open(built.path, built.environment)
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree)
    done = await repo.run(*COMMANDS["merge-tree"], call=Call(ok=(0, 1)), where=where)
    assert done.exit_code == 1


async def test_replacement_objects_grafts_and_the_environment_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    built = RepositoryBuilder.small(tmp_path / "repo")
    second = built.commit({"x": "x\n"}, "second")
    built.git("replace", second, built.rev("HEAD~1"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    repo = await Repo.open(built.path, {**built.environment, "GIT_DIR": "/nowhere"})

    assert await repo.line("log", "-1", "--format=%s", second) == "second"


async def test_remote_protocols_are_closed(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    repo = await Repo.open(built.path, built.environment)

    for url in (
        f"file://{built.path}",
        str(built.path),
        "ext::sh -c touch% x",
        "ssh://localhost/x",
    ):
        with pytest.raises(GitFailed, match="not allowed"):
            await repo.read("fetch", url, "main")


async def test_a_folder_with_a_line_break_in_its_name_is_refused_in_words(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "a\nb")
    with pytest.raises(WorkspaceError, match="line break") as caught:
        await Repo.open(built.path, built.environment)
    assert "Rename" in caught.value.hint
