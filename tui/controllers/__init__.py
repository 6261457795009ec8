"""Do what a key asks for, in the same way on several screens."""

from tui.controllers.checking import CheckOutput
from tui.controllers.deciding import Deciding
from tui.controllers.finding import Finding
from tui.controllers.going import Going
from tui.controllers.holding import Holding
from tui.controllers.keeping import Keeping
from tui.controllers.landing import Landing
from tui.controllers.outward import Outward
from tui.controllers.retrying import Retrying
from tui.controllers.running import Running
from tui.controllers.serving import Serving
from tui.controllers.starting import Starting
from tui.controllers.talking import Talking
from tui.controllers.trying import Trying
from tui.controllers.undoing import Undoing
from tui.controllers.workers import Workers

ON_EVERY_SCREEN = (Going, Finding, Undoing, Running, Starting)
ON_WORKERS = (
    Workers,
    Deciding,
    Retrying,
    Talking,
    Holding,
    Keeping,
    Landing,
    Trying,
    Serving,
    Outward,
    *ON_EVERY_SCREEN,
)

__all__ = [
    "ON_EVERY_SCREEN",
    "ON_WORKERS",
    "CheckOutput",
    "Deciding",
    "Finding",
    "Going",
    "Holding",
    "Keeping",
    "Landing",
    "Outward",
    "Retrying",
    "Running",
    "Serving",
    "Starting",
    "Talking",
    "Trying",
    "Undoing",
    "Workers",
]
