"""Measure this engine beside an earlier commit of its own, in turns, in one run.

python -m tests.bench.bench_before [COMMIT]        (e7a8d9f by default)

The safety of collecting, checking and landing has a price; this bench holds it. Both engines run
in a process of their own, on equal repositories, with the same libraries. Read ratios, not
milliseconds. Without the commit in the history (a shallow clone) the bench says so and ends.
"""

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

from tests.support.measuring import Row, said

BEFORE = "e7a8d9f"
ROOT = Path(__file__).parents[2]
PAIRS = 3
Given = Mapping[str, str | None]
LAND, ATTEMPT = 1.3, 1.1
MAKE = (
    "mkdir -p node_modules; i=0;"
    " while [ $i -lt %d ]; do echo $i > node_modules/f$i; i=$((i+1)); done"
)
SETUPS = {
    "no setup": None,
    "setup finds its 4,000 files": f"[ -d node_modules ] || {{ {MAKE % 4_000}; }}",
    "setup writes 1,000 files again": MAKE % 1_000,
}


def unpacked(commit: str, folder: Path) -> bool:
    """Lay the engine of a commit into a folder; tell whether the history has it."""
    told = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "engine"], capture_output=True, check=False
    )
    if told.returncode:
        return False
    with tarfile.open(fileobj=BytesIO(told.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return True


def measured(engine: Path, given: Given) -> dict[str, float]:
    """Run the subject with one engine; return its medians in seconds."""
    told = subprocess.run(
        [
            sys.executable,
            "-P",
            str(Path(__file__).with_name("before_subject.py")),
            json.dumps(given),
        ],
        env={**os.environ, "PYTHONPATH": str(engine)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(told.stdout)


def rows(before: Path) -> Iterator[Row]:
    """Yield what each part costs today, as a ratio to the earlier engine."""
    for name, setup in SETUPS.items():
        yield from compared(before, f"land, {name}", {"what": "land", "setup": setup}, LAND)
    yield from compared(before, "attempt", {"what": "attempt", "setup": None}, ATTEMPT)


def compared(before: Path, name: str, given: Given, bound: float) -> Iterator[Row]:
    """Measure both engines in turns and yield a row per figure."""
    today: dict[str, list[float]] = defaultdict(list)
    earlier: dict[str, list[float]] = defaultdict(list)
    for _ in range(PAIRS):
        for engine, into in ((before, earlier), (ROOT, today)):
            for part, seconds in measured(engine, given).items():
                into[part].append(seconds)
    for part, figures in today.items():
        now, then = statistics.median(figures), statistics.median(earlier[part])
        note = f"{now * 1e3:.0f} ms beside {then * 1e3:.0f} ms"
        yield Row(f"{name}: {part}", now / then, bound, "x before", note=note)


def main() -> int:
    """Print the rows; return how many missed their bound."""
    commit = sys.argv[1] if sys.argv[1:] else BEFORE
    with tempfile.TemporaryDirectory() as folder:
        if not unpacked(commit, Path(folder)):
            said("beside an earlier engine", f"not measured: no commit {commit} in this history")
            return 0
        missed = 0
        for row in rows(Path(folder)):
            said(str(row), "")
            missed += not row.is_kept
    return missed


if __name__ == "__main__":
    sys.exit(main())
