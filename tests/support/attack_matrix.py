"""`make attack`: measures the attack matrix, prints it as a table, and says where it is not held.

    python -m tests.support.attack_matrix [--write]

With `--write` the table goes into docs/security.md. As root it measures as an ordinary user
too, by a copy of the code that others may read.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import anyio

from tests.support.left_behind import WAYS, Ground
from tests.support.matrix import (
    CONTROL,
    HELD,
    NOT_HELD,
    ROWS,
    Measured,
    differences,
    measured_here,
    table,
)
from tests.support.users import ordinary_user

PAGE = Path(__file__).parents[2] / "docs/security.md"
BEGIN, END = "<!-- matrix:begin -->\n", "<!-- matrix:end -->\n"


def measure_all() -> dict[str, Measured]:
    """Measure as root and as an ordinary user; as the latter alone where nobody is root."""
    found: dict[str, Measured] = {}
    if os.getuid() == 0:
        with tempfile.TemporaryDirectory(prefix="plait-matrix-") as folder:
            found["root"] = measured_here(Path(folder))
    with ordinary_user() as user:
        done = user.run("-m", "tests.support.matrix", str(user.folder / "matrix"), timeout_s=300)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        found["ordinary"] = Measured(**json.loads(done.stdout))
    left = _left_behind()
    mine = next(iter(found.values()))  # whoever runs this
    for rung in mine.rungs.values():
        rung.update({name: answer for name, answer in left.items() if answer != CONTROL})
    mine.uncontrolled.extend(name for name, answer in left.items() if answer == CONTROL)
    return found


def _left_behind() -> dict[str, str]:
    """Try what agents left for the user's git to run; on every rung `collect` quiets it."""
    found: dict[str, str] = {}
    for row in (row for row in ROWS if row.after):
        with tempfile.TemporaryDirectory(prefix="plait-matrix-") as folder:
            ground = Ground(Path(folder).resolve())
            place = WAYS[row.after](ground)
            if not ground.use(place):
                found[row.name] = CONTROL
                continue
            anyio.run(ground.quiet)
            found[row.name] = NOT_HELD if ground.use(place) else HELD
    return found


def page_with(text: str) -> str:
    """The page on security with another table in it."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main(words: list[str]) -> int:
    """Measure, print, and compare; 1 where a row is not as expected."""
    found = measure_all()
    results = {user: measured.rungs for user, measured in found.items()}
    text = table(results)
    problems = differences(results)
    problems += [
        f"{name} gets nothing as {user} although nothing guards"
        for user, measured in found.items()
        for name in measured.uncontrolled
    ]
    if "--write" in words:
        PAGE.write_text(page_with(text))
    rows = sum(len(rung) for rungs in results.values() for rung in rungs.values())
    sys.stdout.write(f"{text}\n{rows} rows measured here; the others are told as expected.\n")
    sys.stdout.write("".join(f"NOT AS EXPECTED: {line}\n" for line in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
