"""One look for several attempts tells each of them what it would have found by itself."""

import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.core.state import Begun, initial_state
from engine.ids import RunId, WorkerId
from engine.phases import Phase
from engine.plan.model import Runtime
from engine.proof import looking
from engine.proof.looking import Known, Sight, TreeAnswer, TreeQuestion
from engine.proof.resting import RestingTrees
from engine.proof.written_once import EndedAttempts
from engine.sandbox.tamper import News
from engine.site.place import Place
from engine.site.shelter import Shelter
from engine.store.layout import Layout
from tests.support.plans import a_plan, a_step

FIRST, SECOND, THIRD = (WorkerId("a", n) for n in (1, 2, 3))


class Fence:
    """A sandbox that keeps everybody from everything, or nobody from anything."""

    is_open = True

    def may_write(self, runtime: Runtime, path: Path) -> bool:
        del runtime, path
        return self.is_open


class Ground:
    """A run of three workers in a plain folder, each with its tree and one ended attempt."""

    site = ""

    def __init__(self, top: Path) -> None:
        self.project = top / "project"
        self.project.mkdir()
        layout = Layout(top / "state")
        self.run = layout.run(RunId("r"))
        place = Place(project=self.project, layout=layout, workspaces=top / "trees", repo=None)
        self.fence = Fence()
        self.sight = Sight(place, cast("Shelter", self.fence))
        self.state = initial_state(RunId("r"), a_plan(a_step("a", 3)))
        for worker in (FIRST, SECOND, THIRD):
            self.folder(worker).mkdir(parents=True)
            (self.folder(worker) / "exit.json").write_text("{}")
            self.tree(worker).mkdir(parents=True)
            (self.tree(worker) / "file").write_text("x")
            self.stand(worker, Phase.REVIEWING)
        self.known = Known(EndedAttempts(self.run), RestingTrees(self.state))

    def folder(self, worker: WorkerId) -> Path:
        return self.run / str(worker) / "attempt_1"

    def tree(self, worker: WorkerId) -> Path:
        return self.run.parent / "trees" / worker.short

    def stand(self, worker: WorkerId, phase: Phase) -> None:
        begun = Begun(workspace=str(self.tree(worker)), site=self.site)
        w = replace(self.state.workers[worker], phase=phase, begun=begun)
        self.state = replace(self.state, workers={**self.state.workers, worker: w})

    def begin(self, worker: WorkerId) -> TreeQuestion:
        wait_tick()
        self.stand(worker, Phase.RUNNING)
        return TreeQuestion(worker, self.sight.before(self.state, worker, self.known)[0])

    def end(self, *several: TreeQuestion) -> list[set[str]]:
        """Return the result of each when all end together; the result of each alone is the same."""
        alone = [_names(*self.sight.after(self.state, self.known, [each])) for each in several]
        together = self.sight.after(self.state, self.known, several)
        assert alone == [_names(each) for each in together]
        return alone


def _names(seen: TreeAnswer) -> set[str]:
    return {str(path) for path in (*seen.trees.paths, *(seen.rewritten or ()))}


def wait_tick() -> None:
    """Wait longer than the clock of a file system lags behind."""
    begun = time.monotonic()
    while time.monotonic() < begun + 0.02:
        pass


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_a_calm_look_tells_nobody_anything(ground: Ground) -> None:
    (ground.tree(THIRD) / "file").write_text("y")
    asked = [ground.begin(worker) for worker in (FIRST, SECOND)]
    (ground.tree(FIRST) / "file").write_text("y")  # its own
    assert ground.end(*asked) == [set(), set()]


def test_what_a_sandbox_hides_is_not_even_looked_at(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[Path] = []

    def walk(tops: Iterable[Path], *_: object, **__: object) -> News:
        walked.extend(tops)
        return News(paths=(), is_whole=True)

    monkeypatch.setattr(looking, "changed_since", walk)
    for is_open in (False, True):
        ground.fence.is_open = is_open
        asked = [ground.begin(worker) for worker in (FIRST, SECOND)]
        assert ground.end(*asked) == [set(), set()]
        assert bool(walked) == is_open


def test_only_who_began_before_it_is_told_what_was_written(ground: Ground) -> None:
    early = ground.begin(FIRST)
    recording = ground.folder(THIRD) / "exit.json"
    for file in (ground.tree(THIRD) / "file", recording, ground.project / "new"):
        file.write_text("y")
    written = {str(path) for path in (ground.tree(THIRD) / "file", recording)}
    late = ground.begin(SECOND)
    assert ground.end(early, late) == [written | {str(ground.project / "new")}, set()]


def test_trees_of_another_site_are_looked_into_there(ground: Ground) -> None:
    asked_of: list[Mapping[str, int]] = []

    def walk(trees: Mapping[str, int]) -> News:
        asked_of.append(trees)
        return News(paths=(Path("/far/file"),), is_whole=True)

    ground.site, ground.fence.is_open = "elsewhere", False
    for worker in (SECOND, THIRD):
        ground.stand(worker, Phase.REVIEWING)
    shutil.rmtree(ground.tree(THIRD))  # nothing here tells of it
    ground.stand(THIRD, Phase.FINISHED)
    question = ground.begin(FIRST)
    (seen,) = ground.sight.after(ground.state, ground.known, [question], walk)
    assert seen.trees.paths == (Path("/far/file"),)
    assert [set(trees) for trees in asked_of] == [
        {str(ground.tree(worker)) for worker in (SECOND, THIRD)}
    ]


def test_what_was_at_work_when_one_began_or_is_again_is_not_looked_at(ground: Ground) -> None:
    ground.stand(SECOND, Phase.RUNNING)
    asked = ground.begin(FIRST)
    (ground.tree(SECOND) / "file").write_text("y")
    ground.stand(SECOND, Phase.FINISHED)
    assert ground.end(asked) == [set()]
    again = ground.begin(FIRST)
    (ground.tree(SECOND) / "file").write_text("y")
    ground.stand(SECOND, Phase.RUNNING)
    assert ground.end(again) == [set()]


def test_a_tree_that_was_given_back_is_forgotten_and_a_new_one_is_known(ground: Ground) -> None:
    ground.stand(SECOND, Phase.FINISHED)
    shutil.rmtree(ground.tree(SECOND))
    ground.begin(FIRST)
    resting = ground.known.trees.at(ground.state, 1)
    assert set(resting) == {str(ground.tree(THIRD))}
    ground.tree(SECOND).mkdir()
    ground.known.trees.add(SECOND, str(ground.tree(SECOND)))
    assert ground.known.trees.at(ground.state, 5)[str(ground.tree(SECOND))] == (SECOND, 5)
