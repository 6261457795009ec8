"""Answer questions about a step's candidates and composites, and about merges of no run."""

from dataclasses import replace

from anyio import to_thread

from engine.core import effects as e
from engine.core.state import RunState
from engine.errors import WorkspaceError
from engine.messages import merging as m
from engine.messages.diffs import ChangeDiff
from engine.messages.explaining import ExplainCandidates, Explained
from engine.messages.helping import (
    AskAside,
    FormatTexts,
    LastWords,
    MadeFile,
    MakeFile,
    ThreeTexts,
)
from engine.messages.results import CheckResult
from engine.plan.model import PlannedStep
from engine.review.desk import MergeDesk
from engine.review.diffs import change_diff
from engine.review.landing_results import Refusal
from engine.review.risks.coverage import read_coverage
from engine.review.risks.judging import risks
from engine.review.sight import require_all_seen
from engine.review.weaving import candidate_table, compose
from engine.run.runs import Runs
from engine.work.checking import Checking


def desk_of(runs: Runs, state: RunState) -> MergeDesk:
    """Return the object through which humans resolve the merges of a run."""
    return runs.tools.workshops.of(state.plan).merging(state)


async def list_candidates(runs: Runs, question: m.ListCandidates) -> m.CandidateTable:
    """Return the candidates of a step beside each other: figures, consensus, every hunk of all.

    Raises:
        WorkspaceError: There is no such step.
    """
    state, planned = await _step(runs, question.run, question.step)
    table = await candidate_table(desk_of(runs, state).repo, state, planned)
    return replace(table, explainer=runs.explaining.explainer(state, planned.name))


async def explain_candidates(runs: Runs, question: ExplainCandidates) -> Explained:
    """Return an agent's words about a step's candidates, or end the question that is under way.

    Raises:
        WorkspaceError: There is no such step, nobody can be asked, or nobody answered.
    """
    state, planned = await _step(runs, question.run, question.step)
    if question.stops:
        runs.explaining.stop(state, planned.name)
        return Explained(is_stopped=True)
    live, _ = await runs.worker(str(planned.workers[0].id), run=state.run)
    table = await candidate_table(desk_of(runs, live.state).repo, live.state, planned)
    runs.note_command(live, "Explain", "")
    return await runs.explaining.explain(live.state, table)


async def compare_workers(runs: Runs, question: m.CompareWorkers) -> ChangeDiff:
    """Return the differences between the changes of any two workers.

    Raises:
        WorkspaceError: There is no such worker, or nothing of it to compare.
    """
    state, first = await runs.seen_worker(question.run, question.one)
    second = (await runs.seen_worker(question.run, question.other))[1]
    return await desk_of(runs, state).compare(first, second)


async def read_risks(runs: Runs, question: m.ReadRisks) -> tuple[m.FileRisk, ...]:
    """Return the files of a worker's change, those first that deserve the first look.

    Raises:
        WorkspaceError: There is no such worker, or no change of it.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    if found.change is None:
        raise WorkspaceError(f"{found.id} has no change to look at")
    target = state.plan.runtime.target or found.change.base or "HEAD"
    repo, project = desk_of(runs, state).repo, runs.tools.project
    coverage = await to_thread.run_sync(read_coverage, project)
    return await risks(repo, found.change, target=target, coverage=coverage)


async def make_file_aside(runs: Runs, question: MakeFile) -> MadeFile:
    """Return the file that a command makes for a merge that is no run's."""
    return await runs.asides.made(question)


async def format_texts_aside(runs: Runs, question: FormatTexts) -> tuple[ThreeTexts, ...]:
    """Return files of such a merge as their formatters write them."""
    return await runs.asides.formatted(question)


async def ask_aside(runs: Runs, question: AskAside) -> LastWords:
    """Return the last words of an agent that is asked about such a merge."""
    return await runs.asides.said(question)


async def read_composite(runs: Runs, question: m.ReadComposite) -> ChangeDiff:
    """Return the diff of what these hunks make together, without making a composite.

    Raises:
        WorkspaceError: They cannot stand together, or one of them is not there.
    """
    state, planned = await _step(runs, question.run, question.step)
    repo = desk_of(runs, state).repo
    made = await compose(repo, state, planned, question.hunks)
    if isinstance(made, str):
        raise WorkspaceError(made, hint="Leave one of them out.")
    return await change_diff(repo, made.base, made.head, against="where they began")


async def weave_hunks(runs: Runs, question: m.WeaveHunks) -> m.Wove:
    """Make a composite of hunks of a step's candidates, check it, and let it be reviewed.

    Raises:
        ChangeMoved: The change of a candidate is not the one that was seen.
        WorkspaceError: There can be none now, or a hunk is not there.
    """
    state, planned = await _step(runs, question.run, question.step)
    live, first = await runs.worker(str(planned.workers[0].id), run=state.run)
    require_all_seen(live.state, question.seen)
    desk = desk_of(runs, live.state)
    woven = await compose(desk.repo, live.state, planned, question.hunks)
    if isinstance(woven, str):
        return m.Wove(reason=woven)
    runs.note_command(live, "Weave", "")
    check: CheckResult | None = None
    if planned.check is not None:
        effect = e.RunCheck(**first.who)
        checker = Checking(live, runs.tools, effect)
        async with runs.tools.landing:
            found = await runs.tools.workshops.of(live.state.plan).landings.check_commit(
                live.state, woven.head, woven.tree, checker
            )
        if isinstance(found, Refusal):
            raise WorkspaceError(found.reason)
        check = found
    if check is not None and not check.passed:
        return m.Wove(tree=woven.tree, check=check, taken=woven.taken, reason="its check failed")
    require_all_seen(live.state, question.seen)
    worker = await desk.weave_in(live, planned, woven, check)
    return m.Wove(worker=str(worker), tree=woven.tree, check=check, taken=woven.taken)


async def _step(runs: Runs, run: str, step: str) -> tuple[RunState, PlannedStep]:
    state = await runs.state(run)
    if step not in state.steps:
        names = ", ".join(state.steps)
        raise WorkspaceError(f"{step!r} is not a step of {state.run}", hint=f"Name one: {names}.")
    return state, state.plan.step(step)
