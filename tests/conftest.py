"""Set up every test: one async back end, an event loop nobody may block, counted skips."""

import gc
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings  # here before anything is left out, see below

from engine.system import IS_PORTABLE
from tests.support import needs


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def never_block_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("engine") as guard:
        for name, file, functions in _MAY_BLOCK:
            guard.functions[name].can_block_in(file, functions)
        yield guard


# For machines that do other things too: what is slow there is not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_COMMIT = {"transaction", "append", "_next"}
_MAY_BLOCK = (
    # A fact is journaled before anything is done about it: one commit to a write-ahead log takes
    # a tenth of a millisecond, less than the way to a thread and back.
    ("sqlite3.Connection.execute", "engine/store/sqlite/database.py", _COMMIT),
    ("sqlite3.Connection.execute", "engine/store/sqlite/run_store.py", _COMMIT),
    ("sqlite3.Connection.executemany", "engine/store/sqlite/run_store.py", _COMMIT),
    ("sqlite3.Cursor.fetchone", "engine/store/sqlite/run_store.py", _COMMIT),
    # anyio itself looks what lies where a socket is to be bound, once in an engine's life.
    ("os.stat", "anyio/_core/_sockets.py", {"setup_unix_local_socket"}),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--short",
        action="store_true",
        help="leave out long tests, and of each other one all cases but one",
    )


_LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what a short run takes, and count what it leaves out.

    Which case of a test it takes depends on the test's name, so that all kinds of cases are there.
    """
    if not config.getoption("--short"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    some = {same[crc32(name.encode()) % len(same)] for name, same in cases.items()}
    kept = [item for item in items if item in some and not item.get_closest_marker("long")]
    config.stash[_LEFT_OUT] = len(items) - len(kept)
    items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary what was left out, if that is another one."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the count of a process that ran tests; each leaves out the same."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_configure() -> None:
    # Ignored by all under `nohup` and `&`; a shell that begins so cannot trap them.
    for number, usual in (
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGINT, signal.default_int_handler),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    if not _PLAIN.fullmatch(tempfile.gettempdir()):
        _work_in_a_plain_folder()
    if IS_PORTABLE:
        sys.addaudithook(_hide_proc)


def pytest_collection_finish() -> None:
    """Leave out of every search for garbage what is there to the end: modules and all tests.

    Hypothesis and its plugins ask who holds their objects, and get no answer of what is left out.
    """
    gc.collect()
    gc.freeze()


os.environ["PLAIT_ASCII"] = "0"  # pictures and texts of the console are the same in any locale

_PLAIN = re.compile(r"[\w./-]{1,40}")
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - pytest makes a folder of its own below


def _work_in_a_plain_folder() -> None:
    """Give tests a short folder of letters: they write paths into shell words and socket addresses.

    That plait itself does with any name what it should is what test_odd_names_story shows.
    """
    for place in _PLACES:
        if os.access(place, os.W_OK | os.X_OK):
            os.environ["TMPDIR"] = tempfile.tempdir = place
            return


def _hide_proc(event: str, words: tuple[object, ...]) -> None:
    """Fail whoever of the program asks /proc where there is to be none; psutil may."""
    if event not in {"open", "os.listdir", "os.scandir", "os.chmod"} or not words:
        return
    if not str(words[0]).startswith(("/proc", "b'/proc")):
        return
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
        if "site-packages" in frame.f_code.co_filename:
            return
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None:
        raise AssertionError(f"{frame.f_code.co_filename} asks {words[0]!r}, which is Linux alone")


_ROOT = Path(__file__).parents[1]
_OURS = (str(_ROOT / "engine"), str(_ROOT / "tui"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker names what is not here, before its fixtures are built."""
    for marker in item.iter_markers("needs"):
        needs.need(*marker.args)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Let no test be skipped that does not say how to run it; nor any with PLAIT_CI=1.

    CI has what the tests need, or says why it cannot.
    """
    outcome = yield
    report = outcome.get_result()
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = _reason(report)
    if not _SAYS_HOW.search(reason):
        report.outcome = "failed"
        report.longrepr = f"the reason does not end with how to get it, in brackets: {reason}"
    elif os.environ.get("PLAIT_CI") == "1" and not needs.is_excused(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped although PLAIT_CI=1 forbids it: {reason}"


_SAYS_HOW = re.compile(r" \(.+\)$")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a short run left out, and count the skipped ones by what they lacked.

    The reason of a skip says how to get what lacks.
    """
    if left_out := terminalreporter.config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} longer tests and cases left out (make test-all)")
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    for reason, count in reasons.most_common():
        tests = "test" if count == 1 else "tests"
        terminalreporter.write_line(f"{count} {tests} skipped: {reason}")


def _reason(report: pytest.TestReport) -> str:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return told.removeprefix("Skipped: ")
