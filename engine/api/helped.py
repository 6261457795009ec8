"""Give a merge of the user's own the help that the manifest names, through the folder's engine."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path

from anyio import from_thread, to_thread

from engine.api.plans import MANIFEST, read_inside
from engine.api.reaching import reach
from engine.errors import AgentError, GitFailed
from engine.git.runner import Repo
from engine.limits import Limits, Usage
from engine.merge import Formatted, OutsideAnswer
from engine.messages.helping import AskAside, FormatTexts, MakeFile, ThreeTexts
from engine.plan.from_prompts import plan_from_prompts
from engine.plan.model import Plan, ReviewRules
from engine.review.assisting import Spent
from engine.review.inquiry import Inquiry
from engine.review.review import Regeneration, Unformatted
from engine.spec.load import load_manifest
from engine.work.asking import answer_in, prompt_of


class EngineHelp:
    """Asks the engine of a folder for help, each time anew; one is opened if none lives."""

    def __init__(self, folder: Path, environment: Mapping[str, str], plan: Plan) -> None:
        self._reach = partial(reach, folder, environment=environment)
        self._plan = plan

    @property
    def rules(self) -> ReviewRules:
        """Return what the manifest says about help."""
        return self._plan.review

    async def make(self, wanted: Regeneration) -> bytes:
        """Return the file that its command makes.

        Raises:
            EngineError: It failed, or left no such file.
        """
        path = os.fsdecode(wanted.path)
        question = MakeFile(self._plan, path, wanted.command, wanted.tree, wanted.parent)
        async with self._reach() as (port, _):
            return (await port.ask(question)).content

    async def format(
        self, commit: str, files: Sequence[Unformatted]
    ) -> Mapping[bytes, Formatted | None]:
        """Return files as their formatters write them; those that cannot be are missing.

        Raises:
            EngineError: The environment cannot be made.
        """
        asked = tuple(
            ThreeTexts(
                path=os.fsdecode(one.path),
                command=one.command,
                base=one.texts[0],
                target=one.texts[1],
                incoming=one.texts[2],
            )
            for one in files
        )
        async with self._reach() as (port, _):
            found = await port.ask(FormatTexts(self._plan, commit, asked))
        return {
            os.fsencode(one.path): Formatted(one.command, one.base, one.target, one.incoming)
            for one in found
        }

    async def ask(
        self, inquiry: Inquiry, *, agent: str, bounds: Limits
    ) -> tuple[OutsideAnswer | str, Spent]:
        """Return what an agent proposes, or why it proposes nothing; and what that used.

        Raises:
            EngineError: It could not even be asked.
        """
        question = AskAside(
            self._plan,
            prompt_of(inquiry),
            agent=agent,
            usd=bounds.budget_usd,
            seconds=bounds.time_seconds,
        )
        async with self._reach() as (port, _):
            said = await port.ask(question)
        spent = Spent(Usage(usd=said.usd), said.seconds)
        if said.problem:
            return f"{agent}: {said.problem}", spent
        try:
            return answer_in(said.text, by=agent), spent
        except AgentError as error:
            return f"{agent}: {error}", spent


async def own_help(
    folder: str | PathLike[str], environment: Mapping[str, str] | None = None
) -> EngineHelp | None:
    """Return the help that a repository's manifest names; None where there is no manifest.

    A manifest that git tracks is read as the user's branch has it: what a merge brings in, or what
    a rebase goes onto, names no command and opens no sandbox.

    Raises:
        EngineError: The manifest is wrong.
    """
    env = dict(os.environ if environment is None else environment)
    repo = await Repo.open(Path(folder), env)
    if repo.worktree is None:
        return None
    top = Path(repo.worktree)
    own = await to_thread.run_sync(_own_commit, Path(repo.git_dir))
    if own is None:
        return None
    if await _has(repo, own):
        data, read = await _blob(repo, own, MANIFEST), _reading(repo, own)
    elif await repo.read("ls-files", "-z", "--", MANIFEST):
        return None  # a side of the merge brings it
    else:
        read = partial(read_inside, top)
        try:
            data = await to_thread.run_sync((top / MANIFEST).read_bytes)
        except FileNotFoundError:
            return None
    return EngineHelp(top, env, await to_thread.run_sync(_plan, data, read))


def _plan(data: bytes, read: Callable[[str], bytes]) -> Plan:
    """Return a plan with the manifest's sandbox and rules; its one worker is never started."""
    manifest = load_manifest(data, file=MANIFEST, read=read)
    assist = manifest.review.assist
    agents = (assist.agent,) if assist else ("claude",)
    return plan_from_prompts(["help with a merge"], agents, manifest=manifest)


async def _has(repo: Repo, commit: str) -> bool:
    return bool(await repo.read("ls-tree", "-z", "--full-tree", commit, "--", MANIFEST))


async def _blob(repo: Repo, commit: str, path: str) -> bytes:
    return await repo.read("cat-file", "blob", f"{commit}:{path}")


def _reading(repo: Repo, commit: str) -> Callable[[str], bytes]:
    """Return what reads the files that the manifest names, from its own commit, in a thread."""

    def read(path: str) -> bytes:
        try:
            return from_thread.run(_blob, repo, commit, os.path.normpath(path))
        except GitFailed as failed:
            raise FileNotFoundError(2, "your branch has no such file", path) from failed

    return read


_STARTS = ("rebase-merge/orig-head", "rebase-apply/orig-head", "sequencer/head")
_SERIES = ("rebase-merge", "rebase-apply", "sequencer")
"""Under way in these, HEAD is the last commit that was applied, which may be anybody's."""


def _own_commit(git_dir: Path) -> str | None:
    """Return the commit of the user's own branch before a series began to be applied to it.

    None where nobody knows that commit, as in `git am`: nothing is asked and nothing runs then.
    """
    for name in _STARTS:
        with suppress(OSError):
            return (git_dir / name).read_text(encoding="ascii").strip()
    return None if any((git_dir / name).exists() for name in _SERIES) else "HEAD"
