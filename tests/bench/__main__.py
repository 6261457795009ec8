"""Run benches and write what they print into docs/benchmarks.md.

`python -m tests.bench [NAME…]` runs those, or all. The page keeps the sections of benches that did
not run. Each section says when, on which machine and under which load it was taken.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/benchmarks.md"
_HEAD = """# Benchmarks

`make bench` measures plait, and in the same run the tools that do a part of the same work: xargs,
GNU parallel, tmux, git itself. It writes this page.

**To read a row.** Most rows have a result, a bar, `ok` or `MISSED`, and the figures behind the
result:

```
attempt of 7,000 files in a child       1.223 x local   ≤ 1.3      ok      372 ms beside 305 ms
```

plait needed 1.223 times as long as "local", its peer in this row. The bar is 1.3: a higher ratio
would be `MISSED`. With `≥`, a lower result misses the bar. Rows without a bar only inform.

- Read the ratios, not the seconds: a slower machine slows down both sides of a ratio.
- Each section names its date, its machine, its versions and the load at its start. Sections can
  come from different days. A load above 1 means that the machine was busy with something else.
- Measure on your own machine before you decide by a figure: `make bench` runs all sections, and
  `make bench BENCH="git keeper"` runs two and keeps the others.
"""
_SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_PEERS = {"git": "--version", "tmux": "-V", "parallel": "--version", "bwrap": "--version"}


def names() -> list[str]:
    """Return the names of all benches."""
    return sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )


def _first_line(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), words[0])


def machine() -> str:
    """Return what a reader must know to compare: the machine and the versions."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    kind = cpu[1] if cpu else platform.machine()
    memory_gb = psutil.virtual_memory().total / 2**30
    peers = [
        subprocess.run(
            [name, word], capture_output=True, text=True, check=False
        ).stdout.splitlines()[0]
        for name, word in _PEERS.items()
        if shutil.which(name)
    ]
    parts = [
        f"{os.cpu_count()} processors ({kind}), {memory_gb:.0f} GB",
        f"Linux {platform.release()}",
        f"Python {platform.python_version()}",
        f"Textual {version('textual')}",
        *peers,
    ]
    return ", ".join(parts)


def measured(name: str) -> tuple[str, bool]:
    """Run one bench; return its section, and whether it held its bars."""
    load = os.getloadavg()[0]
    print(f"== {name}", flush=True)
    bench = subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.bench_{name}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines: list[str] = []
    assert bench.stdout is not None
    for line in bench.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip().replace(str(ROOT), "."))
    is_met = bench.wait() == 0
    taken = f"Taken {datetime.now(UTC):%Y-%m-%d}, load {load:.1f} at the start. {machine()}."
    verdict = "" if is_met else "\nA bar is missed, or the bench could not end.\n"
    return f"{taken}\n{verdict}\n```\n" + "\n".join(lines).strip() + "\n```\n\n", is_met


def main(wanted: list[str]) -> int:
    """Run the benches, and write the page again after each."""
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    sections = {name: text for name, text in _SECTION.findall(old) if name in names()}
    are_met = True
    for name in wanted or names():
        text, is_met = measured(name)
        sections[name] = f"\n{text}"
        are_met = are_met and is_met
        drawn = "".join(f"## {each}\n{sections[each]}" for each in sorted(sections))
        PAGE.write_text(f"{_HEAD}\n{drawn}".rstrip() + "\n", encoding="utf-8")
    return 0 if are_met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
