"""A trial of a site ends well where the site does, and names the first thing that is not so."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from engine.api import describe_sites, try_site
from engine.errors import WorkspaceError
from engine.limits import Dimension
from engine.site.place import find_place
from engine.site.seam import Ability, CommandEnd, Workplace
from engine.site.trial import FILE, TEXT, tried
from engine.spec.words import SITES
from engine.testing.fake_site import FakeSite
from tests.support.repositories import RepositoryBuilder
from tui.commands.base import dispatch

pytestmark = pytest.mark.anyio


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "state").mkdir()
    return {**os.environ, "PLAIT_STATE_HOME": str(tmp_path / "state")}


class Mumbling(FakeSite):
    """A site that loses what commands say."""

    async def run(self, at: Workplace, command: str) -> CommandEnd:
        return replace(await super().run(at, command), tail="")


@pytest.mark.parametrize("name", SITES)
async def test_every_site_passes_its_trial_and_nothing_is_left(
    environment: Mapping[str, str], tmp_path: Path, name: str
) -> None:
    done = await try_site(name, environment)
    assert [one.problem for one in done] == [""] * 7
    left = {one.name async for one in anyio.Path(tmp_path / "state").iterdir()}
    assert left == {"machine"}


async def test_a_trial_stops_at_the_first_problem_and_names_it(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    built = RepositoryBuilder(tmp_path / "project")
    built.commit({FILE: TEXT}, "start")
    place = await find_place(built.path, environment)
    await anyio.to_thread.run_sync(place.layout.make)
    for kind, problems in ((FakeSite, 0), (Mumbling, 1)):
        async with kind.opened(place, environment) as site:
            done = await tried(site, place)
        assert [bool(one.problem) for one in done].count(True) == problems
    assert [one.what for one in done][-1] == "a command runs there, and its output arrives"
    assert "found (True, '')" in done[-1].problem


async def test_a_site_that_is_not_there_is_refused(environment: Mapping[str, str]) -> None:
    with pytest.raises(WorkspaceError, match="no site 'nowhere'"):
        await try_site("nowhere", environment)


async def test_sites_tell_what_they_can_and_enforce(environment: Mapping[str, str]) -> None:
    local, child = await describe_sites(environment)
    assert (local.name, child.name, local.problem, child.problem) == ("local", "child", "", "")
    assert local.report is not None
    assert child.report is not None
    assert {row.dimension for row in child.report.rows} == set(Dimension)
    assert child.report.versions == local.report.versions
    assert child.report.capacity.cores == local.report.capacity.cores
    assert Ability.ENTER not in child.abilities


def test_the_command_tells_of_each_step_and_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLAIT_STATE_HOME", str(tmp_path))
    assert dispatch("site", ["check", "local"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["ok"] * 7
    assert dispatch("sites", []) == 0
    assert "files" in capsys.readouterr().out
