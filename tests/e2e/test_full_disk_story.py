"""A run whose disk is really full for a while: nothing it did or said is lost, and it lands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import WITH_OWN_MOUNTS, need

pytestmark = pytest.mark.long
# The sibling says its lines while there is no room for them, and the filler makes room at last:
# a while after the sibling began to say them, for it stands still in the middle.
MANIFEST = """
runtime: {limits: {disk_mb: 1000}, auto_merge: true, sandbox: {paths: ["TOLD:rw"]}}
pipelines:
  - name: p
    steps:
      - name: fill
        merge: each
        run: >-
          until test -e TOLD/begun; do sleep 0.05; done;
          head -c 500M /dev/zero > big || echo "the disk is full";
          until test -e TOLD/full; do sleep 0.05; done;
          sleep 1; rm big; echo done > filled
      - name: talk
        merge: each
        run: >-
          touch TOLD/begun;
          while head -c 5000 /dev/zero >> grown 2>/dev/null; do sleep 0.02; done;
          touch TOLD/full; echo "no room any more"; seq 1 30000;
          until echo told > told 2>/dev/null; do sleep 0.05; done; rm grown
"""
# Only this script sees the small disk: it goes with the last of its processes.
STORY = """
set -e
mount -t tmpfs -o size=330m tmpfs "$1" && cd "$1"
git init -q -b main repo && cd repo
printf '%s' "$MANIFEST" > plait.yaml
git add . && git -c user.name=A -c user.email=a@b commit -q -m begin
export PLAIT_STATE_HOME="$1/state" GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
"$PYTHON" -m tui.cli run plait.yaml --headless --json > "$2/events"
"$PYTHON" -m tui.cli logs --raw fill > "$2/fill"
"$PYTHON" -m tui.cli logs --raw talk > "$2/talk"
git fsck --no-dangling > "$2/fsck" 2>&1
git ls-tree --name-only HEAD > "$2/landed"
"""


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Play the story once, and return where it left what it saw."""
    need("small disk")
    disk, told = tmp_path / "disk", tmp_path / "told"
    disk.mkdir()
    told.mkdir()
    manifest = MANIFEST.replace("TOLD", str(told))
    subprocess.run(
        [*WITH_OWN_MOUNTS, "sh", "-c", STORY, "story", disk, told],
        env={**os.environ, "MANIFEST": manifest, "PYTHON": sys.executable},
        timeout=240,
        check=True,
    )
    return told


def test_a_full_disk_holds_a_run_up_and_costs_it_nothing(told: Path):
    assert "the disk is full" in (told / "fill").read_text()
    said = [str(number) for number in range(1, 30_001)]
    assert (told / "talk").read_text().splitlines() == ["no room any more", *said]
    events = [json.loads(line) for line in (told / "events").read_text().splitlines()]
    assert events[-1]["type"] == "RunFinished"
    landed = [event["worker"] for event in events if event["type"] == "Landed"]
    assert sorted(landed) == ["fill/worker_1", "talk/worker_1"]
    assert (told / "landed").read_text().split() == ["filled", "plait.yaml", "told"]
    assert (told / "fsck").read_text() == ""
