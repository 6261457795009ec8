"""Real engines on real repositories whose workers' changes meet: landed, conflicted, resolved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.api import Engine, Run
from engine.messages import commands as c
from engine.phases import Phase
from tests.support.engine_runs import Place, scripted, wait_worker
from tests.support.repositories import RepositoryBuilder

SOURCE = "".join(f"line {number}\n" for number in range(1, 13))


def changed(number: int, text: str, source: str = SOURCE) -> str:
    """The source with one line replaced."""
    return source.replace(f"line {number}\n", f"{text}\n")


class MergingPlace(Place):
    """A repository with one file of twelve lines, and engines on it."""

    def __init__(self, tmp_path: Path, files: Mapping[str, str] | None = None) -> None:
        self.built = RepositoryBuilder(tmp_path / "project")
        self.built.commit({"code": SOURCE, "other": SOURCE, **(files or {})}, "start")
        super().__init__(tmp_path)
        self.environment = {**self.environment, "HOME": str(self.built.home)}

    def workers(self, *texts: str | Mapping[str, str | None], **more: Any) -> dict[str, Any]:
        """A manifest of steps `s1`, `s2` … that each write `code`, or the files given."""
        steps = [
            {"name": f"s{number}", "agent": writes(text), **more}
            for number, text in enumerate(texts, 1)
        ]
        return self.manifest(*steps, isolation_strategy="worktree")

    def text(self, path: str = "code", revision: str = "main") -> str:
        """A file as the branch has it."""
        return self.built.show(revision, path).decode()


def writes(files: str | Mapping[str, str | None]) -> dict[str, Any]:
    """An agent that writes these files; None deletes one."""
    wanted = {"code": files} if isinstance(files, str) else dict(files)
    steps = [
        {"write": {"path": path, "text": text}} if text is not None else {"shell": f"rm {path}"}
        for path, text in wanted.items()
    ]
    return scripted(*steps, {"result": "done"})


async def reviewed(engine: Engine, plan: Mapping[str, Any]) -> Run:
    """A run whose every worker waits for review."""
    run = await engine.start(dict(plan))
    await run.wait()
    return run


async def land(engine: Engine, run: Run, worker: str, **more: Any) -> Phase:
    """Land a worker; the phase it comes to."""
    reply = await engine.command(c.Land(worker=worker, run=run.id, **more))
    assert isinstance(reply, c.Accepted), reply
    return await settled(engine, run, worker)


async def settled(engine: Engine, run: Run, worker: str) -> Phase:
    """The phase after a landing."""
    view = await wait_worker(engine, run, worker, lambda w: w.phase is not Phase.LANDING)
    return view.phase


async def conflicted(engine: Engine, place: MergingPlace, *texts: str, **more: Any) -> Run:
    """A run whose first worker is landed and whose second conflicts with it."""
    run = await reviewed(engine, place.workers(*texts, **more))
    assert await land(engine, run, "s1/worker_1") is Phase.LANDED
    assert await land(engine, run, "s2/worker_1") is Phase.CONFLICTED
    return run
