"""Draw the pictures of this folder from the real console, on the scripted run of the tests.

`python screenshots/make.py` draws all of them anew; `--check` says which are out of date, and
changes nothing. The first picture of the README and those of what many runs came to are from real
runs, which never go the same way twice: `--real` draws them anew.
"""

import re
import sys
import tempfile
import time
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import anyio

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.messages.results import EngineView  # noqa: E402
from screenshots.real import demonstrated, worked  # noqa: E402
from tests.support import consoles, world  # noqa: E402
from tests.support import review_consoles as reviews  # noqa: E402
from tests.support.console_diffs import diff_of_reader  # noqa: E402
from tests.support.starting import Here  # noqa: E402
from tui.app import Options, PlaitApp  # noqa: E402
from tui.commands.braid import svg as braid_svg  # noqa: E402

FOLDER = Path(__file__).resolve().parent
_START = "S f i x space t h e space r e a d e r tab"
_RUNNING = "implement/worker_1"


class Shot(NamedTuple):
    """One picture: what it shows, on which view, at which size, after which keys."""

    name: str
    says: str
    size: tuple[int, int]
    keys: str = ""
    view: str = "run"
    worker: str = ""
    theme: str = "loom"
    is_plain: bool = False


SHOTS = (
    Shot("fleet-wide", "Fleet on a wide screen, with its rail", (200, 50)),
    Shot("fleet-table", "Fleet as a table: twenty workers in 80 columns", (80, 24), view="many"),
    Shot("worker", "Worker: the log, and how its limits hold", (120, 36), "2", worker=_RUNNING),
    Shot(
        "diff",
        "Diff: hunks that are new, words that changed",
        (120, 36),
        "3 space",
        worker=_RUNNING,
    ),
    Shot("diff-split", "Diff on a wide screen", (200, 50), "3", worker=_RUNNING),
    Shot(
        "compare",
        "Compare: candidates side by side, and which share a hunk",
        (120, 36),
        "4 space n",
        view="choosing",
        worker=_RUNNING,
    ),
    Shot(
        "review",
        "Review: a conflict, both sides against the base, and the likeliest answers",
        (120, 36),
        "5 J",
        view="conflicted",
        worker=reviews.WHO,
    ),
    Shot(
        "review-wide",
        "Review in three columns on a wide screen",
        (200, 50),
        "5 t",
        view="conflicted",
        worker=reviews.WHO,
    ),
    Shot("inbox", "Inbox: a question, and what a yes could touch", (120, 36), "0"),
    Shot("plan", "Plan: the steps, and where the time went", (120, 36), "g p"),
    Shot("help", "Help: the keys of a screen, and why some are gray", (120, 36), "question_mark"),
    Shot("first-run", "Before the first run", (80, 24), view="empty"),
    Shot(
        "start", "Starting a run: the prompt, the agent, and what becomes of it", (80, 24), _START
    ),
    Shot("leave", "Leaving: what becomes of live workers", (80, 24), "q"),
    Shot("linen", "The light theme", (120, 36), theme="linen"),
    Shot("contrast", "The high-contrast theme", (120, 36), theme="contrast"),
    Shot("clear", "The theme for color-blind eyes", (120, 36), "3", worker=_RUNNING, theme="clear"),
    Shot("indigo", "The theme indigo", (120, 36), theme="indigo"),
    Shot("walnut", "The theme walnut", (120, 36), theme="walnut"),
    Shot("plain", "Without color, in ASCII alone", (120, 36), is_plain=True),
)


DEMO = Shot("fleet", "Fleet: `plait demo` some seconds after its start", (120, 36))
REAL = (
    Shot("stats", "Stats: what attempts came to, and how it went week by week", (120, 36)),
    Shot("stats-wide", "Stats on a wide screen", (200, 50)),
)
_HOW_REAL = """Drawn by `python screenshots/make.py --real`. Engine, processes, git, landings and
figures are real; the agents play scripts. In the pictures of many weeks, the hands of the clock are
turned between the runs."""
_BRAID = "A braid: strands leave the branch and come back; conflicts, who decided, what it cost"


def _views() -> dict[str, EngineView]:
    return {
        "run": world.csvlite(),
        "many": world.many(20),
        "empty": EngineView(repository="csvlite", machine=world.csvlite().machine),
    }


def _port(shot: Shot) -> world.FakePort:
    diff = diff_of_reader()
    if shot.view == "conflicted":
        return reviews.ReviewPort(reviews.conflicted_view(), files=reviews.conflicts())
    if shot.view == "choosing":
        return reviews.ReviewPort(reviews.choosing_view(), diffs={_RUNNING: diff})
    return world.FakePort(
        _views()[shot.view],
        logs={_RUNNING: world.log_lines(60)},
        diffs={_RUNNING: diff, "port/worker_1": diff},
    )


