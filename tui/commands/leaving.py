"""Leaving a run that was stopped but whose end cannot be written down: what is kept, and where."""

import sys
from collections.abc import Iterator
from pathlib import Path

import anyio

from engine.api import EnginePort, engine_key
from engine.messages.questions import ReadRun
from engine.messages.results import RunView
from tui.commands.outlet import write
from tui.words.clean import clean

_PATIENCE_S = 4.0
_LOOK_S = 0.5
_LAST_WORDS_S = 1.0


async def wait_stuck(port: EnginePort, run: str) -> RunView:
    """Return the run when somebody wants it to end and nothing could be written for a while."""
    since: float | None = None
    while True:
        view = await port.ask(ReadRun(run))
        now = anyio.current_time()
        if view.trouble is None or not view.is_stopping:
            since = None
        elif since is None:
            since = now
        elif now - since > _PATIENCE_S:
            return view
        await anyio.sleep(_LOOK_S)


async def tell_left(repo: str, view: RunView) -> None:
    """Say what stands where, for a human who makes room and goes on."""
    runs = Path(await engine_key(repo)) / "runs" / view.run
    with anyio.move_on_after(_LAST_WORDS_S):
        await write(sys.stderr, "".join(f"{line}\n" for line in _left_lines(runs, view)))


def _left_lines(runs: Path, view: RunView) -> Iterator[str]:
    if view.trouble is not None:
        yield f"the end of run {view.run} cannot be recorded: {clean(view.trouble.what)}"
    for worker in view.workers:
        if worker.is_live and worker.attempt:
            record = runs / worker.worker / f"attempt_{worker.attempt}"
            yield f"kept: {worker.worker}: its record in {clean(str(record))}"
            if worker.workspace:
                yield f"kept: {worker.worker}: its files in {clean(worker.workspace)}"
    if view.trouble is not None:
        yield clean(view.trouble.help)
    how = f"`plait resume {view.run}`, then `plait cancel --all --run {view.run}`"
    yield f"to end the run: {how}"
