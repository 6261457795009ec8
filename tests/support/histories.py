"""Random histories that an agent may leave, beside a target and branches of the user's that move.

All is written with plumbing, so that a history may be one that no porcelain would make.
"""

import atexit
import functools
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.repositories import RepositoryBuilder

LINES = 8
FILES = ("a", "b", "c", "d")
LINK = "160000"

Files = dict[str, tuple[str, str]]
"""Mode and text of every file by its name; a submodule's link has the commit for its text."""


def text_of(marks: Sequence[str]) -> str:
    return "".join(f"{mark}\n" for mark in marks)


START: Files = {
    **{name: ("100644", text_of([f"{name}{n}" for n in range(LINES)])) for name in FILES},
    "run": ("100755", "true\n"),
    "link": ("120000", "a"),
    "sub": (LINK, "1" * 40),
}


class Plumbing:
    """Trees and commits of one repository, each written once."""

    def __init__(self, built: RepositoryBuilder) -> None:
        self.built = built
        self.files: dict[str, Files] = {}
        self._blobs: dict[str, str] = {}
        self._count = 0

    def copied(self, built: RepositoryBuilder) -> "Plumbing":
        """The same in a copy of the repository."""
        made = Plumbing(built)
        made.files, made._blobs, made._count = {**self.files}, {**self._blobs}, self._count
        return made

    def tree(self, files: Files) -> str:
        rows = "".join(f"{mode} {self._kind(mode)} {self._oid(mode, text)}\t{name}\n"
                       for name, (mode, text) in sorted(files.items()))  # fmt: skip
        return self.built.git("mktree", "--missing", stdin=rows.encode())

    @staticmethod
    def _kind(mode: str) -> str:
        return "commit" if mode == LINK else "blob"

    def _oid(self, mode: str, text: str) -> str:
        if mode == LINK:
            return text
        if text not in self._blobs:
            words = ("hash-object", "-w", "--stdin")
            self._blobs[text] = self.built.git(*words, stdin=text.encode())
        return self._blobs[text]

    def commit(self, files: Files, *parents: str) -> str:
        """A commit that no other one equals."""
        self._count += 1
        words = [word for parent in dict.fromkeys(parents) for word in ("-p", parent)]
        made = self.built.git("commit-tree", self.tree(files), *words, "-m", f"c{self._count}")
        self.files[made] = dict(files)
        return made

    def merged(self, base: str, ours: str, theirs: str) -> tuple[bool, str]:
        """Ask git for the merge of three commits' trees; whether it is clean, and its tree."""
        dressed = [self.built.git("commit-tree", f"{base}^{{tree}}", "-m", "base")]
        for side in (ours, theirs):
            words = ("commit-tree", f"{side}^{{tree}}", "-p", dressed[0], "-m", "side")
            dressed.append(self.built.git(*words))
        return self.merge(dressed[1], dressed[2])

    def merge(self, ours: str, theirs: str) -> tuple[bool, str]:
        """Ask git for the merge of two commits: whether it is clean; its tree, or what is open."""
        words = ("merge-tree", "--write-tree", "--allow-unrelated-histories")
        done = self.built.try_git(*words, ours, theirs)
        assert done.returncode in {0, 1}, done.stderr
        tree, _, rest = done.stdout.decode().partition("\n")
        return done.returncode == 0, rest.split("\n\n", 1)[0] if done.returncode else tree

    def holds(self, tip: str, commit: str) -> bool:
        words = ("merge-base", "--is-ancestor", commit, tip)
        return self.built.try_git(*words).returncode == 0


def edited(files: Files, dice: random.Random, mark: str) -> Files:
    """The files with one of them changed, added or removed."""
    name = dice.choice([*FILES, *FILES, "run", "sub", f"new-{mark}"])
    mode, text = files.get(name, ("100644", ""))
    found = dict(files)
    if name == "sub":
        found[name] = (LINK, f"{dice.randrange(1, 1 << 60):040x}")
    elif name == "run":
        found[name] = (dice.choice(["100644", "100755"]), text + f"{mark}\n")
    elif name in files and dice.random() < 0.15:
        del found[name]
    else:
        lines = text.split("\n")[:-1] or [mark]
        lines[dice.randrange(len(lines))] = mark
        found[name] = (mode, text_of(lines))
    return found


@dataclass
class Story:
    """The acts of an agent and its user: `done` names the agent's acts, `users` the user's refs."""

    git: Plumbing
    base: str
    head: str
    target: str
    users: list[str]
    done: list[str] = field(default_factory=list)


def story(path: Path, seed: int) -> Story:
    """Make a repository with a base, branches of the user's, a target and an agent's head."""
    told = _story(seed)
    shutil.copytree(told.git.built.path, path)
    git = told.git.copied(RepositoryBuilder(path, init=False))
    return replace(told, git=git, users=[*told.users], done=[*told.done])


