"""With a real sandbox: the agent's git works, and collecting reads its files from inside only."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from anyio import to_thread

from engine.git.collection import CollectRequest
from engine.git.radar import snapshot
from engine.git.workspace import Workspace
from tests.support.git_lab import Lab
from tests.support.repositories import snapshot_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.needs("bubblewrap"),
]


def bwrap(
    lab: Lab, space: Workspace, *, is_collecting: bool
) -> Callable[[Sequence[str]], list[str]]:
    """The sandbox of an attempt, or the one in which it is collected."""
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all"]
    words += ["--cap-drop", "ALL", "--tmpfs", str(lab.root), "--tmpfs", str(lab.built.path)]
    for folder in space.objects:
        words += ["--ro-bind", folder, folder]
    mode = "--ro-bind" if is_collecting else "--bind"
    assert space.git_dir is not None
    words += [mode, space.path, space.path, mode, space.git_dir, space.git_dir]
    if is_collecting:
        words += ["--bind", space.collect_dir, space.collect_dir]
    if space.gitfile is not None:
        words += ["--ro-bind", space.gitfile, f"{space.path}/.git"]
    return lambda argv: [*words, "--chdir", space.path, *argv]


def in_sandbox(lab: Lab, space: Workspace, script: str) -> None:
    wrap = bwrap(lab, space, is_collecting=False)
    subprocess.run(
        wrap(["sh", "-ec", script]), env=lab.built.environment, check=True, capture_output=True
    )


EVERYDAY = (
    "echo 1 > one; git add one; git commit -qm one; echo 2 >> one; git commit -qa --amend -m two;"
    "git checkout -qb side; echo s > s; git add s; git commit -qm s; git rebase -q main;"
    "git stash list; git tag t; git gc -q; git log --oneline -3; git diff main..HEAD --stat;"
    'git worktree add -q "$(git rev-parse --git-dir)/../git/wt" -b wt; echo l > left'
)


async def test_an_agent_works_in_its_sandbox_and_is_collected_from_inside_it(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(is_mounted=True)
    shared = snapshot_of(lab.built.path / ".git", skip=("plait", "worktrees"))
    await to_thread.run_sync(in_sandbox, lab, space, EVERYDAY)
    assert snapshot_of(lab.built.path / ".git", skip=("plait", "worktrees")) == shared
    tree = snapshot_of(tmp_path / space.path)

    change = await lab.collect(space, wrap=bwrap(lab, space, is_collecting=True))

    assert {"one", "left"} <= set(lab.files(change.head))
    assert change.found_on == "refs/heads/side"
    assert snapshot_of(tmp_path / space.path) == tree
    assert lab.built.status(tmp_path / space.path) == ""


_STEALS = {
    "alternates": 'echo "{other}/objects" >> "$PRIVATE/objects/info/alternates"',
    "links": 'for d in {other}/objects/??; do n=${{d##*/}}; test -e "$PRIVATE/objects/$n" || '
    'ln -s $d "$PRIVATE/objects/$n"; done',
}


@pytest.mark.parametrize("way", _STEALS)
async def test_a_worker_cannot_have_another_workers_commits_imported(tmp_path: Path, way: str):
    lab = await Lab.open(tmp_path)
    other = await lab.prepare("r1/fix/worker_2@1")
    lab.agent(other, "echo secret > secret; git add -A; git commit -qm secret")
    secret = lab.built.git("rev-parse", "HEAD", cwd=tmp_path / other.path)
    space = await lab.prepare()
    steals = _STEALS[way].format(other=other.git_dir)
    lab.agent(space, f'{steals}; echo {secret} > "$PRIVATE/refs/heads/stolen"; echo w > w')

    confined = await lab.collect(space, wrap=bwrap(lab, space, is_collecting=True))
    assert not any("stolen" in ref for ref, _ in confined.refs)

    exposed = await lab.collect(space)
    assert any("stolen" in ref for ref, _ in exposed.refs), "the attack is dead: nothing proved"


CONFIGURE = """
echo '* filter=x diff=x' > .gitattributes
for k in core.fsmonitor filter.x.clean filter.x.smudge diff.x.textconv \\
  uploadpack.packObjectsHook core.alternateRefsCommand; do git config {where} $k {program}; done
