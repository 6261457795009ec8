"""Run an agent's attempt from launch to end: combine adapter, surroundings and watch."""

from functools import partial

import anyio.to_thread

from engine.agents.calling import about_call, function_of
from engine.agents.command import shell_parser
from engine.agents.contract import LaunchRequest, StreamParser
from engine.agents.on_screen.stream import ScreenStream
from engine.agents.own_stream import OwnStream
from engine.agents.registry import adapter_named, heard
from engine.core import facts as f
from engine.core.state import RunState, Worker
from engine.errors import EngineError
from engine.host.threads import ThreadHost, was_begun
from engine.ids import AttemptId
from engine.limits import Usage
from engine.messages.logs import LogKind
from engine.plan.model import AgentChoice, RetryMode
from engine.plan.prompts import command_environment
from engine.site.in_thread import is_in_thread
from engine.terminal.terminal import Terminal
from engine.work.activities import Activity
from engine.work.notebook import Notebook
from engine.work.run_ports import RunPort
from engine.work.tools import Tools
from engine.work.watch import Watch
from engine.work.workplace import workplace

_SHELL = AgentChoice(name="command", adapter="command")


def launch_request(tools: Tools, state: RunState, w: Worker) -> LaunchRequest:
    """Return what an adapter needs to launch this attempt, but for what its site alone knows."""
    planned = state.planned(w.id)
    choice = state.agent_of(w.id) or _SHELL
    mode = w.next.mode
    if w.next.is_turn:  # asked something new: its session goes on, or there is nothing to tell
        mode = RetryMode.CONTINUE if w.session.id else RetryMode.FRESH
    return LaunchRequest(
        choice=choice,
        prompt=w.begun.prompt,
        workspace=w.begun.workspace or "",
        home="",
        worker=str(w.id),
        attempt=w.attempt.number,
        persona_prompt=planned.persona_prompt,
        hint=planned.hint,
        folders=w.begun.holds.folders if w.begun.holds else None,
        permissions=planned.permissions,
        mode=mode,
        session=w.session.id if mode is not RetryMode.FRESH else None,
        session_workspace=w.session.workspace if mode is not RetryMode.FRESH else "",
        used_before=(w.session.usage if mode is not RetryMode.FRESH else None) or Usage(),
        feedback=w.begun.feedback,
        passed=state.plan.runtime.holes.env,
        opened=state.plan.runtime.holes.paths,
        folder=str(tools.project),
        is_confined=tools.sites.of(state, w.id).can_confine and not is_in_thread(state, w.id),
        budget_usd=state.limits_of(w.id).budget_usd,
    )


def parser_for(tools: Tools, state: RunState, w: Worker) -> StreamParser:
    """Return a parser for this worker's agent."""
    return _parser(state, w, launch_request(tools, state, w))


def _parser(state: RunState, w: Worker, request: LaunchRequest) -> StreamParser:
    if state.plan.step(w.id.step).run is not None:
        return shell_parser(request)
    return adapter_named(request.choice.adapter).parser(request)


def screen_of(parser: StreamParser) -> Terminal | None:
    """Return the terminal that an agent draws on, if it has one."""
    return parser.terminal if isinstance(parser, ScreenStream) else None


async def run_agent(tools: Tools, run: RunPort, activity: Activity, *, adopt: bool) -> None:
    """Start the agent, or find it running, and report its end.

    Args:
        tools: The rooms.
        run: The run it belongs to.
        activity: What is being performed; it gets the watch, so that a stop reaches the agent.
        adopt: Only follow an attempt that was started before; never start one.
    """
    effect = activity.effect
    state = run.state
    w = state.workers[effect.worker]
    attempt = AttemptId(state.run, w.id, w.attempt.number)
    about = w.about(tools.clock.now())
    request = launch_request(tools, state, w)
    if is_in_thread(state, w.id):
        await run_in_thread(tools, run, activity, request, adopt=adopt)
        return
    # The last engine died before it started the agent: report an end, so that the rules go on.
    site = tools.sites.of(state, w.id)
    if adopt and not await site.is_known(attempt):
        cause = w.attempt.stop.cause if w.attempt.stop else None
        run.feed(f.AttemptEnded(**about, ok=False, cause=cause))
        return
    # Some look at files.
    parser = await anyio.to_thread.run_sync(_parser, state, w, request)
    if (agent := state.agent_of(w.id)) is not None:
        await tools.ledger.share([agent])
    logbook = run.new_logbook(w.id, w.attempt.number)
    logbook.hears = heard(request.choice) if agent is not None else ""
    logbook.screen = screen_of(parser)
    watch = Watch(
        attempt=attempt,
        host=site.host,
        parser=parser,
        request=request,
        logbook=logbook,
        notebook=Notebook(tools.store.agent(state.run, w.id), w.attempt.number),
        clock=tools.clock,
        limits=state.limits_of(w.id),
        feed=run.feed,
        mention=run.mention,
        keeps_stdin=False,
        count_spent=partial(tools.ledger.spend, request.choice, attempt),
        started_at=w.begun.at or tools.clock.now(),
    )
    # No recording holds these lines, so a watch begun anew needs them first.
    await run.recall(watch.logbook, w.id)
    # Set before the start, so that a stop in between reaches the agent.
    activity.watch = watch
    activity.watched.set()
    await _follow(tools, run, activity)


async def _follow(tools: Tools, run: RunPort, activity: Activity) -> None:
    """Start what is watched and follow it to its end; then remove its surroundings."""
    watch, state = activity.watch, run.state
    if watch is None:
        return
    w = state.workers[activity.effect.worker]
    site = tools.sites.of(state, w.id)
    step = state.plan.step(w.id.step)
    env = command_environment(step, state.planned(w.id), run=state.run)
    try:
        at = workplace(state, w.id)
        launched = await site.launch(at, step.run or watch.request, env)
    except EngineError:
        watch.logbook.end("", tools.clock.now())
        raise
    watch.keeps_stdin, watch.login = launched.keeps_stdin, launched.login
    for line in launched.notes:
        watch.logbook.remark(LogKind.NOTE, line, tools.clock.now(), is_once=True)
    watch.change_kernel_limits = partial(site.change_limits, watch.attempt)
    try:
        ended = await watch.follow(lambda: run.state.workers[w.id])
    finally:
        activity.watch = None
    run.feed(ended)
    activity.done.set()  # it is dead: its work may be collected while its notes are written down
    await site.forget(watch.attempt)
    await tools.ledger.share([])
    await watch.close()


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
