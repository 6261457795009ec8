"""Do all that plait does with git: workspaces, collecting, merging, landing, removal.

This is the only room that touches git. It knows how to call git so that no file of an agent makes
git run anything, and how to leave a repository whole when it is killed. It knows nothing of agents,
phases or screens; dates, ids and identities come in as values.

    repo = await Repo.open(place, environment)               the user's repository, hardened
    base = await resolve_base(repo, "HEAD", signature)       HEAD, a revision, or WORKTREE
    space = await prepare(repo, WorkspaceRequest(…))         where one attempt works
    change = await collect(repo, space, CollectRequest(…))   what it came to, under its own refs
    files = await changed_files(repo, change.base, change.head)
    merged = await Merger(repo).merge3(base, ours, theirs)   three trees to one, conflicts as values
    made = await compose(repo, merger, LandRequest(…))       the commit to land, made and not moved
    plan = await prepare_landing(repo, made)                 for the journal; proves that it can
    done = await land(repo, plan)                            or `recover_landing` after a crash
"""
