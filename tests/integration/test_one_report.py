"""`plait doctor`, the welcome page and the form of a run tell the same of the same run."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from engine.api import look_for_beginnings, machine_rows, plan_for_prompts
from engine.limits import Dimension, Level
from tui.cli import main

pytestmark = pytest.mark.anyio
MANIFESTS = {
    "none": "",
    "closed": "runtime: {sandbox: {network: none}}",
    "wider": "runtime: {sandbox: {docker: true, paths: [/usr]}}",
    "wrong": "runtime: 1",
}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("name", MANIFESTS)
async def test_the_welcome_page_and_the_form_have_the_rows_of_doctor(tmp_path: Path, name: str):
    if text := MANIFESTS[name]:
        await to_thread.run_sync((tmp_path / "plait.yaml").write_text, text)
    rows = await machine_rows(folder=tmp_path)
    assert (await look_for_beginnings(tmp_path)).machine == rows
    if name != "wrong":  # no plan can be made of that
        make = partial(plan_for_prompts, ["say hello"], ["scripted"], folder=tmp_path)
        assert await machine_rows(plan=await to_thread.run_sync(make)) == rows


def test_doctor_says_in_short_in_full_and_as_json_what_holds_for_a_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    said = {}
    for words in ((), ("--all",), ("--json",)):
        assert main(["doctor", *words]) == 0
        said["".join(words)] = capsys.readouterr().out
    network = next(
        row
        for row in json.loads(said["--json"])["machine"]
        if row["dimension"] == Dimension.NETWORK
    )
    assert network["level"] == Level.NONE
    assert "not enforced  network" in said[""].replace("files, ", "")
    assert "network  not enforced" in said["--all"]
    assert "versions" in said["--all"]
    assert len(said[""].splitlines()) < len(said["--all"].splitlines())
    home = os.path.expanduser("~")  # noqa: PTH111  as the command itself reads it
    assert all(home not in text for text in said.values())
