"""Use a console's mouse by the texts that are on its screen."""

from textual.events import MouseScrollDown

from tests.support.consoles import Console


def at(console: Console, text: str) -> tuple[int, int]:
    """Return where a text stands on the screen."""
    rows = console.text.split("\n")
    y = next(y for y, row in enumerate(rows) if text in row)
    return rows[y].index(text), y


async def click(console: Console, text: str, times: int = 1) -> None:
    """Click on a text that is on the screen."""
    await console.pilot.click(offset=at(console, text), times=times)
    await console.press()


async def wheel(console: Console, turns: int, *, x: int = 40, y: int = 12) -> None:
    """Turn the wheel downwards over a place of the screen."""
    for _ in range(turns):
        turned = MouseScrollDown(None, x, y, 0, 1, 0, shift=False, meta=False, ctrl=False)
        console.app.post_message(turned)
        await console.pilot.pause()


async def drag(console: Console, start: tuple[int, int], cells: int) -> None:
    """Drag over so many cells to the right."""
    x, y = start
    await console.pilot.mouse_down(offset=start)
    await console.pilot.hover(offset=(x + cells - 1, y))
    await console.pilot.mouse_up(offset=(x + cells - 1, y))


async def drag_to(console: Console, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Take what is at a place, pull it to another, and let it go there."""
    await console.pilot.mouse_down(offset=start)
    await console.pilot.hover(offset=end)
    await console.pilot.mouse_up(offset=end)
    await console.press()