async def draw(shot: Shot) -> str:
    """The picture as SVG."""
    options = Options(
        clock=lambda: world.NOW,
        is_plain=shot.is_plain,
        is_ascii=shot.is_plain,
        has_truecolor=True,
    )
    async with consoles.opened(
        port=_port(shot),
        size=shot.size,
        options=options,
        theme=shot.theme,
        starter=Here(Path("/nowhere")),
    ) as console:
        if shot.worker:
            console.app.session.worker = shot.worker
        await console.press(*shot.keys.split())
        await console.until(lambda: console.app.session.bridge.view is not None)
        await console.pilot.pause(0.4)
        return upright(console.app.export_screenshot(title=f"plait: {shot.name}"))


async def draw_demo(folder: Path) -> str:
    """Return the demo at the moment when most is to be seen of it."""
    async with demonstrated(folder) as engine:
        port: Any = engine.port
        app = PlaitApp(port, options=Options(has_truecolor=True, is_plain=False))
        async with app.run_test(size=DEMO.size) as pilot:
            console = consoles.Console(app, pilot, port)
            await console.shows("ASKS YOU", "choose 1 of 3", "guide", "attempt 2 of 2")
            await console.pilot.pause(0.4)
            return upright(app.export_screenshot(title="plait demo"))


async def draw_real(folder: Path) -> dict[str, str]:
    """Pictures of real runs, by their names."""
    found = {f"{DEMO.name}.svg": await draw_demo(folder / "demo")}
    async with worked(folder) as (engine, braid):
        port: Any = engine.port
        found["braid.svg"] = braid_svg(braid)
        for shot in REAL:
            options = Options(has_truecolor=True, is_plain=False)
            app = PlaitApp(port, theme=shot.theme, options=options)
            async with app.run_test(size=shot.size) as pilot:
                console = consoles.Console(app, pilot, port)
                await console.until(lambda: app.session.bridge.view is not None)  # noqa: B023
                await console.do("go_stats")
                await console.shows("week by week")
                await console.pilot.pause(0.4)
                drawn = app.export_screenshot(title=f"plait: {shot.name}")
                found[f"{shot.name}.svg"] = upright(drawn)
    return found


_TEXT = re.compile(r'<text[^>]*? x="([\d.]+)"[^>]*? textLength="([\d.]+)"[^>]*>([^<]*)</text>')
_ID = re.compile(r"terminal-\d+-")


def upright(svg: str) -> str:
    """The SVG with leading blanks as places: some viewers drop them, and shift what follows."""

    def moved(found: "re.Match[str]") -> str:
        body = unescape(found[3])
        lead = len(body) - len(body.lstrip("\u00a0"))
        if not lead:
            return found[0]
        if lead == len(body):
            return ""
        cell = float(found[2]) / len(body)
        wide = f'textLength="{float(found[2]) - lead * cell:.1f}"'
        text = found[0].replace(f'x="{found[1]}"', f'x="{float(found[1]) + lead * cell:.1f}"', 1)
        text = text.replace(f'textLength="{found[2]}"', wide, 1)
        return text.replace("&#160;" * lead, "", 1)

    return _ID.sub("terminal-", _TEXT.sub(moved, svg))


def readme() -> str:
    """The page that shows every picture."""
    parts = [
        "# Pictures of the console",
        "Drawn by `make shots` from the real console on a scripted run; never by hand.",
        *(f"## {shot.says}\n\n![{shot.says}]({shot.name}.svg)" for shot in SHOTS),
        "# From real runs",
        _HOW_REAL,
        *(f"## {shot.says}\n\n![{shot.says}]({shot.name}.svg)" for shot in (DEMO, *REAL)),
        f"## {_BRAID}\n\n![{_BRAID}](braid.svg)",
    ]
    return "\n\n".join(parts) + "\n"


def main(argv: list[str]) -> int:
    """Draw, or look whether what is there is current; 1 if it is not."""
    time.tzset()
    wanted = {f"{shot.name}.svg": anyio.run(draw, shot) for shot in SHOTS}
    wanted["README.md"] = readme()
    if "--real" in argv:
        with tempfile.TemporaryDirectory(prefix="plait-shots-") as folder:
            wanted |= anyio.run(draw_real, Path(folder))
    stale = [
        name
        for name, text in wanted.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text("utf-8") != text
    ]
    if "--check" in argv:
        print("\n".join(f"out of date: {name}" for name in stale) or "all pictures are current")
        return int(bool(stale))
    for name in stale:
        (FOLDER / name).write_text(wanted[name], "utf-8")
        print(f"drew {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
