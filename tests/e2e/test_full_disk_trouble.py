"""A full disk is reported, everything can be ended, and nothing is lost or reported wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.needs import WITH_OWN_MOUNTS, need

pytestmark = pytest.mark.long
COLLECTED = """
pipelines:
  - name: p
    steps:
      - name: big
        run: "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 900000 /dev/urandom > big$i; done"
      - name: small
        run: "for i in 1 2 3 4 5 6; do head -c 900000 /dev/urandom > small$i; done"
"""
RUNNING = """
runtime: {sandbox: {paths: ["%s/gate:rw"]}}
pipelines:
  - name: p
    steps:
      - name: a
        run: "touch %s/gate/begun; until test -e %s/gate/go; do sleep 0.05; done; echo done > made"
"""
LONGEST_S = 30.0
"""An engine that waits for room never ends; one that is told to end looks some seconds."""
# Only this script sees the small disk: it goes with the last of its processes.
SETTING = """
set -e
disk=$1 out=$2 where=$3
# Where worktrees lie plait wants 256 MB to be left.
size=400m; test "$where" != repository || size=12m
mount -t tmpfs -o size=$size tmpfs "$disk"
repo=$disk/repo state=$disk/state
case $where in repository) state=$out/state ;; state) repo=$out/repo ;; esac
mkdir "$out/gate"
git init -q -b main "$repo" && cd "$repo"
printf '%s' "$MANIFEST" > plait.yaml
git add . && git -c user.name=A -c user.email=a@b commit -q -m begin
export PLAIT_STATE_HOME="$state" GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
plait() { timeout -s KILL 60 "$PYTHON" -m tui.cli "$@"; }
now() { date +%s.%N; }
wait_for() { n=0; until eval "$1"; do n=$((n+1)); test $n -lt 400 || exit 9; sleep 0.1; done; }
stands() { grep -qs '"TroubleSeen"' "$out/events" && plait status | grep -q "stalled since"; }
plait run plait.yaml --headless --json > "$out/events" 2> "$out/said" & host=$!
"""
FILLED = """
wait_for 'test -e "$out/gate/begun"'
head -c 500M /dev/zero > "$disk/ballast" 2> /dev/null || true
"""
FREED = """
rm -f "$disk/ballast"; mount -t tmpfs -o remount,size=460m tmpfs "$disk"
"""
SEEN = """
wait_for stands
plait status > "$out/status"
plait status --json > "$out/status.json"
"""
HOSTED = """
engine=$("$PYTHON" -c 'import json; print(json.load(open(".git/plait/engine.json"))["pid"])')
now > "$out/began"
"""
ENDED = """
wait $host && echo 0 > "$out/code" || echo $? > "$out/code"
now > "$out/ended"
"""
STAYED = """
ls -d "$state"/*/*/*/*/attempt_* > "$out/stayed"
"""
RESUMED = """
plait resume $(ls .git/plait/runs) --headless > "$out/resumed" 2>&1 || true
"""
KEPT = """
run=$(ls .git/plait/runs)
for step in big small; do
    git ls-tree --name-only plait/$run/$step/worker_1 | grep -c "^$step" >> "$out/kept" || true
done
"""
# The kernel ends the last of a sandbox after the process that the engine waits for.
GONE = """
left() { grep -lsz "^PLAIT_RUN=" /proc/[0-9]*/environ | xargs -r grep -lsz "$out" | wc -l; }
wait_for 'test $(left) = 0'
"""


def tell(tmp_path: Path, where: str, manifest: str, *scenes: str) -> Path:
    """Return what the script left behind."""
    need("small disk")
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    out.mkdir()
    manifest = manifest.replace("%s", str(out))
    done = subprocess.run(
        [*WITH_OWN_MOUNTS, "sh", "-c", "\n".join((SETTING, *scenes)), "story", disk, out, where],
        env={**os.environ, "MANIFEST": manifest, "PYTHON": sys.executable},
        timeout=240,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done
    return out


def events(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "events").read_text().splitlines()]


def lasted(out: Path) -> float:
    return float((out / "ended").read_text()) - float((out / "began").read_text())


def test_what_cannot_be_collected_is_said_and_collected_once_there_is_room(tmp_path: Path):
    out = tell(tmp_path, "repository", COLLECTED, SEEN, HOSTED, FREED, ENDED, KEPT)
    assert f"{tmp_path / 'disk'} is full: " in (out / "status").read_text()
    seen = json.loads((out / "status.json").read_text())["trouble"]
    assert "Free some space there. Nothing is lost" in seen["help"]
    assert seen["since"] > 0
    told = events(out)
    troubles = [event["trouble"] for event in told if event["type"] == "TroubleSeen"]
    assert troubles[0]["since"] == seen["since"]
    assert told[-1]["type"] == "RunFinished"
    assert told[-1]["report"]["outcome"] == "success"
    assert (out / "kept").read_text().split() == ["10", "6"]
    assert (out / "code").read_text().strip() == "0"


def test_nothing_stands_still_where_there_is_room(tmp_path: Path):
    """The control: the same work, with the same small disk elsewhere."""
    out = tell(tmp_path, "state", COLLECTED, ENDED, KEPT)
    told = events(out)
    assert told[-1]["type"] == "RunFinished"
    assert [event for event in told if event["type"] == "TroubleSeen"] == []
    assert (out / "kept").read_text().split() == ["10", "6"]
    assert (out / "code").read_text().strip() == "0"


@pytest.mark.parametrize(
    "end", ["kill -INT $engine", "kill -TERM $engine", "plait cancel --all || true"]
)
def test_an_engine_that_cannot_collect_ends_when_it_is_told_to(tmp_path: Path, end: str):
    out = tell(
        tmp_path, "repository", COLLECTED, SEEN, HOSTED, end, ENDED, STAYED, FREED, RESUMED, KEPT
    )
    assert lasted(out) < LONGEST_S
    assert (out / "code").read_text().strip() == "130"
    said = (out / "said").read_text()
    assert "cannot be recorded: " in said
    for worker in ("big/worker_1", "small/worker_1"):
        assert f"kept: {worker}: its record in " in said
        files = next(line for line in said.splitlines() if f"{worker}: its files in" in line)
        assert files.rpartition(" ")[2] in (out / "stayed").read_text().split()
    assert (out / "kept").read_text().split() == ["10", "6"]


@pytest.mark.parametrize("where", ["repository", "state", "both"])
def test_a_disk_that_is_full_while_agents_run_costs_no_outcome(tmp_path: Path, where: str):
    let_go = 'touch "$out/gate/go"; sleep 3'
    out = tell(tmp_path, where, RUNNING, FILLED, HOSTED, let_go, FREED, ENDED)
    told = events(out)
    assert told[-1]["type"] == "RunFinished"
    assert [event["seq"] for event in told if "seq" in event] == list(
        range(1, 1 + sum("seq" in event for event in told))
    )
    (result,) = told[-1]["report"]["steps"]["a"]["worker_results"]
    # A worker whose own disk was full failed truly; one whose disk had room did not fail at all.
    assert result["phase"] == ("FINISHED" if where == "repository" else result["phase"])
    assert result["error"] is None or "said: nothing" not in result["error"]


@pytest.mark.parametrize(
    "end", ["kill -INT $engine", "kill -TERM $engine", "plait cancel --all || true"]
)
def test_an_engine_that_can_write_nothing_ends_running_agents(tmp_path: Path, end: str):
    out = tell(tmp_path, "repository", RUNNING, FILLED, HOSTED, end, ENDED, GONE)
    assert lasted(out) < LONGEST_S
    assert (out / "code").read_text().strip() == "130"
    assert "kept: a/worker_1: its files in " in (out / "said").read_text()
