"""A folder to start runs in, for the console: its agents, its check, what the machine enforces."""

from engine.api import Beginnings, OfferedAgent, Plan
from engine.limits import Dimension, Enforcement, Level
from tui.kit.starting import Starter

_HELD = (
    Enforcement(dimension=Dimension.FILES, level=Level.ENFORCED, mechanism="bwrap", value=""),
    Enforcement(dimension=Dimension.NETWORK, level=Level.ENFORCED, mechanism="netns", value=""),
    Enforcement(dimension=Dimension.DISK, level=Level.SAMPLED, mechanism="keeper", value=""),
    Enforcement(dimension=Dimension.MEMORY, level=Level.NONE, mechanism="none", value=""),
)


class Here(Starter):
    """A folder and a machine that are the same everywhere."""

    async def look(self) -> None:
        self.found = Beginnings(
            agents=(
                OfferedAgent(
                    name="claude", adapter="claude", version="2.1.4", login="by ANTHROPIC_API_KEY"
                ),
                OfferedAgent(name="codex", adapter="codex", is_installed=False, install_hint="npm"),
                OfferedAgent(name="aider", adapter="aider", version="0.86"),
            ),
            agent="claude",
            check="make test",
            check_from="Makefile",
            machine=_HELD,
        )

    async def weigh(self, plan: Plan) -> tuple[str, ...]:
        del plan
        return ("2 changed files of yours are not in HEAD: no worker sees them",)

    async def held(self, plan: Plan) -> tuple[Enforcement, ...]:
        del plan
        return _HELD
