"""Probing this machine: what is believed, what is kept, and how little a liar achieves."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import to_thread

from engine.sandbox import probe as probing
from engine.sandbox.ladder import at_best, files_rung
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.probe import probe
from tests.support.needs import need
from tests.support.processes import wait_until

LIAR = """#!/bin/sh
case "$1" in --version) echo "bubblewrap 9.9"; exit;; esac
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "a" / "state"


@pytest.fixture
def with_program(tmp_path: Path) -> Callable[[str, str], dict[str, str]]:
    """An environment in which a program is another one."""

    def put(name: str, text: str) -> dict[str, str]:
        folder = tmp_path / "first"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
        return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    return put


@pytest.mark.needs("bubblewrap")
def test_what_works_is_kept_for_this_user_alone(state: Path):
    probe(os.environ, state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    kept = json.loads((state / "machine.json").read_text())
    kept["bwrap"] = "/kept"
    (state / "machine.json").write_text(json.dumps(kept))
    assert probe(os.environ, state).bwrap == "/kept"


@pytest.mark.parametrize("spoiled", ["", "{}", "[]", '{"identity": "x"}', "null"])
def test_what_cannot_be_read_is_found_out_again(state: Path, spoiled: str):
    first = probe(os.environ, state)
    (state / "machine.json").write_text(spoiled)
    assert probe(os.environ, state) == first


@pytest.mark.needs("bubblewrap")
def test_another_boot_or_kernel_is_found_out_again(state: Path):
    first = probe(os.environ, state)
    kept = {**json.loads((state / "machine.json").read_text()), "identity": "old", "bwrap": "/old"}
    (state / "machine.json").write_text(json.dumps(kept))
    assert probe(os.environ, state) == first


def test_what_lies_beside_it_is_made_again_when_it_is_gone(state: Path):
    first = probe(os.environ, state)
    for file in first.passwd:
        Path(file).unlink()
    again = probe(os.environ, state)
    assert again == first
    assert all(Path(file).is_file() for file in again.passwd)


def test_a_bwrap_that_only_pretends_is_not_believed(
    state: Path, with_program: Callable[[str, str], dict[str, str]]
):
    machine = probe(with_program("bwrap", LIAR), state)
    finding = machine.finding(Mechanism.BWRAP)
    assert not finding.works
    assert "hidden file: readable" in finding.reason
    assert finding.detail == "9.9"
    assert files_rung(machine) is not Mechanism.BWRAP
    assert not (state / "machine.json").exists(), "what does not work is tried again next time"


def test_a_bwrap_that_fails_is_quoted_with_advice(
    state: Path, with_program: Callable[[str, str], dict[str, str]]
):
    said = "bwrap: setting up uid map: Permission denied"
    env = with_program("bwrap", f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    finding = probe(env, state).finding(Mechanism.BWRAP)
    assert (finding.works, finding.reason) == (False, said)
    assert finding.fix


@pytest.mark.needs("bubblewrap")
def test_a_trial_that_would_pass_without_any_guard_shows_nothing(
    state: Path, with_program: Callable[[str, str], dict[str, str]]
):
    machine = probe(with_program("grep", "#!/bin/sh\nexit 1\n"), state)
    assert not machine.has(Mechanism.BWRAP)
    assert "proves nothing" in machine.finding(Mechanism.BWRAP).reason


def test_without_bwrap_the_advice_is_to_install_it(state: Path, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat", "grep", "sleep"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    machine = probe({"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}, state)
    finding = machine.finding(Mechanism.BWRAP)
    assert "not installed" in finding.reason
    assert "Install bubblewrap" in finding.fix
    assert not machine.has(Mechanism.NETWORK_NAMESPACE)


def test_a_machine_without_bwrap_is_tried_once_and_again_when_it_has_one(
    state: Path, with_program: Callable[[str, str], dict[str, str]], tmp_path: Path
):
    need("landlock")
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat", "grep", "sleep"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    bare = {"PATH": str(tmp_path / "bin")}
    probe(bare, state)
    kept = json.loads((state / "machine.json").read_text())
    (state / "machine.json").write_text(json.dumps({**kept, "python_home": "/kept"}))
    assert probe(bare, state).python_home == "/kept"
    assert probe(with_program("bwrap", LIAR), state).python_home != "/kept"


def test_elsewhere_than_on_linux_everything_says_so(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(probing, "_LINUX", tmp_path / "missing")
    machine = probe({}, state)
    assert files_rung(machine) is None
    rows = {row.dimension.value: row for row in at_best(machine)}
    assert "not Linux" in rows["files"].reason
    assert rows["memory"].level.value == "sampled"


def tried(machine: MachineSupport) -> list[Path]:
    parents = [Path(place.parent) for place in machine.hierarchies]
    return [path for parent in parents for path in parent.glob("plait-probe-*")]


@pytest.mark.anyio
async def test_probing_leaves_no_cgroup_behind(state: Path):
    machine = await to_thread.run_sync(probe, os.environ, state)
    seen = tried(machine)
    # Another engine of this machine may probe at this moment: what that made goes by itself.
    await wait_until(lambda: not any(path.is_dir() for path in seen), within_s=60)
