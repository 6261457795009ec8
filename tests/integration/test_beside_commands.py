"""`plait difftool` and `plait review PR` as a shell sees them: they show, and change no file."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.integration.test_merging_own_commands import MINE, THEIRS, plait
from tests.support.console_story import console_story
from tests.support.merging_runs import SOURCE, changed
from tests.support.repositories import RepositoryBuilder
from tests.support.shells import Shell

GH = """#!/bin/sh
[ "$1 $2 $4 $5" = "pr view --json number,title,body,baseRefName,headRefOid,url" ] || exit 9
[ "$3" = 7 ] || { echo "no pull requests found for $3" >&2; exit 1; }
echo '{"number": 7, "title": "A better third line", "body": "It was worse.",
  "baseRefName": "main", "headRefOid": "OID", "url": "https://example.org/a/b/pull/7"}'
"""
"""The one answer of GitHub that is asked for; there is no other way to have it here."""


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    made = RepositoryBuilder(tmp_path / "project")
    made.commit({"code": SOURCE, "gone": "gone\n"}, "start")
    return made


@pytest.fixture
def requested(built: RepositoryBuilder, tmp_path: Path) -> str:
    """Push a request to a real remote, under the ref that GitHub has it under; the tools' path."""
    there = tmp_path / "there.git"
    built.git("init", "-q", "--bare", str(there))
    built.git("remote", "add", "origin", str(there))
    built.git("checkout", "-q", "-b", "side")
    built.commit({"code": THEIRS}, "their work")
    built.git("push", "-q", "origin", "main", "side:refs/pull/7/head")
    built.git("checkout", "-q", "main")
    oid = built.rev("side")
    built.git("branch", "-D", "side")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text(GH.replace("OID", oid))
    (tools / "gh").chmod(0o755)
    return str(tools)


def standing(built: RepositoryBuilder) -> tuple[str, str, str]:
    """Return all that a look must not change: files, branch and branches."""
    return (
        built.status(),
        built.git("symbolic-ref", "HEAD"),
        built.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags"),
    )


@pytest.mark.parametrize("extra", [(), ("--dir-diff",)])
def test_git_difftool_shows_changed_new_and_deleted_files(
    built: RepositoryBuilder, extra: tuple[str, ...]
):
    words = f'"{sys.executable}" -m tui.cli difftool "$LOCAL" "$REMOTE" "$MERGED"'
    built.configure("diff.tool", "plait").configure("difftool.plait.cmd", words)
    (built.path / "code").write_text(MINE)
    (built.path / "gone").unlink()
    (built.path / "new").write_text("new\n")
    built.git("add", "-N", "new")
    before = standing(built)
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    shown = built.try_git("difftool", "--no-prompt", *extra, env=env)
    assert shown.returncode == 0, shown.stderr
    said = shown.stdout.decode()
    assert "modified code" in said
    assert "+mine" in said
    assert "deleted gone" in said
    assert "added new" in said
    assert standing(built) == before


def test_two_files_that_are_alike_show_nothing_and_a_missing_one_is_named(
    built: RepositoryBuilder,
):
    assert plait(built, "difftool", "code", "code", "--stat").stdout.strip() == "0 files, +0 -0"
    lost = plait(built, "difftool", "code", "nowhere")
    assert lost.returncode == 2
    assert "nowhere cannot be read" in lost.stderr


@pytest.mark.parametrize(
    ("merged", "shown"),
    [
        ((), "b.txt"),
        (("code",), "code"),
        (("d/code",), "d/code"),
        (("../x",), "x"),
        (("/abs/x",), "x"),
        ((".git/config",), "config"),
        (("a/../b",), "b"),
        (("d1/",), "d1"),
    ],
)
def test_two_files_are_one_that_changed_whatever_it_is_called(
    built: RepositoryBuilder, tmp_path: Path, merged: tuple[str, ...], shown: str
):
    old, new = tmp_path / "a.txt", tmp_path / "b.txt"
    old.write_text("same\nold\n")
    new.write_text("same\nnew\n")
    said = plait(built, "difftool", str(old), str(new), *merged)
    assert said.returncode == 0, said.stderr
    assert f"modified {shown}" in said.stdout
    assert "+new" in said.stdout
    assert "-same" not in said.stdout


def test_a_name_that_git_refuses_is_told(built: RepositoryBuilder, tmp_path: Path):
    old, new = tmp_path / "a", tmp_path / ".git"
    old.write_text("old\n")
    new.write_text("new\n")
    said = plait(built, "difftool", str(old), str(new))
    assert said.returncode == 2
    assert "git accepts no file called .git" in said.stderr
    assert "modified x" in plait(built, "difftool", str(old), str(new), "x").stdout


