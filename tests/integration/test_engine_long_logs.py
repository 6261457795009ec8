"""A log of more lines than an engine holds in memory reaches a reader whole."""

from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from engine.messages.events import OutputAppended
from engine.messages.logs import KEPT_LINES
from engine.phases import Phase
from tests.support.engine_runs import Place, wait_worker

pytestmark = pytest.mark.anyio

LINES = 2 * KEPT_LINES + 1_234
WORKER = "a/worker_1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_long_log_is_whole_while_its_agent_works_and_when_it_has_ended(place: Place):
    flood = f"seq {LINES}; {place.waits_at('go')}; echo last"
    expected = [str(number) for number in range(1, LINES + 1)]
    async with place.engine() as engine:
        run = await engine.start(place.manifest({"name": "a", "run": flood}))
        with anyio.fail_after(80):
            async with aclosing(engine.events(run=run.id)) as events:
                async for told in events:
                    if isinstance(told.event, OutputAppended) and told.event.offset >= LINES:
                        break
        assert [line.text for line in (await engine.log(run.id, WORKER)).lines] == expected
        newest = await engine.log(run.id, WORKER, most=10)
        assert [line.text for line in newest.lines] == expected[-10:]
        assert (newest.first, newest.next_offset) == (LINES - 10, LINES)
        reread = await engine.log(run.id, WORKER, after=5, most=LINES - 7)
        assert [line.text for line in reread.lines] == expected[7:]
        assert reread.first == 7
        place.open_gate("go")
        await wait_worker(engine, run, WORKER, lambda w: w.phase is Phase.FINISHED)
        ended = await engine.log(run.id, WORKER)
        assert [line.text for line in ended.lines] == [*expected, "last"]
        assert ended.is_end
