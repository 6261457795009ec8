"""Test which of the user's programs are shown to an attempt, and what is never shown with them."""

from pathlib import Path

import pytest

from engine.sandbox.toolchains import find_toolchains

SHOWN = (Path("/usr"),)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "home"


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def folders(home: Path, *path: Path, **env: str) -> set[str]:
    found = find_toolchains({"HOME": str(home), "PATH": ":".join(map(str, path)), **env}, SHOWN)
    return {str(each.relative_to(home)) for each in found.folders}


def test_an_installer_below_home_is_shown_with_its_variable(home: Path):
    program(home / ".rustup/toolchains/x/bin/rustc")
    program(home / ".cargo/bin/cargo")
    (home / ".cargo/credentials.toml").write_text("token")
    found = find_toolchains({"HOME": str(home), "PATH": f"{home}/.cargo/bin"}, SHOWN)
    assert ("RUSTUP_HOME", f"{home}/.rustup") in found.variables
    assert folders(home, home / ".cargo/bin") == {".rustup", ".cargo/bin"}


def test_an_installation_on_the_path_is_shown_whole(home: Path):
    program(home / "sdk/go/bin/go")
    (home / "sdk/go/lib").mkdir()
    assert folders(home, home / "sdk/go/bin") == {"sdk/go"}


@pytest.mark.parametrize("sign", [".git", ""])
def test_a_project_with_a_folder_on_the_path_is_not_shown_whole(home: Path, sign: str):
    program(home / "project/bin/tool")
    (home / "project/secret").write_text("x")
    if sign:
        (home / "project/lib").mkdir()
        (home / "project" / sign).mkdir()
    assert folders(home, home / "project/bin") == {"project/bin"}


def test_links_on_the_path_lead_to_what_they_start(home: Path):
    program(home / ".local/share/claude/versions/2.1/claude")
    program(home / ".npm-global/lib/node_modules/codex/bin/codex.js")
    local = home / ".local/bin"
    local.mkdir(parents=True)
    (local / "claude").symlink_to(home / ".local/share/claude/versions/2.1/claude")
    (local / "codex").symlink_to(home / ".npm-global/lib/node_modules/codex/bin/codex.js")
    (home / ".local/share/keyrings").mkdir()
    assert folders(home, local) == {
        ".local/bin",
        ".local/share/claude/versions/2.1",
        ".npm-global/lib/node_modules",
    }


def test_a_virtual_environment_brings_the_interpreter_it_stands_on(home: Path):
    program(home / "python/bin/python3")
    (home / "python/lib").mkdir()
    program(home / "repo/.venv/bin/pytest")
    (home / "repo/.venv/pyvenv.cfg").write_text(f"home = {home}/python/bin\nversion = 3\n")
    assert folders(home, home / "repo/.venv/bin") == {"repo/.venv", "python"}


@pytest.mark.parametrize("name", ["", ".local", ".ssh", ".config"])
def test_home_and_its_mixed_folders_are_never_shown_whole(home: Path, name: str):
    (home / name).mkdir(parents=True)
    assert folders(home, home / name, JAVA_HOME=str(home / name), GOROOT="/") == set()


def test_the_path_keeps_what_exists_once_and_in_order(home: Path):
    home.mkdir()
    env = {"HOME": str(home), "PATH": "/usr/bin:.:/nonexistent:/bin:/usr/bin:"}
    assert find_toolchains(env, SHOWN).path == "/usr/bin:/bin"


def test_nothing_is_said_of_a_user_without_a_home():
    found = find_toolchains({}, SHOWN)
    assert (found.folders, found.variables, found.path) == ((), (), "")


def test_links_that_path_and_its_programs_go_through_are_named(home: Path):
    program(home / "versions/2.1/claude")
    (home / "current").symlink_to("versions/2.1")
    (home / "real/bin").mkdir(parents=True)
    (home / "real/bin/claude").symlink_to(home / "current/claude")
    (home / "tools").symlink_to("real")
    (home / "unused").symlink_to("real")
    (home / "real/bin/loop").symlink_to("loop")
    env = {"HOME": str(home), "PATH": f"{home}/tools/bin"}
    found = find_toolchains(env, SHOWN)
    assert set(found.folders) == {home / "real/bin", home / "versions/2.1"}
    assert set(found.links) == {home / "tools", home / "current"}
    assert find_toolchains(env, (home,)).links == ()
