"""smoke"""

from pathlib import Path

import pytest

from engine.git.composition import Composed, LandRequest, Style, compose
from engine.git.landing import Landed, LandPrepared, land, prepare_landing
from engine.git.merge3 import Merger
from engine.git.runner import Repo
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("style", list(Style))
async def test_land_smoke(tmp_path: Path, style: Style):
    built = RepositoryBuilder.small(tmp_path / "r")
    base = built.head
    built.git("checkout", "-q", "-b", "work")
    built.commit({"src/a.py": "a = 1\nb = 9\nc = 3\n", "dir/new.py": "x\n"}, "one")
    head = built.commit({"README.md": None}, "two")
    built.git("checkout", "-q", "main")
    built.commit({"other": "o\n"}, "other")
    repo = await Repo.open(built.path, built.environment)
    me = repo.settings.sign(5)
    composed = await compose(
        repo,
        Merger(repo),
        LandRequest(
            target="main",
            base=base,
            head=head,
            style=style,
            message="Land it",
            author=me,
            committer=me,
            trailers=(("Plait-Run", "r1"),),
        ),
    )
    assert isinstance(composed, Composed), composed
    prepared = await prepare_landing(repo, composed)
    assert isinstance(prepared, LandPrepared)
    assert isinstance(await land(repo, prepared), Landed)
    assert built.status() == ""
    print(built.git("log", "--graph", "--format=%h %s %(trailers)"))
    assert not (built.path / "README.md").exists()
    built.fsck()
