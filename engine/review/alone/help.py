"""Define what help a merge without a run can get: commands and an agent, in a sandbox.

Who gives it is for those who open the merge; without help everything else can be decided.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine.limits import Limits
from engine.merge import Formatted, OutsideAnswer
from engine.plan.model import ReviewRules
from engine.review.assisting import Spent
from engine.review.inquiry import Inquiry
from engine.review.review import Regeneration, Unformatted


class Help(Protocol):
    """Runs the manifest's commands, and asks its agent; all of it in the sandbox."""

    @property
    def rules(self) -> ReviewRules:
        """Return what the manifest says about help."""

    async def make(self, wanted: Regeneration) -> bytes:
        """Return the file that its command makes.

        Raises:
            EngineError: It failed, or left no such file.
        """

    async def format(
        self, commit: str, files: Sequence[Unformatted]
    ) -> Mapping[bytes, Formatted | None]:
        """Return files as their formatters write them; those that cannot be are missing.

        Raises:
            EngineError: The environment cannot be made.
        """

    async def ask(
        self, inquiry: Inquiry, *, agent: str, bounds: Limits
    ) -> tuple[OutsideAnswer | str, Spent]:
        """Return what an agent proposes, or why it proposes nothing; and what that used.

        Raises:
            EngineError: It could not even be asked.
        """
