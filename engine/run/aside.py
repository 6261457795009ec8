"""Answer what is asked for merges that are no run's."""

from anyio import to_thread

from engine.agents.registry import adapters
from engine.errors import WorkspaceError
from engine.messages.helping import AskAside, FormatTexts, Made, MakeFile, Said, ThreeTexts
from engine.plan.model import AgentChoice
from engine.run.runs import Runs


async def make_file_aside(runs: Runs, question: MakeFile) -> Made:
    """Return the file that a command makes of a tree."""
    return await runs.asides.made(question)


async def format_texts_aside(runs: Runs, question: FormatTexts) -> tuple[ThreeTexts, ...]:
    """Return files as their formatters write them."""
    return tuple(await runs.asides.formatted(question))


async def ask_aside(runs: Runs, question: AskAside) -> Said:
    """Return an agent's last words.

    Raises:
        WorkspaceError: There is no such agent.
    """
    name, assist = question.agent, question.plan.review.assist
    choice = assist.agent if assist and name in {"", assist.agent.name} else None
    if choice is None and name in await to_thread.run_sync(adapters):
        choice = AgentChoice(name=name, adapter=name)
    if choice is None:
        raise WorkspaceError(
            f"there is no agent {name!r}" if name else "no agent is named to ask",
            hint="Name one in the manifest: `review: {assist: {agent: NAME}}`.",
        )
    return await runs.asides.said(question, choice)
