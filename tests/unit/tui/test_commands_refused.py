"""A refusal of the system is reported with what to do about it."""

import argparse
import errno
import os
from types import ModuleType

import pytest

from tui.commands import base


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.EACCES, "must be able to write"), (errno.ENOSPC, "Free some space")],
)
def test_what_the_system_refuses_comes_with_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, advice: str
):
    def refused(_: argparse.Namespace) -> int:
        raise OSError(number, os.strerror(number), "/r/.git/plait")

    command = ModuleType("refusing")
    command.add_arguments = lambda _: None  # type: ignore[attr-defined]
    command.run = refused  # type: ignore[attr-defined]
    monkeypatch.setattr(base, "import_module", lambda _: command)
    assert base.dispatch("status", []) == base.EXIT_FAILED
    told = capsys.readouterr().err
    assert f"/r/.git/plait: {os.strerror(number)}" in told
    assert advice in told


@pytest.mark.parametrize("said", [None, "", "0", "60", "-7", "wide", "١٢"])
def test_help_is_as_wide_as_argparse_makes_it(monkeypatch: pytest.MonkeyPatch, said: str | None):
    if said is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", said)
    _, parser = base.parser_of("run")
    ours = parser.format_help()
    parser.formatter_class = argparse.HelpFormatter
    assert ours == parser.format_help()
