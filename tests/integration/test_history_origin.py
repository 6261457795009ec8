"""A history tells repositories apart, and knows one by all its worktrees."""

from pathlib import Path

import pytest

from engine.history.feeder import find_origin
from engine.site.place import find_place
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


async def test_repositories_of_one_name_are_two_and_worktrees_are_none(tmp_path: Path):
    told = {}
    for parent in ("here", "there"):
        built = RepositoryBuilder(tmp_path / parent / "app")
        built.commit({"a": "1\n"}, "first")
        built.git("worktree", "add", "-q", str(tmp_path / parent / "beside"))
        for folder in ("app", "beside"):
            place = await find_place(tmp_path / parent / folder, built.environment)
            told[parent, folder] = (await find_origin(place)).repository
    assert told["here", "app"] == told["here", "beside"] == str(tmp_path / "here" / "app")
    assert told["there", "app"] == told["there", "beside"] != told["here", "app"]
