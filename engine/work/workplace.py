"""Say to a site where a worker is: its attempt, the address of its workspace, its terms."""

from engine.core.state import RunState, Worker
from engine.ids import AGENT, AttemptId, WorkerId
from engine.plan.model import Plan
from engine.site.seam import SpaceAddress, Terms, Workplace


def terms_of(plan: Plan) -> Terms:
    """Return the part of a plan that says how its workers live."""
    return Terms(runtime=plan.runtime, workspace=plan.workspace)


def address_of(state: RunState, w: Worker) -> SpaceAddress:
    """Return the address of a worker's workspace; one without a path where it has none."""
    begun = w.begun
    return SpaceAddress(
        attempt=AttemptId(state.run, w.id, begun.made or w.attempt.number),
        path=begun.workspace or "",
        site=begun.site,
    )


def workplace(
    state: RunState,
    worker: WorkerId,
    *,
    number: int | None = None,
    role: str = AGENT,
    address: SpaceAddress | None = None,
) -> Workplace:
    """Return where a worker's attempt is: its newest one in its own workspace, or as said."""
    w = state.workers[worker]
    attempt = AttemptId(state.run, worker, w.attempt.number if number is None else number, role)
    return Workplace(
        attempt=attempt,
        address=address_of(state, w) if address is None else address,
        terms=terms_of(state.plan),
        limits=state.limits_of(worker),
    )


def new_workplace(state: RunState, worker: WorkerId, number: int) -> Workplace:
    """Return where an attempt will be whose workspace is not made yet."""
    return workplace(
        state,
        worker,
        number=number,
        address=SpaceAddress(attempt=AttemptId(state.run, worker, number)),
    )
