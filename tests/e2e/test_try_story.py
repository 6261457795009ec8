"""A human tries two results in a checkout with edits of their own, then lands one of them."""

from collections.abc import Iterator

import pytest

from tests.support.checkouts import picture, told
from tests.support.repositories import RepositoryBuilder
from tests.support.shells import Shell, end_engine

PLAN = """
agents:
  one:
    adapter: scripted
    script: |
      steps: [{write: {path: made.txt, text: "one\\n"}}, {write: {path: mine.txt, text: "one\\n"}}]
  two:
    adapter: scripted
    script: |
      steps: [{write: {path: made.txt, text: "two\\n"}}]
  none:
    adapter: scripted
    script: |
      steps: [{write: {path: base.txt, text: "theirs\\n"}}]
pipelines:
  - name: p
    steps:
      - {name: s1, agent: one, prompt: "write"}
      - {name: s2, agent: two, prompt: "write"}
      - {name: s3, agent: none, prompt: "write"}
"""


@pytest.fixture
def tried(repository: Shell) -> Iterator[Shell]:
    """A repository with three results that wait for review, and edits of the user's."""
    (repository.folder / "plait.yaml").write_text(PLAN)
    (repository.folder / "base.txt").write_text("base\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "base")
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    (repository.folder / "mine.txt").write_text("an own file\n")
    (repository.folder / "notes.txt").write_text("staged\n")
    repository.git("add", "notes.txt")
    yield repository
    end_engine(repository)


def test_two_results_are_tried_one_after_the_other_and_one_lands(tried: Shell):
    built = RepositoryBuilder(tried.folder, init=False)
    seen, before = told(built), picture(built)

    done = tried.plait("try", "s1/worker_1")
    assert done.code == 0, done.err
    assert "now holds" in done.err
    assert "your own edits to mine.txt" in done.err
    assert (tried.folder / "mine.txt").read_text() == "one\n"
    assert "plait try --back" in tried.plait("status").err
    trying = tried.plait("status", "--json").json()["trying"]
    assert (trying["worker"], trying["put_aside"], trying["is_whole"]) == (
        "s1/worker_1",
        ["mine.txt"],
        True,
    )

    done = tried.plait("try", "s2")
    assert done.code == 0, done.err
    assert "is as it was before" in done.err
    assert (tried.folder / "made.txt").read_text() == "two\n"
    assert (tried.folder / "mine.txt").read_text() == "an own file\n"

    (tried.folder / "made.txt").write_text("edited while trying\n")
    done = tried.plait("try", "--back")
    assert done.code == 0, done.err
    assert "your edits made during the try are kept on refs/plait/edits/" in done.err
    assert picture(built) == before
    assert told(built) == seen
    assert tried.plait("try", "--back").code == 1
    assert tried.plait("status", "--json").json()["trying"] is None


def test_nothing_lands_and_no_landing_is_undone_while_a_try_is_on(tried: Shell):
    assert tried.plait("try", "s1").code == 0
    refused = tried.plait("land", "s2/worker_1")
    assert refused.code != 0
    assert "has the result of" in refused.err
    assert tried.plait("try", "--back").code == 0
    assert tried.plait("land", "s2/worker_1").code == 0
    assert (tried.folder / "made.txt").read_text() == "two\n"
    assert tried.plait("try", "s3").code == 0
    refused = tried.plait("undo")
    assert refused.code == 1
    assert "has the result of" in refused.err
    assert tried.plait("try", "--back").code == 0
    assert tried.plait("undo").code == 0
    assert not (tried.folder / "made.txt").exists()


def test_a_result_with_conflicts_is_refused_and_nothing_is_touched(tried: Shell):
    built = RepositoryBuilder(tried.folder, init=False)
    (tried.folder / "base.txt").write_text("mine\n")
    tried.git("commit", "-q", "-m", "mine", "base.txt")
    seen, before = told(built), picture(built)
    done = tried.plait("try", "s3/worker_1")
    assert done.code == 2
    assert "conflicts with its target in base.txt" in done.err
    assert tried.plait("try").code == 1
    assert tried.plait("try", "s1", "--back").code == 2
    assert picture(built) == before
    assert told(built) == seen
