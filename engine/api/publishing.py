"""Open pull requests: push a branch with the user's own git and ask with `gh`."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine.errors import WorkspaceError
from engine.git.objects import Wording, commit_of, sign_commit, tree_of
from engine.git.ownership import CommitLine, is_own, plain_line
from engine.git.publishing import (
    PullRequest,
    ask,
    current_branch,
    push,
    remote_of,
    subject_of,
)
from engine.git.runner import Repo
from engine.values import dataclass

_PARTS = 3
"""The parts of a worker's branch behind its prefix: run, step, worker."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A pull request to make; whatever is empty is found out.

    Attributes:
        name: What the branch is to be called at the remote.
        since: The base that a worker's change is counted from. Where its history is not a line from
            there, or not its own, one commit with its files is sent in place of the branch.
        head: The commit that was reviewed, which is sent wherever the branch stands by now.
    """

    branch: str = ""
    base: str = ""
    title: str = ""
    body: str = ""
    remote: str = ""
    name: str = ""
    since: str = ""
    head: str = ""


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
        """Ask for the merge; return the request's address, or None without `gh`.

        Raises:
            GitFailed: `gh` could not.
        """
        return await ask(self._repo, self.request, self._environment)


async def pull_request(
    folder: str | os.PathLike[str],
    wanted: Wanted,
    environment: Mapping[str, str] | None = None,
) -> Publishing:
    """Prepare a pull request of a branch, without sending it.

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
        commit=await _sent(repo, branch, wanted, wanted.title or subject),
    )
    return Publishing(repo, request, env)


async def _sent(repo: Repo, branch: str, wanted: Wanted, title: str) -> str:
    """Return the commit to send in place of a branch; nothing if the branch itself can go."""
    since = wanted.since
    if not since:
        return wanted.head
    head = await commit_of(repo, wanted.head or f"refs/heads/{branch}")
    line, prefix = await plain_line(repo, since, head), branch.rsplit("/", _PARTS)[0]
    if line is not None:
        own = CommitLine(base=since, commits=line, besides=since, prefix=prefix)
        if await is_own(repo, own):
            return wanted.head
    at = await repo.line("log", "-1", "--no-show-signature", "--format=%ct", head)
    wording = Wording(message=f"{title}\n", author=repo.settings.sign(int(at)))
    return await sign_commit(repo, await tree_of(repo, head), [since], wording)
