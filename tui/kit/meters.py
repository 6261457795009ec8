"""Usage bars with their walls, strips of history, and rules: figures that can be seen."""

from engine.limits import Level
from tui.ink import LINE, MUTED, TEXT, Ink, Role, Row, Span
from tui.words.figures import NEARLY
from tui.words.looks import WALLS

_BLOCKS = "▁▂▃▄▅▆▇█"


def is_nearly(share: float | None) -> bool:
    """The cap is nearly reached."""
    return share is not None and share >= NEARLY


def meter(share: float | None, cells: int, level: Level, role: Role | None = None) -> Row:
    """A usage bar that ends in the wall which stops it."""
    filled = 0 if share is None else round(min(max(share, 0.0), 1.0) * cells)
    if share and not filled:
        filled = 1
    ink = Ink(role or (Role.LIMIT if is_nearly(share) else Role.METER))
    return (
        Span("━" * filled, ink),
        Span("─" * (cells - filled), LINE),
        Span(WALLS[level], TEXT),
    )


def strip(samples: tuple[float, ...], cells: int, full: float) -> Row:
    """The latest samples as blocks, newest at the right; nothing where nothing was sampled."""
    latest = samples[-cells:]
    drawn = "".join(_block(value, full) for value in latest)
    return (Span(" " * (cells - len(drawn)), TEXT), Span(drawn, Ink(Role.STRIP)))


def _block(value: float, full: float) -> str:
    share = min(max(value / full, 0.0), 1.0) if full > 0 else 0.0
    return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]


def heading(
    name: str, cells: int, role: Role = Role.MUTED, *, figure: str = "", note: str = ""
) -> Row:
    """`NAME 3  note ─────`: a part's heading, its rule running to the edge."""
    row = [Span(name, Ink(role, bold=True))]
    if figure:
        row.append(Span(f" {figure}", Ink(role)))
    if note:
        row.append(Span(f"  {note}", MUTED))
    used = sum(len(span.text) for span in row)
    row.append(Span(" " + "─" * max(cells - used - 1, 0), LINE))
    return tuple(row)
