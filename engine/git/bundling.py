"""Refs with all that only they hold, as one file that `git fetch` reads."""

from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from engine.git.objects import resolve
from engine.git.runner import Call, Repo
from engine.values import dataclass

_SLOW_S = 3600.0
_OWN = ("refs/heads", "refs/remotes", "refs/tags")


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """The content of a bundle.

    Attributes:
        refs: How many refs; with none of them there is no file.
        needs: The commits that whoever fetches it must have.
    """

    refs: int = 0
    needs: tuple[str, ...] = ()


async def write_bundle(repo: Repo, file: Path, *, below: Sequence[str], base: str) -> Bundled:
    """Write every ref below these folders into a new file, but what came before `base`.

    A base that is on no branch of the user's, such as a snapshot of their edits, is in it too:
    no other clone has it.

    Raises:
        GitFailed: It could not be written.
    """
    listing = await repo.read("for-each-ref", "--format=%(objectname) %(refname)", *below)
    refs = dict(line.split(" ", 1)[::-1] for line in listing.decode().splitlines())
    root = await resolve(repo, base) if refs else None
    needs = await _known_elsewhere(repo, root, below) if root else ()
    without = [f"^{commit}" for commit in needs]
    heads = [*dict.fromkeys(refs.values()), *without]
    call = Call(stdin="\n".join([*heads, ""]).encode(), timeout_s=_SLOW_S)
    if not refs or not await repo.read("rev-list", "--max-count=1", "--stdin", call=call):
        return Bundled()
    call = Call(stdin="\n".join([*refs, *without, ""]).encode(), timeout_s=_SLOW_S)
    path = str(await to_thread.run_sync(file.absolute))  # git does not work in our folder
    await repo.run("bundle", "create", "--quiet", path, "--stdin", call=call)
    held = await repo.read("bundle", "list-heads", path)
    return Bundled(refs=len(held.splitlines()), needs=needs)


async def _known_elsewhere(repo: Repo, base: str, below: Sequence[str]) -> tuple[str, ...]:
    """The base where a ref of the user's holds it, else what it was made on."""
    words = ("for-each-ref", "--format=%(refname)", f"--contains={base}", *_OWN)
    ours = tuple(f"{folder.rstrip('/')}/" for folder in below)
    holders = (await repo.read(*words)).decode().splitlines()
    if any(not ref.startswith(ours) for ref in holders):
        return (base,)
    parents = await repo.line("rev-list", "--parents", "--max-count=1", base)
    return tuple(parents.split()[1:])
