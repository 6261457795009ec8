"""Record the frozen runs anew: `python -m tests.frozen.record [NAME …]`.

Run it only when what an engine writes is meant to change, and say why in the commit: the files are
the promise that runs of before still replay.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import anyio

from tests.frozen.kept import FOLDER, journal_of, save
from tests.frozen.scenarios import SCENARIOS


async def _record(name: str) -> None:
    tmp = Path(tempfile.mkdtemp(prefix="frozen-"))
    try:
        run = await SCENARIOS[name](tmp)
        save(FOLDER / f"{name}.jsonl", journal_of(tmp / "project", run), tmp)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SCENARIOS:
        anyio.run(_record, wanted)
