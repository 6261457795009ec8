"""Artifacts between steps whose worktrees are full of traps: nothing is written outside."""

from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from engine.beneath import Why, remove_tree
from engine.messages.events import OutsideChanged, Told
from engine.messages.logs import LogKind
from engine.site.artifacts import keep_artifacts
from tests.support.engine_runs import Place, phases
from tests.support.needs import need
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


class Ground(Place):
    """A user's repository, and steps that are shell commands in it."""

    def __init__(self, tmp_path: Path, rung: str) -> None:
        super().__init__(tmp_path)
        self.repository = RepositoryBuilder(tmp_path / "repo")
        self.repository.commit({"a.txt": "a\n", ".gitignore": "dist/\n"})
        self.project = self.repository.path
        self.environment["PLAIT_SANDBOX"] = rung
        (self.project / ".git/hooks").mkdir(exist_ok=True)

    def plan(self, *steps: dict[str, Any]) -> dict[str, Any]:
        agents: dict[str, Any] = {}
        named: list[dict[str, Any]] = []
        for number, step in enumerate(steps, 1):
            script = step.pop("does")
            agents[f"a{number}"] = {"adapter": "command", "argv": ["sh", "-ec", script]}
            named.append({"name": f"s{number}", "agent": f"a{number}", "prompt": "x", **step})
        return {"agents": agents, "pipelines": [{"name": "p", "steps": named}]}

    async def hooks(self) -> list[str]:
        folder = self.project / ".git/hooks"
        return await to_thread.run_sync(lambda: sorted(path.name for path in folder.glob("*")))


@pytest.fixture(params=["bwrap", "none"])
def ground(tmp_path: Path, request: pytest.FixtureRequest) -> Ground:
    if request.param == "bwrap":
        need("bubblewrap")
    return Ground(tmp_path, request.param)


def agent(script: str) -> dict[str, Any]:
    return {"does": script}


async def test_an_artifact_is_not_given_through_a_link_that_another_step_committed(ground: Ground):
    before = await ground.hooks()
    told: list[Told] = []
    async with ground.engine() as engine:
        run = await engine.start(
            ground.plan(
                {
                    **agent("mkdir dist; echo evil > dist/post-checkout; echo ok > ok.txt"),
                    "artifacts": ["dist", "ok.txt"],
                },
                agent(
                    f"ln -s {ground.project}/.git/hooks dist; git add dist; git commit -qm linked"
                ),
                {**agent("ls dist/ || true; cat ok.txt > 3.txt"), "dependencies": ["s1", "s2"]},
            )
        )
        report = await run.wait()
        log = await engine.log(run.id, "s3/worker_1")
    assert phases(report)["s3/worker_1"] == "REVIEWING"
    assert await ground.hooks() == before
    notes = [line.text for line in log.lines if line.kind is LogKind.NOTE]
    assert any("artifact dist of s1/worker_1 was not passed on" in note for note in notes), notes
    assert not [one for one in told if isinstance(one.event, OutsideChanged)]


def test_artifacts_match_as_globs_do_and_follow_no_link(tmp_path: Path):
    root, kept = tmp_path / "root", tmp_path / "kept"
    (root / "a/b").mkdir(parents=True)
    (root / "dist/deep").mkdir(parents=True)
    for name in ("a/x.log", "a/b/y.log", "z.log", "dist/deep/file", "dist/.hidden"):
        (root / name).write_text(name)
    (root / "out").symlink_to("/etc")
    (root / "a/in").symlink_to("x.log")
    for patterns in (["*.log"], ["**/*.log"], ["a/*"], ["dist"], ["d?st/**/file"], ["[az]*"]):
        remove_tree(tmp_path / "k")
        plain = {str(one.relative_to(root)) for one in patterns for one in root.glob(one)}
        assert set(keep_artifacts(root, patterns, tmp_path / "k").found) == plain, patterns
    found = keep_artifacts(root, ["out/passwd", "out", "dist", "a/in"], kept)
    assert found.found == ("a/in", "dist")
    assert [(one.path, one.why) for one in found.refused] == [(b"out", Why.LEADS_OUT)]
    assert (kept / "dist/deep/file").read_text() == "dist/deep/file"


async def test_what_is_no_file_among_artifacts_is_named_and_the_rest_is_kept(ground: Ground):
    async with ground.engine() as engine:
        run = await engine.start(
            ground.plan(
                {
                    **agent(
                        "mkdir dist; mkfifo dist/fifo; echo 1 > dist/file; echo 2 > new.txt;"
                        "truncate -s 1900M dist/sparse; mkdir dist/shut; echo 3 > dist/shut/f;"
                        "chmod 000 dist/shut"
                    ),
                    "artifacts": ["dist"],
                }
            )
        )
        await run.wait()
        worker = (await engine.view(run.id)).worker("s1/worker_1")
    assert worker.change is not None
    assert worker.change.files == 1
    assert worker.change.artifacts == ("dist",)
    assert "artifact dist/fifo: it is neither a file, a folder nor a link" in (
        worker.change.set_aside
    )
    await to_thread.run_sync(look_at_kept, ground.project / ".git/plait/runs")


def look_at_kept(runs: Path) -> None:
    kept = next(runs.rglob("artifacts_1"))
    assert (kept / "dist/shut/f").read_text() == "3\n"
    assert (kept / "dist/sparse").stat().st_blocks < 100
