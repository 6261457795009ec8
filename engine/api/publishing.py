"""Pull requests: a branch pushed and asked to be merged, with the user's own git and `gh`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import WorkspaceError
from engine.git.publishing import (
    PullRequest,
    ask,
    current_branch,
    push,
    remote_of,
    subject_of,
)
from engine.git.runner import Repo


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a pull request is to be of; whatever is empty is found out.

    Attributes:
        name: What the branch is to be called at the remote.
    """

    branch: str = ""
    base: str = ""
    title: str = ""
    body: str = ""
    remote: str = ""
    name: str = ""


class Publishing:
    """One pull request: looked at first, then sent."""

    def __init__(self, repo: Repo, request: PullRequest, environment: Mapping[str, str]) -> None:
        self._repo = repo
        self._environment = environment
        self.request = request

    async def push(self) -> None:
        """Send the branch.

        Raises:
            GitFailed: The user's git could not.
        """
        await push(self._repo, self.request, self._environment)

    async def ask(self) -> str | None:
        """Ask for the merge; the request's address, None where there is no `gh`.

        Raises:
            GitFailed: `gh` could not.
        """
        return await ask(self._repo, self.request, self._environment)


async def pull_request(
    folder: str | os.PathLike[str],
    wanted: Wanted,
    environment: Mapping[str, str] | None = None,
) -> Publishing:
    """A pull request of a branch, not sent yet.

    Raises:
        WorkspaceError: There is no such branch, or no remote.
    """
    env = dict(os.environ if environment is None else environment)
    repo = await Repo.open(Path(folder), env)
    branch = wanted.branch or await current_branch(repo)
    if not branch:
        raise WorkspaceError("no branch is checked out", hint="Name a worker, or a branch.")
    subject = await subject_of(repo, branch)
    remote, url = await remote_of(repo, wanted.remote)
    name, base = wanted.name or branch, wanted.base or "main"
    if name == base:
        raise WorkspaceError(
            f"{name} cannot be merged into itself", hint="Give the branch another name: --as NAME."
        )
    request = PullRequest(
        remote=remote,
        url=url,
        branch=branch,
        name=name,
        base=base,
        title=wanted.title or subject,
        body=wanted.body,
    )
    return Publishing(repo, request, env)