"""
HOOK = """
hooks=$(git rev-parse --git-path hooks)
for h in post-index-change reference-transaction; do cp {program} $hooks/$h; done
"""
HOSTILE = {
    "its configuration": CONFIGURE + HOOK,
    "an embedded repository": "git clone -q . e; git add e 2>/dev/null; git commit -qm e; cd e;"
    "echo x > x;" + CONFIGURE + HOOK,
    "a submodule": "git clone -q . e; git add e 2>/dev/null; git config submodule.recurse true;"
    """printf '[submodule "e"]\\npath=e\\nurl=./e\\n' > .gitmodules; git add .gitmodules;"""
    "git commit -qm sub; cd e; echo x > x;" + CONFIGURE,
    "another repository's configuration": 'cp -r "$PRIVATE" evil; echo "$PWD/evil" > '
    '"$PRIVATE/commondir";' + CONFIGURE.replace("{where}", '--file "$PWD/evil/config"'),
    "the worktree's own configuration": "git config extensions.worktreeConfig true;"
    + CONFIGURE.replace("{where}", '--file "$PRIVATE/config.worktree"'),
    "a repository in place of its own": "rm .git; git init -q;" + CONFIGURE + HOOK,
}
"""The traps that an agent may leave for anybody who runs git in its tree."""


@pytest.mark.parametrize("leave", HOSTILE)
async def test_nothing_an_agent_left_for_git_runs_when_its_tree_is_read(tmp_path: Path, leave: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    sentinel = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {sentinel}\ncat\n")
    program.chmod(0o755)
    lab.agent(space, HOSTILE[leave].replace("{program}", str(program)).replace("{where}", ""))
    sentinel.unlink(missing_ok=True)  # the agent's own git may have run it
    lab.agent(space, "echo changed > README.md")

    change = await lab.collect(space)
    await snapshot(lab.repo, space, CollectRequest(author=lab.me), objects=tmp_path / "radar")

    assert not await to_thread.run_sync(sentinel.exists)
    assert lab.files(change.head)["README.md"] == "changed\n"
    control = await lab.prepare("r1/fix/worker_2@1")
    lab.agent(control, HOSTILE[leave].replace("{program}", str(program)).replace("{where}", ""))
    sentinel.unlink(missing_ok=True)
    place = tmp_path / control.path
    for words in (("add", "-A"), ("status",)):
        lab.built.try_git(*words, cwd=place / "e" if (place / "e").exists() else place)
    assert sentinel.exists(), "the plant is dead: nothing proved"


@pytest.mark.parametrize("says", ["update=!touch ran", "url=-uevil", "path=-evil"])
async def test_a_submodule_that_would_run_something_is_set_aside_and_the_rest_is_kept(
    tmp_path: Path, says: str
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    script = """printf '[submodule "e"]\\n%s\\n' > .gitmodules; git add -A; git commit -qm sub"""
    lab.agent(space, script.replace("%s", "path=e\\nurl=./e"))
    await lab.collect(space)
    again = await lab.prepare("r1/fix/worker_2@1")
    lab.agent(again, script.replace("%s", f"path=e\\nurl=./e\\n{says}") + "; echo > work.txt")
    change = await lab.collect(again)
    assert [(one.path, "gitmodules" in one.reason) for one in change.set_aside] == [
        (b".gitmodules", True)
    ]
    assert ".gitmodules" not in lab.files(change.head)
    assert "work.txt" in lab.files(change.head)
    assert (tmp_path / again.path / ".gitmodules").exists()


async def test_links_that_lead_outside_are_kept_as_links(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("treasure")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_text("treasure")
    space = await lab.prepare()
    said = lab.agent(
        space,
        f"ln -s {secret} plain; ln -s plain chained; ln -s {tmp_path}/folder folder;"
        "ln -s ../../../../../../../../../../.. up; cat chained folder/inner",
    )
    assert said.stdout == b"treasuretreasure", "the farm is dead: nothing proved"

    files = lab.files((await lab.collect(space)).head)

    assert files["plain"] == str(secret)
    assert files["chained"] == "plain"
    assert files["folder"] == f"{tmp_path}/folder"
    assert "treasure" not in files.values()


async def test_a_snapshot_is_taken_from_inside(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, "echo now > now")

    request = CollectRequest(author=lab.me, wrap=bwrap(lab, space, is_collecting=True))
    seen = await snapshot(lab.repo, space, request, objects=tmp_path / "objects")

    assert seen is not None
