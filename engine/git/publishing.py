"""A branch sent to where the user's others are, and the request that it be merged there.

Both are done by the user's own git and `gh`, as the user: their logins, their hooks.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import quote, urlsplit

from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.objects import (
    RefMove,
    RefMoved,
    commits_of,
    move_refs,
    refs_below,
    resolve,
    set_refs,
)
from engine.git.plumbing.process import execute
from engine.git.runner import Call, Repo, Where
from engine.values import dataclass

_SLOW_S = 600.0
_NUMBER = re.compile(r"#?\d+|https?://.*/pull/\d+(?:[/?#].*)?")
_FIELDS = ("number", "title", "body", "baseRefName", "headRefOid", "url")
_REQUESTS = "refs/plait/pulls"


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A pull request that was fetched onto refs of ours, and onto no branch.

    Attributes:
        into: The branch that it is to be merged into.
    """

    number: int
    title: str
    body: str
    into: str

    @property
    def base_ref(self) -> str:
        """The ref that keeps the branch it is to be merged into."""
        return f"{_REQUESTS}/{self.number}/base/{self.into}"  # a branch may be called head

    @property
    def head_ref(self) -> str:
        """The ref that keeps what is to be merged."""
        return f"{_REQUESTS}/{self.number}/head"


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A request to publish a branch.

    Attributes:
        branch: The branch here; `name` is what it is called there.
        base: The branch there that it is to be merged into.
        url: Where the remote is.
        commit: What is sent in place of the branch, if that is another commit.
    """

    remote: str
    url: str
    branch: str
    name: str
    base: str
    title: str
    body: str
    commit: str = ""

    @property
    def push_words(self) -> tuple[str, ...]:
        """The command that sends the branch."""
        move = f"{self.commit or f'refs/heads/{self.branch}'}:refs/heads/{self.name}"
        return ("git", "push", self.remote, move)

    @property
    def gh_words(self) -> tuple[str, ...]:
        """The command that asks for the merge."""
        said = ("--title", self.title, "--body", self.body)
        return ("gh", "pr", "create", "--head", self.name, "--base", self.base, *said)

    @property
    def page(self) -> str:
        """The page where a browser asks for the same; empty for an unknown host."""
        where = web_address(self.url)
        if not where:
            return ""
        if "gitlab" in (urlsplit(where).hostname or ""):
            query = f"merge_request[source_branch]={quote(self.name, safe='')}"
            return f"{where}/-/merge_requests/new?{query}"
        return f"{where}/compare/{quote(self.base)}...{quote(self.name)}?expand=1"


def web_address(url: str) -> str:
    """The page of a remote, without any login in it; empty where it has none."""
    if "://" not in url and "@" in url.partition(":")[0] and ":" in url:
        host, _, path = url.partition("@")[2].partition(":")
        url = f"ssh://{host}/{path}"
    parts = urlsplit(url)
    if parts.scheme not in {"https", "http", "ssh", "git"} or not parts.hostname:
        return ""
    path = parts.path.strip("/").removesuffix(".git")
    return f"https://{parts.hostname}/{path}" if path else ""


async def remote_of(repo: Repo, wanted: str = "") -> tuple[str, str]:
    """A remote and its address: the one named, `origin`, or the only one.

    Raises:
        WorkspaceError: There is none, or several and none is named.
    """
    names = (await repo.read("remote")).decode().split()
    found = wanted or ("origin" if "origin" in names else (names[0] if len(names) == 1 else ""))
    if found not in names:
        hint = f"Remotes: {', '.join(names)}." if names else "`git remote add origin URL` adds it."
        what = f"there is no remote {found!r}" if found else "there is no remote to push to"
        raise WorkspaceError(what, hint=hint)
    return found, (await repo.line("remote", "get-url", "--push", found)).strip()


async def current_branch(repo: Repo) -> str:
    """The branch that is checked out; empty where none is."""
    where = Where(git_dir=repo.git_dir)
    words = ("symbolic-ref", "-q", "--short", "HEAD")
    return os.fsdecode(await repo.read(*words, call=Call(ok=(0, 1)), where=where)).strip()


async def subject_of(repo: Repo, branch: str) -> str:
    """Return the first line of a branch's newest commit message.

    Raises:
        WorkspaceError: There is no such branch.
    """
    if await resolve(repo, f"refs/heads/{branch}") is None:
        raise WorkspaceError(f"there is no branch {branch!r} to push")
    return await repo.line("log", "-1", "--format=%s", f"refs/heads/{branch}", "--")


async def push(repo: Repo, request: PullRequest, environment: Mapping[str, str]) -> None:
    """Send the branch.

    Raises:
        GitFailed: The user's git could not.
    """
    await _run(repo, request.push_words, environment)


async def ask(repo: Repo, request: PullRequest, environment: Mapping[str, str]) -> str | None:
    """Have `gh` ask for the merge; the address of the request, None where there is no `gh`.

    Raises:
        GitFailed: It could not.
    """
    path = environment.get("PATH", os.defpath)
    if await to_thread.run_sync(lambda: shutil.which("gh", path=path)) is None:
        return None
    said = await _run(repo, request.gh_words, environment)
    return said.strip().rpartition("\n")[2]


def is_request(name: str) -> bool:
    """Tell whether a word names a pull request: `12`, `#12`, or the address of its page."""
    return _NUMBER.fullmatch(name) is not None


async def fetch_request(repo: Repo, request: str, environment: Mapping[str, str]) -> Fetched:
    """Fetch a pull request and the branch it is to be merged into; no branch or file changes.

    Raises:
        WorkspaceError: `gh` is not installed, or knows no such request; or there is no remote.
    """
    said = await _said_by_gh(repo, request, environment)
    number, into = int(said["number"]), said["baseRefName"]
    found = Fetched(number=number, title=said["title"], body=said["body"], into=into)
    ours = f"{_REQUESTS}/{number}"
    new = f"{ours}/new/head", f"{ours}/new/base"  # what is refused must not replace what was there
    moves = (f"+refs/pull/{number}/head:{new[0]}", f"+refs/heads/{into}:{new[1]}")
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    source = await _remote_at(repo, said["url"].partition("/pull/")[0])
    try:
        await _run(repo, ("git", "fetch", *options, source, *moves), environment)
    except GitFailed as failed:
        raise WorkspaceError(f"it could not be fetched: {failed.stderr.strip()}") from failed
    head, base = await commits_of(repo, *new)
    is_it = head == said["headRefOid"]
    # A ref of an earlier base can stand where the folder of the new one is to be.
    gone = await refs_below(repo, ours if is_it else f"{ours}/new")
    with suppress(RefMoved):  # another review of it is quicker
        going = [RefMove(ref, None, oid) for ref, oid in gone.items()]
        await move_refs(repo, going, say="plait: review")
    if not is_it:
        raise WorkspaceError(
            f"the remote {source} and {said['url']} have different commits for #{number}",
            hint="If that repository is not a remote here, add it as a remote. Otherwise, try "
            "again: somebody has just pushed.",
        )
    await set_refs(repo, [(found.head_ref, head), (found.base_ref, base)], say="plait: review")
    return found


async def _said_by_gh(
    repo: Repo, request: str, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Return what `gh` knows of a request."""
    path = environment.get("PATH", os.defpath)
    if await to_thread.run_sync(lambda: shutil.which("gh", path=path)) is None:
        raise WorkspaceError(
            "`gh` is not installed; plait asks it for the branches of a pull request",
            hint="Install gh. Or fetch the branch, then `plait preview TARGET INCOMING --open`.",
        )
    words = ("gh", "pr", "view", request.removeprefix("#"), "--json", ",".join(_FIELDS))
    try:
        said = json.loads(await _run(repo, words, environment))
        return {name: str(said[name]) for name in _FIELDS} | {"number": f"{int(said['number'])}"}
    except GitFailed as failed:
        raise WorkspaceError(f"gh finds no such request: {failed.stderr.strip()}") from failed
    except (ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(f"plait cannot read the answer of gh: {error!r}") from error


async def _remote_at(repo: Repo, address: str) -> str:
    """Return the remote whose page this is; else `origin`, or the only one."""
    for name in (await repo.read("remote")).decode().split():
        url = (await repo.line("remote", "get-url", name)).strip()
        if address and web_address(url).lower() == address.lower():
            return name
    return (await remote_of(repo))[0]


async def _run(repo: Repo, words: Sequence[str], environment: Mapping[str, str]) -> str:
    path = environment.get("PATH", os.defpath)
    program = await to_thread.run_sync(lambda: shutil.which(words[0], path=path)) or words[0]
    done = await execute(
        [program, *words[1:]],
        env={**environment, "GIT_TERMINAL_PROMPT": "0"},
        cwd=repo.worktree or repo.common_dir,
        timeout_s=_SLOW_S,
    )
    if done.exit_code:
        raise GitFailed(list(words), done.exit_code, done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")
