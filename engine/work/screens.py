"""Show the terminal of an agent to humans, and let them type into it.

What is typed goes to the agent alone and stands in its recording; it is no fact of the run.
"""

from contextlib import suppress

from engine.agents.on_screen.stream import ScreenStream
from engine.errors import HostLost
from engine.host.seam import Host
from engine.messages.screens import ScreenView
from engine.terminal.redraw import redrawn
from engine.terminal.terminal import Terminal
from engine.work.watch import Watch

_KEPT_LINES = 200
"""So many lines that have left the screen a console is shown."""


def view_of_screen(terminal: Terminal, known: int, *, is_live: bool) -> ScreenView:
    """Return what a console has not seen yet."""
    grid = terminal.grid
    is_new = terminal.changes != known
    return ScreenView(
        drawn=redrawn(terminal, most_lines=_KEPT_LINES).decode() if is_new else "",
        changes=terminal.changes,
        rows=grid.rows,
        columns=grid.columns,
        scrolled=grid.scrolled,
        is_live=is_live,
    )


async def type_into(
    host: Host, watch: Watch | None, text: str, size: tuple[int, int] | None
) -> bool:
    """Type into an agent's terminal, in another size; say if it runs, and has one."""
    if watch is None or not isinstance(watch.parser, ScreenStream) or not watch.is_started:
        return False
    with suppress(HostLost):
        if size is not None:
            watch.parser.terminal.resize(*size)
            grid = watch.parser.terminal.grid
            await host.resize(watch.attempt, grid.rows, grid.columns)
        if text:
            await watch.send(text.encode("utf-8", "ignore"))
    return True
