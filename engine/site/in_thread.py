"""Find agents that are functions in threads of this process: nothing fences those in."""

from engine.core.state import RunState
from engine.ids import WorkerId
from engine.plan.model import ExecutionMode, Plan

CALLABLE = "callable"


def is_in_thread(state: RunState, worker: WorkerId) -> bool:
    """Return whether a worker's agent is a function that runs in a thread."""
    choice = state.agent_of(worker)
    is_thread = state.plan.runtime.execution_mode is ExecutionMode.THREAD
    return is_thread and choice is not None and choice.adapter == CALLABLE


def has_threads(plan: Plan) -> bool:
    """Return whether any agent of a plan is a function that runs in a thread."""
    agents = [planned.agent for step in plan.steps for planned in step.workers]
    is_thread = plan.runtime.execution_mode is ExecutionMode.THREAD
    return is_thread and any(agent and agent.adapter == CALLABLE for agent in agents)
