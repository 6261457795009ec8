"""The tables of phases: complete, as intended, and drawn as they are in ARCHITECTURE.md."""

from dataclasses import replace
from typing import get_args

import pytest

from engine.core import facts as f
from engine.core.advance import TELLERS
from engine.core.entry import entry_effect
from engine.core.phase import FINDS_ACTIVITY, QUIET, RULED, STOPPED_BY_POLICY, TOLD
from engine.core.state import Stop
from engine.phases import HOLDING, SETTLED, Phase, StopCause
from tests.support.core_runs import a_run, who
from tests.support.diagram import PAGE, phases_diagram, with_diagram
from tests.support.plans import a_step

INTENT = """
WAITING QUEUED: StopRequested CANCELLED
PREPARING: WorkspaceReady RUNNING; BaseConflicted CONFLICTED; PrepareFailed FAILED;\
 StopRequested STOPPING
RUNNING: AttemptEnded COLLECTING; StopRequested STOPPING
STOPPING: AttemptEnded COLLECTING; ActivityEnded CANCELLED FAILED
COLLECTING: Collected CHECKING REVIEWING FINISHED FAILED CANCELLED BACKING_OFF
CHECKING: CheckPassed REVIEWING FINISHED; CheckFailed FAILED; StopRequested STOPPING
REVIEWING: Approved LANDING; Rejected DISCARDED; RetryRequested QUEUED; StopRequested CANCELLED
LANDING: Landed LANDED; ConflictsFound CONFLICTED; CheckFailed REVIEWING; LandRefused REVIEWING;\
 StopRequested REVIEWING
CONFLICTED: Resolved LANDING QUEUED; Rejected DISCARDED; RetryRequested QUEUED;\
 StopRequested CANCELLED
BACKING_OFF: BackoffElapsed QUEUED; RetryRequested QUEUED; StopRequested CANCELLED
FAILED CANCELLED DISCARDED FINISHED: RetryRequested QUEUED
SKIPPED: RetryRequested WAITING
LANDED: LandingUndone REVIEWING
"""


def intended() -> dict[Phase, dict[str, frozenset[Phase]]]:
    found: dict[Phase, dict[str, frozenset[Phase]]] = {}
    for line in INTENT.strip().splitlines():
        phases, _, rules = line.partition(":")
        told = {}
        for rule in filter(None, rules.split(";")):
            fact, *reached = rule.split()
            told[fact] = frozenset(map(Phase, reached))
        for phase in phases.split():
            found[Phase(phase)] = told
    return found


def test_facts_lead_where_they_are_meant_to_and_nowhere_else():
    assert {phase: dict(told) for phase, told in TOLD.items()} == intended()


def test_every_worker_fact_has_exactly_one_function_that_hears_it():
    assert set(TELLERS) == set(get_args(f.WorkerFact))
    assert len(set(TELLERS.values())) == len(TELLERS)


def test_every_name_in_the_tables_is_a_fact():
    facts = {fact.__name__ for fact in get_args(f.WorkerFact)}
    named = {name for told in TOLD.values() for name in told}
    quiet = {name for names in QUIET.values() for name in names}
    assert named <= facts
    assert quiet <= facts


def test_every_phase_stands_in_the_table_of_facts():
    assert set(TOLD) == set(Phase)


def test_every_phase_can_be_reached_and_every_settled_one_left_only_by_a_human_or_a_rule():
    reached = {to for told in TOLD.values() for tos in told.values() for to in tos}
    reached |= {to for tos in RULED.values() for to in tos}
    assert reached | {Phase.WAITING} == set(Phase)
    for phase in SETTLED:
        assert set(TOLD[phase]) <= {"RetryRequested", "LandingUndone"}


def test_no_rule_moves_what_landed_or_finished_or_is_being_collected():
    assert not {Phase.LANDED, Phase.FINISHED, Phase.COLLECTING, Phase.STOPPING} & set(RULED)


def test_a_fact_that_is_quiet_in_a_phase_does_not_also_move_it():
    for phase, names in QUIET.items():
        assert not names & set(TOLD[phase])


def test_whatever_runs_is_stopped_and_never_dropped():
    assert {to for phase in FINDS_ACTIVITY for to in RULED[phase]} == {Phase.STOPPING}
    assert FINDS_ACTIVITY < HOLDING
    assert FINDS_ACTIVITY < STOPPED_BY_POLICY


@pytest.mark.parametrize("phase", list(Phase))
def test_each_phase_has_one_entry_effect_or_waits(phase: Phase):
    names = {
        Phase.PREPARING: "PrepareWorkspace",
        Phase.RUNNING: "StartAgent",
        Phase.STOPPING: "StopActivity",
        Phase.COLLECTING: "Collect",
        Phase.CHECKING: "RunCheck",
        Phase.LANDING: "PerformLanding",
        Phase.BACKING_OFF: "StartTimer",
    } | dict.fromkeys(SETTLED, "ReleaseWorkspace")
    told = a_run(a_step("a"))
    worker = told.worker("a")
    attempt = replace(worker.attempt, stop=Stop(cause=StopCause.USER))
    worker = replace(worker, phase=phase, attempt=attempt)
    effect = entry_effect(told.state, worker)
    assert (type(effect).__name__ if effect else None) == names.get(phase)


def test_who_never_began_has_nothing_to_release():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.stop("b")
    assert entry_effect(told.state, told.state.workers[who("b")]) is None


def test_the_diagram_of_the_architecture_is_the_one_of_the_tables():
    page = PAGE.read_text()
    assert page == with_diagram(page), "draw it anew: python -m tests.support.diagram"


def test_a_stale_diagram_is_noticed():
    page = PAGE.read_text().replace("RUNNING --> COLLECTING", "RUNNING --> CHECKING")
    assert page != with_diagram(page)
    assert phases_diagram() in with_diagram(page)
