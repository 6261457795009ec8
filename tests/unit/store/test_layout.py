import stat
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.ids import AttemptId, RunId, WorkerId
from engine.store.layout import Layout, make_private, state_home, workspace, workspace_root

RUN = RunId("a1b2")
WORKER = WorkerId("implement", 2)
ATTEMPT = AttemptId(RUN, WORKER, 3)


def test_everything_has_its_place(tmp_path: Path):
    common = tmp_path.resolve() / ".git"
    layout = Layout(common)
    below = common / "plait"
    assert layout.engine_lock == below / "engine.lock"
    assert layout.engine_json == below / "engine.json"
    assert layout.plan_json(RUN) == below / "runs/a1b2/plan.json"
    assert layout.run_db(RUN) == below / "runs/a1b2/run.db"
    assert layout.agent_db(RUN, WORKER) == below / "runs/a1b2/implement/worker_2/agent.db"
    assert layout.home(RUN, WORKER) == below / "runs/a1b2/implement/worker_2/home"
    folder = below / "runs/a1b2/implement/worker_2/attempt_3"
    assert layout.recording(ATTEMPT) == folder / "recording"
    assert layout.git(ATTEMPT) == folder / "git"
    assert layout.attempt(ATTEMPT) == layout.runs / ATTEMPT.path
    assert layout.trash == below / "trash"


def test_the_composite_has_a_place_too(tmp_path: Path):
    assert Layout(tmp_path).worker(RUN, WorkerId("fix", 0)).name == "woven"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\x00", "-x", "../../etc"])
def test_a_run_cannot_lead_out_of_its_folder(tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="not a run's name"):
        Layout(tmp_path).run(RunId(name))


def test_every_folder_made_is_private_and_others_are_untouched(tmp_path: Path):
    tmp_path.chmod(0o755)
    layout = Layout(tmp_path)
    layout.make()
    layout.make(layout.attempt(ATTEMPT))
    layout.make(layout.attempt(ATTEMPT))
    for folder in (layout.root, *layout.root.rglob("*")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path):
    (tmp_path / "plait").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be created"):
        Layout(tmp_path).make()
    with pytest.raises(ValueError, match="is not below"):
        make_private(tmp_path / "a", below=tmp_path / "elsewhere")


def test_the_state_home_follows_the_environment():
    assert state_home({"PLAIT_STATE_HOME": "/s"}) == Path("/s")
    assert state_home({"XDG_STATE_HOME": "/x"}) == Path("/x/plait")
    assert state_home({"XDG_STATE_HOME": "x", "HOME": "/h"}) == Path("/h/.local/state/plait")
    assert state_home({"HOME": "/h"}) == Path("/h/.local/state/plait")


def test_workspaces_of_equal_names_are_kept_apart(tmp_path: Path):
    home = Path("/state")
    one = workspace_root(tmp_path / "a/my repo/.git", home)
    two = workspace_root(tmp_path / "b/my repo/.git", home)
    bare = workspace_root(tmp_path / "b/bare.git", home)
    assert one != two
    assert one.name.startswith("my_repo-")
    assert bare.name.startswith("bare-")
    assert one == workspace_root(tmp_path / "a/../a/my repo/.git", home)
    assert workspace(one, ATTEMPT) == one / "a1b2/implement/worker_2/attempt_3"


def test_workspaces_are_named_by_the_path_that_git_writes_down(tmp_path: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to("disk")
    root = workspace_root(tmp_path / "repo/.git", tmp_path / "state")
    assert root.parent == (tmp_path / "disk").resolve()