def test_a_folder_may_hold_what_no_diff_reads(built: RepositoryBuilder, tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, text in ((old, "old\n"), (new, "new\n")):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git/config").write_text(text)
        (folder / "code").write_text(text)
        os.mkfifo(folder / "pipe")
        (folder / "broken").symlink_to(f"nowhere-{folder.name}")
    said = plait(built, "difftool", str(old), str(new))
    assert said.returncode == 0, said.stderr
    assert "modified code" in said.stdout
    assert "+nowhere-new" in said.stdout
    assert "config" not in said.stdout
    assert "pipe" not in said.stdout


def test_a_request_is_read_and_nothing_is_checked_out(built: RepositoryBuilder, requested: str):
    before = standing(built)
    for name in ("7", "#7"):
        read = plait(built, "review", name, path=requested)
        assert read.returncode == 0, read.stderr
        assert "request #7: A better third line" in read.stdout
        assert "+theirs" in read.stdout
    assert standing(built) == before


def test_a_request_of_another_repository_is_not_shown_as_the_one_of_that_number_here(
    built: RepositoryBuilder, requested: str
):
    assert plait(built, "review", "7", path=requested).returncode == 0
    before = built.git("for-each-ref", "refs/plait")
    built.git("push", "-qf", "origin", "main:refs/pull/7/head")
    Path(requested, "gh").write_text(GH.replace("OID", "0" * 40))
    read = plait(built, "review", "7", path=requested)
    assert read.returncode != 0
    assert built.git("for-each-ref", "refs/plait") == before
    assert "have different commits for #7" in read.stderr
    assert "as a remote" in read.stderr


@pytest.mark.parametrize("number", ['"x"', "null", "[7]"])
def test_a_strange_answer_of_gh_is_said_in_words(
    built: RepositoryBuilder, requested: str, number: str
):
    gh = Path(requested, "gh")
    gh.write_text(gh.read_text().replace('"number": 7', f'"number": {number}'))
    read = plait(built, "review", "7", path=requested)
    assert read.returncode == 2
    assert "plait cannot read the answer of gh" in read.stderr


def test_a_request_is_not_decided_by_words_that_contradict(
    built: RepositoryBuilder, requested: str
):
    told = plait(built, "review", "7", "--target", "--incoming", path=requested)
    assert told.returncode == 2
    assert "cannot both apply" in told.stderr


def test_a_request_is_read_into_a_branch_of_any_name(built: RepositoryBuilder, requested: str):
    gh = Path(requested, "gh")
    said = gh.read_text()
    for into in ("head", "new/base", "part/of", "part"):  # one after the other, as it is changed
        built.git("push", "-q", "origin", f"main:refs/heads/{into}")
        gh.write_text(said.replace('"baseRefName": "main"', f'"baseRefName": "{into}"'))
        read = plait(built, "review", "7", path=requested)
        assert read.returncode == 0, read.stderr
        assert "+theirs" in read.stdout
        built.git("push", "-q", "origin", f":refs/heads/{into}")
    assert len(built.git("for-each-ref", "refs/plait").splitlines()) == 2


def test_decisions_on_a_request_without_conflicts_are_answered(
    built: RepositoryBuilder, requested: str
):
    told = plait(built, "review", "7", "--both", path=requested)
    assert told.returncode == 0
    assert "+theirs" in told.stdout
    assert "nothing to decide" in told.stderr
    plain = plait(built, "review", "7", "--json", path=requested)
    assert plain.returncode == 0
    assert json.loads(plain.stdout) == {"is_resolved": True, "files": []}


def test_conflicts_of_a_request_are_told_and_decided_without_a_checkout(
    built: RepositoryBuilder, requested: str
):
    built.commit({"code": MINE}, "my work")
    built.git("push", "-q", "origin", "main")
    before = standing(built)
    told = plait(built, "review", "7", path=requested)
    assert told.returncode == 3
    assert "1 file to resolve" in told.stdout
    done = plait(built, "review", "7", "--both", path=requested)
    assert done.returncode == 0, done.stderr
    tree = done.stderr.partition("commit-tree ")[2].split()[0]
    assert built.git("show", f"{tree}:code") == changed(3, "mine\ntheirs").strip()
    assert standing(built) == before


def test_a_request_opens_in_the_diff_screen(
    built: RepositoryBuilder, requested: str, tmp_path: Path
):
    env = {**built.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    env["PATH"] = f"{requested}:{env['PATH']}"
    shell = Shell(built.path, tmp_path / "state", env)
    with console_story(shell, "review", "#7", size=(80, 24)) as console:
        console.shows("your request #7: A better third line", "theirs")
        console.shows("is compared with its start on main").do("everywhere.back")
        assert console.end() == 0


@pytest.mark.parametrize("tools", ["", "with gh"])
def test_no_gh_and_no_such_request_are_said(
    built: RepositoryBuilder, requested: str, tools: str, tmp_path: Path
):
    path = requested if tools else ""
    lost = plait(built, "review", "8" if tools else "7", path=path)
    assert lost.returncode == 2
    assert ("no pull requests found for 8" if tools else "gh") in lost.stderr
