"""Hold a remark of the user on a line of a change, until it is sent."""

from typing import NamedTuple


class Comment(NamedTuple):
    """Hold what the user wrote about a line, or a range that ends there, with its code.

    `about` names the run and the worker whose change it is: nobody else is sent it. A suggestion
    is another text for the lines from `first` to `number`; `code` is theirs then, byte for byte.
    What was sent has a number, its `id`, by which the agent names it in its answers.
    """

    path: str
    key: str
    line: int
    number: int
    code: str
    text: str
    is_sent: bool = False
    about: str = ""
    suggestion: str | None = None
    first: int = 0
    id: int = 0
    sent_at: float = 0.0
    answers: tuple[str, ...] = ()

    def patch(self) -> str:
        """Return a suggestion as a patch; empty where it is a remark alone."""
        if self.suggestion is None:
            return ""
        old, new = (text.split("\n") if text else [] for text in (self.code, self.suggestion))
        return "\n".join(
            (
                f"--- a/{self.path}",
                f"+++ b/{self.path}",
                f"@@ -{self.first},{len(old)} +{self.first},{len(new)} @@",
                *(f"-{line}" for line in old),
                *(f"+{line}" for line in new),
            )
        )

    @property
    def thread(self) -> tuple[str, str, str, int]:
        """Return what the comments of one thread have in common: the line that they are about."""
        return self.about, self.path, self.key, self.line
