"""`main`, checked out by its user, and a change beside it as an agent would have left it."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from engine.git.composition import Composed, LandingStyle, LandRequest, compose
from engine.git.landing import LandPrepared, prepare_landing
from engine.git.merge3 import Merger
from engine.git.runner import Repo
from tests.support.repositories import RepositoryBuilder

THEIRS: dict[str, str | bytes | None] = {
    "src/a.py": "a = 1\nb = 9\nc = 3\n",
    "new/deep/file.txt": "new\n",
    "README.md": None,
    "turned": None,
    "turned/inner": "was a file\n",
}


@functools.cache
def _template() -> Path:
    """The repository of every target, made once."""
    place = Path(tempfile.mkdtemp(prefix="plait-target-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    built = RepositoryBuilder.small(place / "repo")
    built.commit({"turned": "a file\n", "mine.txt": "mine\n"}, "base")
    built.git("checkout", "-q", "-b", "work")
    (built.path / "turned").unlink()
    built.commit({"src/a.py": THEIRS["src/a.py"]}, "first")
    added = {path: text for path, text in THEIRS.items() if path not in {"src/a.py", "turned"}}
    built.commit(added, "second")
    built.git("checkout", "-q", "main")
    built.commit({"other.txt": "other\n"}, "meanwhile")
    return built.path


class Target:
    """Files changed, added, removed, and one that became a folder; `main` has moved on since."""

    def __init__(self, tmp_path: Path) -> None:
        shutil.copytree(_template(), tmp_path / "repo", symlinks=True)
        self.built = RepositoryBuilder(tmp_path / "repo", init=False)
        self.base, self.head, self.old = self.built.git(
            "rev-parse", "main~1", "work", "main"
        ).split("\n")
        self.built.git("update-index", "-q", "--refresh")
        self.trash = tmp_path / "trash"

    async def open(self) -> Repo:
        return await Repo.open(self.built.path, self.built.environment)

    def request(
        self, repo: Repo, style: LandingStyle = LandingStyle.MERGE, **more: object
    ) -> LandRequest:
        me = repo.settings.sign(1_767_225_600)
        values: dict[str, object] = {
            "target": "main",
            "base": self.base,
            "head": self.head,
            "style": style,
            "message": "Land the work",
            "author": me,
            "committer": me,
        }
        return LandRequest(**{**values, **more})  # type: ignore[arg-type]

    async def composed(
        self, repo: Repo, style: LandingStyle = LandingStyle.MERGE, **more: object
    ) -> Composed:
        made = await compose(repo, Merger(repo), self.request(repo, style, **more))
        assert isinstance(made, Composed), made
        return made

    async def prepared(self, repo: Repo, style: LandingStyle = LandingStyle.MERGE) -> LandPrepared:
        plan = await prepare_landing(repo, await self.composed(repo, style))
        assert isinstance(plan, LandPrepared), plan
        return plan

    def assert_landed(self, commit: str | None) -> None:
        self.built.fsck()
        assert self.built.rev("main") == commit
        assert self.built.status() == ""
        assert not (self.built.path / ".git" / "index.lock").exists()
        assert (self.built.path / "src/a.py").read_text() == THEIRS["src/a.py"]
        assert (self.built.path / "turned/inner").read_text() == "was a file\n"
        assert not (self.built.path / "README.md").exists()
        assert (self.built.path / "other.txt").read_text() == "other\n"
