"""Run Python functions as agents in threads of this process, if the execution mode says so."""

from functools import partial

import anyio.to_thread

from engine.agents.calling import about_call, function_of
from engine.agents.contract import LaunchRequest
from engine.agents.own_stream import OwnStream
from engine.core import facts as f
from engine.core.state import Worker
from engine.host.threads import ThreadHost, was_begun
from engine.ids import AttemptId
from engine.work.activities import Activity
from engine.work.notebook import Notebook
from engine.work.run_ports import RunPort
from engine.work.tools import Tools
from engine.work.watch import Watch


async def run_in_thread(
    tools: Tools, run: RunPort, activity: Activity, request: LaunchRequest, *, adopt: bool
) -> None:
    """Call the function and report its end; a dead engine's function is gone with it."""
    state = run.state
    w = state.workers[activity.effect.worker]
    attempt = AttemptId(state.run, w.id, w.attempt.number)
    folder = tools.layout.attempt(attempt)
    # A function cannot outlive its process: one that another engine began is never adopted.
    if adopt or await anyio.to_thread.run_sync(was_begun, folder):
        run.feed(_gone(tools, w))
        return
    options = request.choice.options
    names = [options.get("call", ""), *options.get("tools", "").split()]
    host = ThreadHost(lambda: tuple(map(function_of, names)), limits=state.limits_of(w.id))
    watch = Watch(
        attempt=attempt,
        host=host,
        parser=OwnStream(request, speaks=True),
        request=request,
        logbook=run.new_logbook(w.id, w.attempt.number),
        notebook=Notebook(tools.store.agent(state.run, w.id), w.attempt.number),
        clock=tools.clock,
        limits=state.limits_of(w.id),
        feed=run.feed,
        mention=run.mention,
        keeps_stdin=True,
        count_spent=partial(tools.ledger.spend, request.choice, attempt),
        started_at=w.begun.at or tools.clock.now(),
    )
    activity.watch = watch
    activity.watched.set()
    host.begin(about_call(request), folder)
    try:
        ended = await watch.follow(lambda: run.state.workers[w.id])
    finally:
        host.release()
        activity.watch = None
    run.feed(ended)
    await tools.ledger.share([])
    await watch.close()


def _gone(tools: Tools, w: Worker) -> f.AttemptEnded:
    about = w.about(tools.clock.now())
    cause = w.attempt.stop.cause if w.attempt.stop else None
    error = "the function ran in the engine's own process, and ended with it"
    return f.AttemptEnded(**about, ok=False, cause=cause, error=error)
