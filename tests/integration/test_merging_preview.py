"""`plait preview`: what it tells, its exit code, and that it writes nothing but objects."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine import open_merge
from engine.git.common import common_sides
from engine.git.merge3 import Merger
from engine.git.objects import commits_of
from engine.git.runner import Repo
from engine.merge import Memory, SideNames
from engine.review import review as reviewing
from engine.review.review import Review
from tests.support.repositories import RepositoryBuilder, snapshot_of


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    made = RepositoryBuilder.small(tmp_path / "repo")
    made.git("checkout", "-q", "-b", "feature")
    made.commit({"src/a.py": "a = 1\nb = 3\nc = 3\n", "new\ttab": "n\n"}, "theirs")
    made.git("checkout", "-q", "main")
    made.commit({"src/a.py": "a = 1\nb = 4\nc = 3\n"}, "mine")
    return made


def preview(built: RepositoryBuilder, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui.cli", "preview", "-C", str(built.path), *words],
        env={**built.environment, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )


def test_conflicts_are_told_with_kinds_hunks_and_proposals(built: RepositoryBuilder):
    before = snapshot_of(built.path), built.git("for-each-ref"), built.status()
    done = preview(built, "main", "feature", "--json")
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert (told["target"], told["incoming"], told["is_clean"]) == ("main", "feature", False)
    (conflict,) = told["conflicts"]
    assert (conflict["path"], conflict["kind"]) == ("src/a.py", "contents")
    (hunk,) = conflict["hunks"]
    assert (hunk["base"], hunk["target"], hunk["incoming"]) == ("b = 2\n", "b = 4\n", "b = 3\n")
    assert (hunk["line"], hunk["proposals"]) == (2, 1)
    assert [option["choice"] for option in conflict["options"]][:2] == ["target", "incoming"]
    assert (snapshot_of(built.path), built.git("for-each-ref"), built.status()) == before


def test_the_same_in_words(built: RepositoryBuilder):
    done = preview(built, "main", "feature")
    assert done.returncode == 3
    assert "feature into main: 1 conflict\n" in done.stdout
    assert "src/a.py  contents, 1 hunk, 1 with a proposal" in done.stdout


def test_a_file_that_both_moved_is_named_by_all_its_names(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    for branch, name in (("ours", "mine.py"), ("theirs", "yours.py")):
        built.git("checkout", "-q", "-b", branch, "main")
        built.git("mv", "src/a.py", name)
        built.git("commit", "-qm", branch)
    done = preview(built, "ours", "theirs")
    assert "src/a.py  rename/rename, mine.py in ours, yours.py in theirs" in done.stdout
    (told,) = json.loads(preview(built, "ours", "theirs", "--json").stdout)["conflicts"]
    assert told["paths"] == {"base": "src/a.py", "target": "mine.py", "incoming": "yours.py"}
    labels = [option["label"] for option in told["options"]]
    assert labels[:2] == ["keep ours'", "keep theirs'"]


def test_a_clean_merge_ends_with_0_and_tells_its_tree(built: RepositoryBuilder):
    built.git("checkout", "-q", "-b", "calm", "main~1")
    built.commit({"calm": "c\n"})
    done = preview(built, "main", "calm", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["conflicts"] == []
    assert told["tree"] == built.git("merge-tree", "--write-tree", "main", "calm")


def test_a_name_that_is_no_commit_is_an_error_in_words(built: RepositoryBuilder):
    done = preview(built, "main", "nonsense")
    assert done.returncode == 2
    assert "is not a commit" in done.stderr
    assert "Traceback" not in done.stderr


def places(word: str) -> dict[str, str | bytes | None]:
    """A file with four places that all differ from the other sides', lines apart."""
    return {"f": "".join(f"{word} {n}\n\n{n}\n\n" for n in range(4))}


@pytest.fixture
def four(tmp_path: Path) -> RepositoryBuilder:
    """Two branches that conflict in four places of one file."""
    made = RepositoryBuilder(tmp_path / "four")
    made.commit(places("base"), "start")
    for branch in ("mine", "theirs"):
        made.git("checkout", "-q", "-b", branch, "main")
        made.commit(places(branch), branch)
    return made


def test_the_library_offers_the_side_that_was_taken_before(four: RepositoryBuilder):
    names = {"target": "mine", "incoming": "theirs", "environment": four.environment}
    merge = open_merge(four.path, **names)
    (conflict,) = merge.conflicts
    assert [one for offers in conflict.proposals for one in offers if one.rule == "likewise"] == []
    for place in (0, 1):
        merge.choose("f", place, "incoming")
    (conflict,) = merge.conflicts
    first = conflict.proposals[2][0]
    assert (first.rule, first.text, first.likely) == ("likewise", b"theirs 2\n", True)


@pytest.mark.anyio
async def test_a_review_offers_the_side_that_was_taken_before(
    four: RepositoryBuilder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reviewing, "_THINKS_S", 600.0)  # all proposals are there at once
    repo = await Repo.open(four.path, four.environment)
    merger = Merger(repo)
    sides = await common_sides(repo, merger, *await commits_of(repo, "mine", "theirs"))
    review = await Review.begin(repo, merger, sides, SideNames("mine", "theirs"))
    assert [hunk.proposals for hunk in (await review.view(Memory())).files[0].hunks] == [()] * 4
    for place in (0, 1):
        review.session = review.session.choose(b"f", place, "target")
    decided, _, third, _ = (await review.view(Memory())).files[0].hunks
    assert decided.proposals == ()
    (offer,) = third.proposals
    assert (offer.rule, offer.text, offer.likely) == ("likewise", "mine 2\n", True)
    assert "you took the target side just before, in this file; right in 9 of 10" in offer.reason