@functools.cache
def _story(seed: int) -> Story:
    """Make it once: the copy of a repository is many times cheaper than its hundred commands."""
    place = Path(tempfile.mkdtemp(prefix="plait-story-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    dice = random.Random(seed)
    built = RepositoryBuilder(place / "repo")
    git = Plumbing(built)
    root = git.commit(START)
    base = git.commit(edited(START, dice, "base"), root)
    heads: dict[str, str] = {}
    for name in ("feature", "tag"):
        heads[name] = base if dice.random() < 0.7 else root
        for number in range(dice.randrange(1, 3)):
            files = edited(git.files[heads[name]], dice, f"{name}{number}")
            heads[name] = git.commit(files, heads[name])
    target = base
    for number in range(dice.choice([0, 1, 1, 2])):
        target = git.commit(edited(git.files[target], dice, f"landed{number}"), target)
    built.git("update-ref", "refs/heads/main", target)
    built.git("update-ref", "refs/remotes/origin/feature", heads["feature"])
    built.git("update-ref", "refs/tags/v1", heads["tag"])
    agent = _Agent(git, base, others=[target, *heads.values()], dice=dice)
    for _ in range(dice.choice([1, 1, 2, 2, 3, 4])):
        agent.act()
    users = ["refs/remotes/origin/feature", "refs/tags/v1"]
    if dice.random() < 0.3:
        onward = {**git.files[agent.head], "onward": ("100644", "mine\n")}
        built.git("update-ref", "refs/heads/mine", git.commit(onward, agent.head))
        users.append("refs/heads/mine")
    built.git("update-ref", "refs/heads/plait/r1/fix/worker_1", agent.head)
    return Story(git, base, agent.head, target, users, agent.done)


class _Agent:
    """One that may do with commits whatever git lets it do."""

    def __init__(self, git: Plumbing, base: str, *, others: list[str], dice: random.Random) -> None:
        self.git, self.base, self.others = git, base, others
        self.head, self.dice, self.done = base, dice, list[str]()

    @property
    def own(self) -> Files:
        return self.git.files[self.head]

    def act(self) -> None:
        acts = [self.work, self.work, self.work, self.empty, self.merge, self.ours, self.octopus,
                self.amend, self.orphan, self.graft, self.adopt, self.adopt_and_take_back,
                self.rebase, self.reverse, self.branch_and_merge]  # fmt: skip
        chosen = self.dice.choice(acts)
        chosen()
        self.done.append(chosen.__name__)

    def _other(self) -> str:
        return self.dice.choice(self.others)

    def _new(self, files: Files, *parents: str) -> None:
        self.head = self.git.commit(files, *parents)

    def work(self) -> None:
        mark = f"agent{self.dice.randrange(1000)}"
        self._new(edited(self.own, self.dice, mark), self.head)

    def empty(self) -> None:
        self._new(self.own, self.head)

    def merge(self) -> None:
        """Merge another branch honestly, where that is clean."""
        other = self._other()
        is_clean, tree = self.git.merge(self.head, other)
        if is_clean:
            self._new(self._files(tree), self.head, other)

    def ours(self) -> None:
        self._new(self.own, self.head, self._other())

    def octopus(self) -> None:
        self._new(edited(self.own, self.dice, "octopus"), self.head, *self.others)

    def amend(self) -> None:
        parents = self.git.built.git("rev-list", "--parents", "-1", self.head).split()[1:]
        self._new(edited(self.own, self.dice, "amended"), *parents)

    def orphan(self) -> None:
        self._new(self.own)

    def graft(self) -> None:
        """Put the own files straight on another branch."""
        self._new(self.own, self._other())

    def adopt(self) -> None:
        self.head = self._other()

    def adopt_and_take_back(self) -> None:
        """A straight line through another branch, whose work its last commit takes away."""
        files, other = self.own, self._other()
        self._new(files, other)

    def rebase(self) -> None:
        is_clean, tree = self.git.merged(self.base, self.others[0], self.head)
        if is_clean:
            self._new(self._files(tree), self.others[0])

    def reverse(self) -> None:
        self._new(self.own, self._other(), self.head)

    def branch_and_merge(self) -> None:
        side = self.git.commit(edited(self.own, self.dice, "side"), self.head)
        self._new(self.git.files[side], self.head, side)

    def _files(self, tree: str) -> Files:
        rows = self.git.built.git("ls-tree", tree).split("\n")
        found: Files = {}
        for row in rows:
            head, name = row.split("\t")
            mode, _, oid = head.split(" ")
            text = oid if mode == LINK else self.git.built.git_bytes("cat-file", "blob", oid)
            found[name] = (mode, text if isinstance(text, str) else text.decode())
        return found
