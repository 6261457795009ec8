"""Files written into a HOME that an agent has filled with traps: nothing outside is touched."""

from pathlib import Path

import pytest

from engine.agents.contract import LaunchFile
from engine.errors import AgentError
from engine.site.shelter import place

FILE = LaunchFile(path=".codex/config.toml", data=b"new")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/config.toml").write_text("the user's own")
    return tmp_path / "home"


def outside(home: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (home.parent / "secret").iterdir()}


def test_files_are_written_with_their_mode_and_written_anew(home: Path) -> None:
    place(str(home), [FILE])
    place(str(home), [LaunchFile(path=".codex/config.toml", data=b"newer", mode=0o400)])
    written = home / ".codex/config.toml"
    assert written.read_bytes() == b"newer"
    assert written.stat().st_mode & 0o777 == 0o400
    assert [path.name for path in written.parent.iterdir()] == ["config.toml"]


def test_a_link_in_place_of_the_folder_is_put_aside(home: Path) -> None:
    (home / ".codex").symlink_to(home.parent / "secret")
    place(str(home), [FILE])
    assert outside(home) == {"config.toml": "the user's own"}
    assert (home / ".codex/config.toml").read_bytes() == b"new"
    assert len(list(home.glob(".codex.aside-*"))) == 1


def test_a_link_in_place_of_the_file_is_replaced(home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").symlink_to(home.parent / "secret/config.toml")
    place(str(home), [FILE])
    assert outside(home) == {"config.toml": "the user's own"}
    assert not (home / ".codex/config.toml").is_symlink()


def test_a_link_does_lead_a_careless_write_astray(home: Path) -> None:
    """The negative control."""
    (home / ".codex").symlink_to(home.parent / "secret")
    (home / FILE.path).write_bytes(FILE.data)
    assert outside(home) == {"config.toml": "new"}


@pytest.mark.parametrize("trap", ["file", "folder"])
def test_what_is_in_the_way_is_kept_beside(home: Path, trap: str) -> None:
    if trap == "file":
        (home / ".codex").write_text("in the way")
    else:
        (home / ".codex/config.toml/deep").mkdir(parents=True)
    place(str(home), [FILE])
    assert (home / ".codex/config.toml").read_bytes() == b"new"
    assert len(list(home.rglob("*.aside-*"))) == 1


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", ""])
def test_a_path_that_leads_out_is_refused(home: Path, path: str) -> None:
    with pytest.raises(AgentError, match="not a path below"):
        place(str(home), [LaunchFile(path=path, data=b"")])


def test_a_home_that_is_a_link_is_refused(home: Path) -> None:
    link = home.parent / "link"
    link.symlink_to(home)
    with pytest.raises(AgentError, match="cannot be opened"):
        place(str(link), [FILE])
