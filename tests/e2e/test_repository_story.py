"""Three candidates in a real repository: chosen, stacked upon, landed; the user left alone."""

import os
import pwd
from pathlib import Path

import pytest

from tests.support.shells import Shell

PLAN = """
agents:
  shouter:
    adapter: scripted
    script: |
      steps:
        - replace: {path: a.txt, old: two, new: TWO}
        - write: {path: "by{index}.txt", text: "hi"}
        - result: "shouted"
  appender:
    adapter: scripted
    script: |
      steps:
        - append: {path: a.txt, text: "four\\n"}
        - commit: "add four"
pipelines:
  - name: p
    steps:
      - {name: shout, agent: shouter, prompt: "shout two", concurrency: 2, check: "grep TWO a.txt"}
      - {name: grow, agent: appender, prompt: "append", dependencies: [shout]}
"""


pytestmark = pytest.mark.parametrize("site", ["local", "child"])


@pytest.fixture(autouse=True)
def plan(repository: Shell):
    (repository.folder / "plait.yaml").write_text(PLAN)
    repository.git("add", ".")
    repository.git("commit", "-qm", "plan")


def test_candidates_are_chosen_stacked_upon_and_landed(repository: Shell):
    waiting = repository.plait("run", "plait.yaml", "--headless", "--json")
    assert waiting.code == 3, waiting.err
    assert any("choose" in want for want in waiting.events[-1]["report"]["waits_for"])
    assert (repository.folder / "a.txt").read_text() == "one\ntwo\nthree\n"
    diff = repository.plait("diff", "shout/worker_1").out
    assert "-two" in diff
    assert "+TWO" in diff
    assert "by1.txt" in repository.plait("diff", "shout/worker_1", "--stat").out

    assert repository.plait("choose", "shout/worker_2").code == 0
    refused = repository.plait("land", "grow/worker_1")
    assert refused.code == 1
    assert "shout/worker_2" in refused.err

    assert repository.plait("land", "shout/worker_2").code == 0
    assert repository.plait("land", "grow/worker_1").code == 0
    assert (repository.folder / "a.txt").read_text() == "one\nTWO\nthree\nfour\n"
    assert repository.git("status", "--porcelain") == ""
    assert "Plait-Worker: grow/worker_1" in repository.git("log", "-1", "--format=%B")
    refs = repository.git("for-each-ref", "--format=%(refname)")
    assert "shout/worker_1/attempt_1/head" in refs


def test_the_users_own_edits_are_never_overwritten(repository: Shell):
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    (repository.folder / "a.txt").write_text("my own edit\n")
    repository.plait("choose", "shout/worker_1")
    done = repository.plait("land", "shout/worker_1")
    assert done.code == 1
    assert (repository.folder / "a.txt").read_text() == "my own edit\n"
    assert "a.txt" in repository.plait("status").out


def test_a_branch_where_the_workers_would_go_is_named_before_anything_starts(repository: Shell):
    repository.git("branch", "plait")
    refused = repository.plait("run", "plait.yaml", "--headless")
    assert refused.code == 2
    assert all(word in refused.err for word in ("'plait'", "git branch -m plait", "branch_prefix"))
    assert repository.git("for-each-ref", "refs/plait") == ""

    repository.git("branch", "-m", "plait", "mine")
    assert repository.plait("run", "plait.yaml", "--headless").code == 3


def test_a_full_name_means_the_same_worker_and_attempt_to_every_command(repository: Shell):
    repository.plait("run", "plait.yaml", "--headless")
    run = repository.plait("status", "--json").json()["run"]
    repository.plait("run", "x", "--headless", "-a", "appender")
    full = f"{run}/shout/worker_1"
    for words in (("diff",), ("logs",), ("logs", "--raw")):
        short = repository.plait(*words, "shout/worker_1", "--run", run)
        assert short.code == 0, short.err
        assert short.out
        assert repository.plait(*words, full).out == short.out
        assert repository.plait(*words, f"{full}@1").out == short.out
        later = repository.plait(*words, f"{full}@2")
        assert (later.code, later.out) == (2, ""), words
        assert "attempt 2" in later.err
    assert repository.plait("choose", full).code == 0
    assert repository.plait("land", full).code == 0
    done = repository.plait("undo", full)
    assert done.code == 0, done.err
    assert "shout/worker_1 waits for review again" in done.err
    assert "no remote" in repository.plait("pr", full, "--dry-run").err


def test_the_demo_tells_its_story(repository: Shell):
    done = repository.plait("demo", "--headless")
    assert done.code == 0, done.out + done.err
    assert "✗" not in done.out


def test_clean_takes_what_is_kept_elsewhere_and_restore_brings_it_back(repository: Shell):
    repository.plait("run", "plait.yaml", "--headless")
    repository.plait("choose", "shout/worker_2")
    stays = repository.plait("clean", "--dry-run", "--json").json()
    reasons = {item["worker"]: item["is_safe"] for item in stays}
    assert reasons["shout/worker_2"] is False
    assert repository.plait("cancel", "--all").code in {0, 1}
    for worker in ("shout/worker_2", "grow/worker_1"):
        repository.plait("reject", worker)
    said = repository.plait("clean").out
    assert "its work has not landed yet\n  branch plait/" in said
    trashed = [line.split()[0] for line in repository.plait("restore").out.splitlines()]
    name = next(name for name in trashed if ".shout.worker_2." in name)
    back = repository.plait("restore", name)
    assert back.code == 0, back.err
    assert "TWO" in (Path(back.out.strip()) / "a.txt").read_text()


