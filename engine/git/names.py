"""The names of an attempt's branch and refs; they must not clash with the user's branches."""

from dataclasses import dataclass

from engine.errors import BranchTaken
from engine.git.objects import read_objects
from engine.git.runner import Repo
from engine.ids import AttemptId

PREFIX = "plait"


@dataclass(frozen=True, slots=True)
class RefNames:
    """Every ref of one attempt, in full."""

    attempt: AttemptId
    prefix: str = PREFIX

    @property
    def branch(self) -> str:
        """The branch of the worker's newest attempt, as people say it."""
        return f"{self.prefix}/{self.attempt.run}/{self.attempt.worker}"

    @property
    def branch_ref(self) -> str:
        """The same, in full."""
        return f"refs/heads/{self.branch}"

    @property
    def pinned(self) -> str:
        """The folder of refs that keep this attempt for good."""
        return f"refs/plait/{self.attempt.path}"

    @property
    def base(self) -> str:
        """The ref of the commit that the attempt started from."""
        return f"{self.pinned}/base"

    @property
    def head(self) -> str:
        """The ref of the commit that the attempt came to."""
        return f"{self.pinned}/head"

    @property
    def trimmed(self) -> str:
        """The ref of the rest of the change, once a human left hunks out before landing it."""
        return f"{self.pinned}/trimmed"

    @property
    def edited(self) -> str:
        """The ref of the change with a human's edits, before hunks of it are left out."""
        return f"{self.pinned}/edited"

    @property
    def left(self) -> str:
        """The folder of refs that keep what its workspace held when it was examined for removal.

        Only what the other refs of the attempt do not keep is there.
        """
        return f"{self.pinned}/left"

    @property
    def left_head(self) -> str:
        """The ref of the commit that has the files as they were then."""
        return f"{self.left}/head"

    @property
    def late(self) -> str:
        """The folder of refs that keep what came after the attempt was given up."""
        return f"refs/plait/@late/{self.attempt.path}"

    def other(self, ref: str) -> str:
        """Return the ref that keeps another of the agent's: `refs/heads/x` as `…/refs/heads/x`."""
        return f"{self.pinned}/{ref}"


async def check_prefix(repo: Repo, prefix: str) -> None:
    """Make sure that branches below the prefix can exist.

    Raises:
        BranchTaken: A branch of the user's has the prefix, or a part of it, as its whole name.
    """
    parts = prefix.split("/")
    wanted = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    refs = [f"refs/heads/{name}" for name in wanted]
    for ref, found in zip(refs, await read_objects(repo, refs), strict=True):
        if found is not None:
            name = ref.removeprefix("refs/heads/")
            raise BranchTaken(
                name,
                why=f"blocks the branches of workers ({prefix}/RUN/STEP/WORKER)",
                hint=f"Rename it (`git branch -m {name} NEW-NAME`), or set "
                f"`runtime.branch_prefix` to something other than {prefix!r}.",
            )
