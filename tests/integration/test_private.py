"""Test what plait keeps of private code is for its owner alone, whatever the umask."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine.private import private_folder, tightened, write_private
from tests.support.repositories import RepositoryBuilder

ROOT = Path(__file__).parents[2]
PLAN = """
agents:
  sh:
    adapter: command
    argv: [sh, -c, "mkdir dist; echo x > dist/a; echo x > new; git add new; git commit -qm new"]
pipelines:
  - name: default
    steps: [{name: one, agent: sh, prompt: x, artifacts: [dist], check: "true"}]
"""


@pytest.fixture
def wide_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(top: Path) -> set[str]:
    """Everything that others can reach and read, by what is closed above it."""
    found: set[str] = set()
    waiting = [top]
    for path in waiting:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & 0o077:
            continue  # nobody gets below a closed folder
        found.add(str(path.relative_to(top)))
        waiting += path.iterdir() if path.is_dir() else ()
    return found


def folders_open(top: Path) -> set[str]:
    """Every folder of ours from the top down to the worktrees that is open to others."""
    inside = [path for path in top.rglob("*") if path.is_dir() and not path.is_symlink()]
    depth = 5  # repository, run, step, worker, attempt
    ours = [path for path in inside if len(path.relative_to(top).parts) <= depth]
    return {str(path) for path in (top, *ours) if path.stat().st_mode & 0o077}


def plait(repository: RepositoryBuilder, *words: str, umask: int) -> str:
    home = str(repository.home)
    env = {**os.environ, "HOME": home, "XDG_STATE_HOME": f"{home}/state"}
    for name in ("PLAIT_STATE_HOME", "PLAIT_SANDBOX", "PLAIT_FORCE_OFF"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "tui.cli", *words],
        cwd=repository.path,
        env={**env, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))},
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
        timeout=60,
    )
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


@pytest.mark.parametrize("umask", [0o000, 0o022])
@pytest.mark.parametrize("is_old", [False, True], ids=["new", "of an older version"])
def test_state_worktrees_and_exports_are_for_their_owner_alone(
    tmp_path: Path, umask: int, *, is_old: bool
):
    repository = RepositoryBuilder(tmp_path / "user/repo")
    repository.commit({"plait.yaml": PLAN, "secret.txt": "treasure\n"})
    state, inside = repository.home / "state/plait", repository.path / ".git/plait"
    if is_old:
        for folder in (state, inside):
            folder.mkdir(parents=True)
            folder.chmod(0o777)
    plait(repository, "run", "plait.yaml", "--headless", umask=umask)
    assert next(state.rglob("secret.txt")).is_file()
    assert open_to_others(state) == set()
    assert open_to_others(inside) == set()
    assert folders_open(state) == set()
    where = Path(repository.path, plait(repository, "export", umask=umask).strip())
    assert open_to_others(where) == set()
    assert [path for path in where.rglob("*") if path.stat().st_mode & 0o077] == []


@pytest.mark.usefixtures("wide_umask")
def test_every_missing_folder_on_the_way_is_private(tmp_path: Path):
    tmp_path.chmod(0o755)
    bare = tmp_path / "bare/inner"
    bare.mkdir(mode=0o700, parents=True)
    assert open_to_others(tmp_path / "bare") == {"."}  # the control
    made = private_folder(tmp_path / "a/b/c")
    assert open_to_others(tmp_path / "a") == set()
    assert folders_open(tmp_path / "a") == set()
    write_private(made / "file", b"x")
    assert (made / "file").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_private(made / "file", b"y")
    with pytest.raises(FileExistsError):
        private_folder(made / "file")


def test_what_was_open_is_closed_and_what_is_not_a_folder_is_refused(tmp_path: Path):
    old = tmp_path / "old"
    old.mkdir()
    old.chmod(0o2775)
    assert tightened(old).stat().st_mode & 0o7777 == 0o2700
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        tightened(tmp_path / "file")
