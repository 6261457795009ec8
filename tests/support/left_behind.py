"""Leave programs in a worktree for the user's git to run, in every way known."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from engine.git.nested import quiet_repositories
from engine.git.runner import Repo
from tests.support.repositories import RepositoryBuilder

ASKED = (
    ("status",),
    ("add", "--all"),
    ("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x", "--allow-empty"),
    ("diff", "HEAD~1"),
    ("log", "-1", "--show-signature"),
    ("checkout", "-q", "-b", "other"),
    ("st",),
)


class Ground:
    """A user's repository with a worker's tree, and a program that leaves a mark when it is run."""

    def __init__(self, folder: Path) -> None:
        self.user = RepositoryBuilder(folder / "user/repo")
        self.user.commit({"a.txt": "a\n"})
        self.tree = folder / "tree"
        self.user.git("worktree", "add", "-q", "--detach", str(self.tree))
        self.admin = str(self.user.path / ".git/worktrees/tree")
        self.private = folder / "private"
        self.mark = folder / "run-by-users-git"
        self.program = folder / "evil"
        self.program.write_text(f"#!/bin/sh\ntouch {self.mark}\ncat\n")
        self.program.chmod(0o755)

    def nested(self, name: str = "sub") -> Path:
        """A repository that the agent made, with a commit and a file that is not committed."""
        place = self.tree / name
        place.mkdir(parents=True)
        self.git(place, "init", "-q", "-b", "main")
        for number in (1, 2):
            (place / "file").write_text(f"{number}\n")
            self.git(place, "add", "file")
            self.git(place, *ASKED[2][:4], "commit", "-qm", f"{number}")
        (place / "more").write_text("x\n")
        return place

    def git(self, place: Path, *words: str, check: bool = True) -> None:
        env = {**self.user.environment, "GIT_PAGER_IN_USE": "1"}
        subprocess.run(
            ["git", "-C", str(place), *words], env=env, check=check, capture_output=True, timeout=60
        )

    def use(self, place: Path) -> bool:
        """The user types this and that there; whether the agent's program was run."""
        self.mark.unlink(missing_ok=True)
        for words in ASKED:
            self.git(place, *words, check=False)
        return self.mark.exists()

    async def quiet(self) -> str:
        repo = await Repo.open(self.user.path, self.user.environment)
        notes = await quiet_repositories(
            repo, str(self.tree), admin=self.admin, private=str(self.private)
        )
        return "\n".join(notes)


def set_key(key: str, value: str = "{program}") -> Callable[[Ground], Path]:
    def prepare(ground: Ground) -> Path:
        place = ground.nested()
        ground.git(place, "config", key, value.format(program=ground.program))
        return place

    return prepare


def set_filter(ground: Ground) -> Path:
    place = set_key("filter.x.clean")(ground)
    (place / ".gitattributes").write_text("* filter=x\n")
    return place


def set_textconv(ground: Ground) -> Path:
    place = set_key("diff.x.textconv")(ground)
    (place / ".gitattributes").write_text("* diff=x\n")
    return place


def leave_hook(ground: Ground) -> Path:
    place = ground.nested()
    hook = place / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(ground.program.read_bytes())
    hook.chmod(0o755)
    return place


def include_settings(ground: Ground) -> Path:
    place = set_key("include.path", "../evil")(ground)
    (place / "evil").write_text(f"[core]\n\tfsmonitor = {ground.program}\n")
    return place


def lead_by_commondir(ground: Ground) -> Path:
    place = ground.nested()
    (place / ".git").rename(place / "real")
    own = place / ".git"
    own.mkdir()
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text("../real\n")
    ground.git(place, "config", "core.fsmonitor", str(ground.program))
    return place


def set_for_worktree(ground: Ground) -> Path:
    place = set_key("extensions.worktreeConfig", "true")(ground)
    ground.git(place, "config", "--worktree", "core.fsmonitor", str(ground.program))
    return place


def lead_by_file(ground: Ground) -> Path:
    place = set_key("core.fsmonitor")(ground)
    (place / ".git").rename(ground.tree / "not-called-git")
    (place / ".git").write_text("gitdir: ../not-called-git\n")
    return place


def lead_outside(ground: Ground) -> Path:
    place = set_key("core.fsmonitor")(ground)
    (place / ".git").rename(ground.tree.parent / "elsewhere")
    (place / ".git").write_text(f"gitdir: {ground.tree.parent}/elsewhere\n")
    return place


def lead_by_link(ground: Ground) -> Path:
    place = set_key("core.fsmonitor")(ground)
    (place / ".git").rename(ground.tree.parent / "elsewhere")
    (place / ".git").symlink_to(ground.tree.parent / "elsewhere")
    return place


def pose_as_bare(ground: Ground) -> Path:
    place = set_key("core.fsmonitor")(ground)
    ground.git(place, "config", "core.worktree", str(place))
    (place / ".git").rename(ground.tree / "bare")
    return ground.tree / "bare"


def in_a_submodule(ground: Ground) -> Path:
    place = set_key("core.fsmonitor")(ground)
    target = ground.private / "modules/sub"
    target.parent.mkdir(parents=True)
    (place / ".git").rename(target)
    (place / ".git").write_text(f"gitdir: {target}\n")
    return place


def in_place_of_the_own(ground: Ground) -> Path:
    (ground.tree / ".git").unlink()
    ground.git(ground.tree, "init", "-q")
    ground.git(ground.tree, "config", "core.fsmonitor", str(ground.program))
    return ground.tree


def by_another_file_of_its_own(ground: Ground) -> Path:
    place = set_key("core.fsmonitor")(ground)
    (place / ".git").rename(ground.tree / "not-called-git")
    (ground.tree / ".git").write_text("gitdir: not-called-git\n")
    return ground.tree


def by_a_link_of_its_own(ground: Ground) -> Path:
    by_another_file_of_its_own(ground)
    (ground.tree / ".git").unlink()
    (ground.tree / ".git").symlink_to("not-called-git")
    return ground.tree


WAYS: dict[str, Callable[[Ground], Path]] = {
    "a file monitor": set_key("core.fsmonitor"),
    "a folder of hooks": lambda ground: (
        leave_hook(ground).joinpath(".git/hooks").rename(ground.tree / "mine"),
        ground.git(ground.tree / "sub", "config", "core.hooksPath", "../mine"),
        ground.tree / "sub",
    )[-1],
    "an alias": set_key("alias.st", "!{program}"),
    "a diff program": set_key("diff.external"),
    "a check of signatures": set_key("gpg.program"),
    "a filter": set_filter,
    "a converter": set_textconv,
    "a hook": leave_hook,
    "settings included": include_settings,
    "settings of another folder": lead_by_commondir,
    "settings of the worktree": set_for_worktree,
    "a file that leads inside": lead_by_file,
    "a file that leads outside": lead_outside,
    "a link": lead_by_link,
    "a bare repository": pose_as_bare,
    "a submodule": in_a_submodule,
    "its own .git, a folder": in_place_of_the_own,
    "its own .git, another file": by_another_file_of_its_own,
    "its own .git, a link": by_a_link_of_its_own,
}
