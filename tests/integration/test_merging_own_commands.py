"""`plait review`, `mergetool` and `pr` as a shell sees them: output, codes, what they leave."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console_story import console_story
from tests.support.merging_runs import SOURCE, changed
from tests.support.repositories import RepositoryBuilder
from tests.support.shells import Shell

MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")
FAKE_GH = """#!/bin/sh
printf '%s\\n' "$@" > {said}
echo https://example.org/pull/7
"""


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    made = RepositoryBuilder(tmp_path / "project")
    made.commit({"code": SOURCE}, "start")
    made.git("checkout", "-q", "-b", "side")
    made.commit({"code": THEIRS}, "their work")
    made.git("checkout", "-q", "main")
    made.commit({"code": MINE}, "my work")
    return made


def plait(
    built: RepositoryBuilder, *words: str, path: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**built.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment["PATH"] = f"{path}:{environment['PATH']}" if path else environment["PATH"]
    return subprocess.run(
        [sys.executable, "-m", "tui.cli", *words],
        cwd=built.path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_merge_is_decided_from_a_shell_and_going_on_is_offered(built: RepositoryBuilder):
    nothing = plait(built, "review", "--show")
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "there is no open conflict here" in nothing.stderr
    built.try_git("merge", "side")
    shown = plait(built, "review", "--show")
    assert shown.returncode == 3
    assert "side and main: 1 file to resolve" in shown.stdout
    done = plait(built, "review", "--both", "--json")
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert (said["doing"], said["is_finished"]) == ("merge", True)
    assert said["next_step"] == "git merge --continue"
    assert "next: git merge --continue" in done.stderr
    assert (built.path / "code").read_text() == changed(3, "mine\ntheirs")
    built.git("-c", "core.editor=true", "merge", "--continue")


def test_the_screen_of_ones_own_merge_is_the_whole_program_and_says_what_it_wrote(
    built: RepositoryBuilder, tmp_path: Path
):
    env = {**built.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    shell = Shell(built.path, tmp_path / "state", env)
    built.try_git("merge", "side")
    with console_story(shell, "review", size=(80, 24)) as console:
        console.shows("your merge", "conflict 1 of 1").do("everywhere.go_fleet")
        console.shows("q leaves it").do("everywhere.back")
        assert console.end() == 3
        assert b"Nothing was written; still open: code." in console.written
    with console_story(shell, "review", size=(80, 24)) as console:
        console.shows("conflict 1 of 1").do("review.take_both")
        assert "--continue" not in console.shows("L writes it to your files").text
        console.do("review.land")
        assert console.end() == 0
        assert b"code: written to your files and staged." in console.written
        assert b"Next: git merge --continue" in console.written
    built.git("-c", "core.editor=true", "merge", "--continue")
    assert built.status() == ""


def test_git_mergetool_is_served_and_told_whether_it_was_decided(built: RepositoryBuilder):
    words = f'"{sys.executable}" -m tui.cli mergetool "$BASE" "$LOCAL" "$REMOTE" "$MERGED"'
    built.configure("merge.tool", "plait").configure("mergetool.plait.trustExitCode", "true")
    built.configure("mergetool.plait.cmd", f"{words} --show")
    built.try_git("merge", "side")
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    refused = built.try_git("mergetool", "--no-prompt", env=env)
    assert refused.returncode == 1
    assert built.git("diff", "--name-only", "--diff-filter=U") == "code"
    built.configure("mergetool.plait.cmd", f"{words} --incoming")
    taken = built.try_git("mergetool", "--no-prompt", env=env)
    assert taken.returncode == 0, taken.stderr
    assert (built.path / "code").read_text() == THEIRS
    assert built.git("diff", "--name-only", "--diff-filter=U") == ""


def test_a_pull_request_is_pushed_and_asked_for_or_told_how(
    built: RepositoryBuilder, tmp_path: Path
):
    built.git("checkout", "-q", "side")
    lost = plait(built, "pr")
    assert (lost.returncode, "there is no remote to push to" in lost.stderr) == (2, True)
    built.git("init", "-q", "--bare", str(tmp_path / "there.git"))
    built.git("remote", "add", "origin", str(tmp_path / "there.git"))
    dry = plait(built, "pr", "--dry-run", "--as", "fix")
    assert dry.stdout.startswith("git push origin refs/heads/side:refs/heads/fix\ngh pr create")
    assert built.git("ls-remote", "origin") == ""
    told = plait(built, "pr", "--as", "fix")
    assert told.returncode == 0
    assert "gh pr create --head fix --base main --title 'their work'" in told.stderr
    assert built.git("ls-remote", "origin").split() == [built.rev("side"), "refs/heads/fix"]
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text(FAKE_GH.format(said=tmp_path / "said"))
    (tools / "gh").chmod(0o755)
    asked = plait(built, "pr", "--as", "fix", "--base", "trunk", path=str(tools))
    assert (asked.returncode, asked.stdout) == (0, "https://example.org/pull/7\n")
    assert "trunk" in (tmp_path / "said").read_text()
    built.git("remote", "set-url", "origin", str(tmp_path / "nowhere.git"))
    failed = plait(built, "pr", "--as", "fix")
    assert failed.returncode == 1
    assert "do this by hand:\n  git push origin" in failed.stderr