def test_a_landing_is_undone_and_waits_for_review_again(repository: Shell):
    repository.plait("run", "plait.yaml", "--headless")
    repository.plait("choose", "shout/worker_2")
    before = repository.git("rev-parse", "main")
    assert repository.plait("land", "shout/worker_2").code == 0
    done = repository.plait("undo")
    assert done.code == 0, done.err
    assert repository.git("rev-parse", "main") == before
    assert (repository.folder / "a.txt").read_text() == "one\ntwo\nthree\n"
    told = repository.plait("status").out.splitlines()
    (row,) = [line for line in told if "shout/worker_2             REVIEWING" in line]
    assert row.endswith(f"{pwd.getpwuid(os.getuid()).pw_name} undid its landing on main")


def test_after_an_undo_the_diff_shows_what_lands_and_not_what_the_check_left(repository: Shell):
    begun = ("run", "do it", "-a", "shouter", "--check", "echo x > left.txt", "--headless")
    repository.plait(*begun)
    assert repository.plait("land", "do-it/worker_1").code == 0
    repository.plait("clean")  # keeps the file of the check, too, before it removes the worktree
    assert repository.plait("undo").code == 0
    shown = repository.plait("diff", "do-it/worker_1").out
    assert ("TWO" in shown, "left.txt" in shown) == (True, False)
    assert repository.plait("land", "do-it/worker_1").code == 0
    assert not (repository.folder / "left.txt").exists()


def test_a_run_says_which_edits_it_does_not_see_and_takes_them_when_asked(repository: Shell):
    (repository.folder / "a.txt").write_text("one\ntwo\nthree\nmine\n")
    assert "a.txt" in repository.plait("run", "plait.yaml", "--headless").err
    told = repository.plait("run", "plait.yaml", "--headless", "--base", "WORKTREE")
    assert "not in the base" not in told.err
    assert " mine" in repository.plait("diff", "shout/worker_1").out


def landed_one_after_another(repository: Shell) -> list[str]:
    """Two changes landed, each of a run of its own; the commits of main, oldest first."""
    for agent in ("shouter", "appender"):
        repository.plait("run", "do it", "-a", agent, "--headless")
        done = repository.plait("land", "do-it/worker_1")
        assert done.code == 0, done.err
    return repository.git("log", "--first-parent", "--reverse", "--format=%H", "main").split()


def test_undo_says_exactly_what_became_of_the_target(repository: Shell):
    commits = landed_one_after_another(repository)
    first, second = commits[-2:]
    newest = repository.plait("undo")
    assert newest.code == 0, newest.err
    assert f"main is back at {first[:10]}; do-it/worker_1 waits" in newest.err
    again = repository.plait("undo", "do-it/worker_1")
    assert (again.code, again.err) == (0, "the landing of do-it/worker_1 is undone already\n")
    assert repository.git("rev-parse", "main").strip() == first
    named = repository.plait("undo", first[:8])
    assert named.code == 0, named.err
    assert f"main is back at {commits[-3][:10]}; do-it/worker_1 waits" in named.err
    gone = repository.plait("undo", second[:8])
    assert (gone.code, "there is no landing to undo with the commit" in gone.err) == (1, True)
    assert repository.plait("undo").err == "there is no landing to undo in any run\n"


def test_undo_of_an_older_landing_adds_a_commit_and_leaves_the_newer(repository: Shell):
    *_, first, second = landed_one_after_another(repository)
    done = repository.plait("undo", first)
    assert done.code == 0, done.err
    at = repository.git("rev-parse", "main").strip()
    assert f"main had moved on, so the commit {at[:10]} reverts the landing" in done.err
    assert repository.git("rev-parse", "main^").strip() == second


def test_undo_that_is_refused_says_so_and_nothing_else(repository: Shell):
    *_, second = landed_one_after_another(repository)
    (repository.folder / "a.txt").write_text("mine\n")
    changed = repository.git("diff", "--name-only", f"{second}^", second).split()
    (repository.folder / changed[0]).write_text("mine\n")
    done = repository.plait("undo")
    assert done.code == 1
    assert "do-it/worker_1 stays landed: " in done.err
    assert "moved back" not in done.err
    assert repository.git("rev-parse", "main").strip() == second


def test_a_pull_request_sends_exactly_what_was_reviewed(repository: Shell):
    there = repository.folder.parent / "there.git"
    repository.git("init", "-q", "--bare", str(there))
    repository.git("remote", "add", "origin", str(there))
    repository.plait("run", "do it", "-a", "shouter", "--headless")
    worker = repository.plait("status", "--json").json()["steps"][0]["workers"][0]
    reviewed, branch = worker["change"]["head"], worker["branch"]
    later = repository.git("commit-tree", f"{reviewed}^{{tree}}", "-p", reviewed, "-m", "later")
    repository.git("update-ref", f"refs/heads/{branch}", later.strip())

    def sent() -> str:
        return repository.git("ls-remote", "origin", f"refs/heads/{branch}").split()[0]

    done = repository.plait("pr", "do-it/worker_1")
    assert done.code == 0, done.err
    assert (sent(), later.strip() != reviewed) == (reviewed, True)

    assert repository.plait("drop", "do-it/worker_1", "by1.txt").code == 0
    repository.git("push", "-q", "origin", f":refs/heads/{branch}")
    assert repository.plait("pr", "do-it/worker_1").code == 0
    there_now = repository.git("ls-tree", "--name-only", sent()).split()
    assert "by1.txt" not in there_now
    left = repository.plait("status", "--json").json()["steps"][0]["workers"][0]["change"]
    assert repository.git("rev-parse", f"{sent()}^{{tree}}").strip() == left["tree"]
    refused = repository.plait("pr", "nobody")
    assert (refused.code, "is not a worker of this run" in refused.err) == (2, True)
