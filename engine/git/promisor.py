"""Objects that a partial clone left at its remote, fetched before they are needed.

Git would fetch them one by one in the middle of a checkout, by whatever program the repository
names. Here it is one fetch, over the user's own connections, for exactly one commit's files.
"""

from engine.git.runner import Call, Repo

_ALLOWED = ("https", "ssh", "git", "file")


async def fetch_missing(repo: Repo, commit: str) -> int:
    """Fetch what a partial clone lacks of a commit's tree; how many objects that was.

    Raises:
        GitFailed: The remote could not be reached, or does not have them any more.
    """
    if repo.settings.promisor is None:
        return 0
    words = ("rev-list", "--objects", "--missing=print", "--no-walk", commit)
    listing = (await repo.read(*words)).decode(errors="surrogateescape")
    missing = [line[1:] for line in listing.split("\n") if line.startswith("?")]
    if not missing:
        return 0
    flags = tuple(w for name in _ALLOWED for w in ("-c", f"protocol.{name}.allow=always"))
    call = Call(
        stdin="".join(f"{oid}\n" for oid in missing).encode(),
        writes=True,
        flags=(*flags, "-c", "fetch.negotiationAlgorithm=noop", *repo.settings.network_flags),
        env=repo.settings.environment,
        timeout_s=1800,
    )
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    async with repo.lock.held():
        await repo.run(
            *("fetch", *options, "--recurse-submodules=no", "--filter=blob:none", "--stdin"),
            repo.settings.promisor,
            call=call,
        )
    return len(missing)
