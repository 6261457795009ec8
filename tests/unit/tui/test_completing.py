"""What shells complete and the manual says: every command, every option, and nothing else."""

import os
import re
import subprocess  # noqa: TID251  real shells judge their own language
import sys
from pathlib import Path

import pytest

from tests.support.needs import need
from tui.cli import main
from tui.commands.names import COMMANDS
from tui.commands.pages import described

ALL = described()
WITH_PLAIT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
SHELLS = ("bash", "zsh", "fish")


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    need(shell)
    assert main(["completions", shell]) == 0
    file = folder / "completion"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    return file


def ran(*argv: str | Path, cwd: Path) -> list[str]:
    done = subprocess.run(
        argv, cwd=cwd, env=WITH_PLAIT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def in_bash(file: Path, *words: str) -> list[str]:
    """What bash completes of the last word."""
    line = " ".join(f"'{word}'" for word in ("plait", *words))
    ask = f'. "$1"; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _plait; echo "${{COMPREPLY[*]}}"'
    return " ".join(ran("bash", "-c", ask, "bash", file, cwd=file.parent)).split()


def test_bash_completes_commands_options_values_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = script("bash", tmp_path, capsys)
    assert in_bash(file, "re") == [name for name in COMMANDS if name.startswith("re")]
    assert in_bash(file, "land", "--ba") == ["--batch"]
    assert in_bash(file, "run", "--on-question", "d") == ["deny"]
    assert in_bash(file, "completions", "z") == ["zsh"]
    (tmp_path / "plan.yaml").touch()
    assert in_bash(file, "validate", "pla") == ["plan.yaml"]
    for command in ALL:
        flags = {flag for word in command.options for flag in word.flags}
        assert set(in_bash(file, command.name, "-")) == flags


def test_fish_completes_commands_options_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = script("fish", tmp_path, capsys)

    def asked(line: str) -> set[str]:
        command = f"source {str(file)!r}; complete -C {line!r}"
        return {row.split("\t")[0] for row in ran("fish", "-N", "-c", command, cwd=tmp_path)}

    assert asked("plait re") >= {name for name in COMMANDS if name.startswith("re")}
    assert asked("plait land --ba") == {"--batch"}
    assert asked("plait run --on-question d") == {"deny"}
    assert asked("plait completions ") == set(SHELLS)
    for command in ALL:
        flags = {f for word in command.options for f in word.flags if f.startswith("--")}
        assert asked(f"plait {command.name} --") == flags


def test_zsh_completes_commands_options_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = script("zsh", tmp_path, capsys)
    # The functions of zsh's own that draw a list are asked what they were given.
    stubs = (
        "compdef() { : }; _files() { : }; _describe() { print -l -- ${(P)2} }; "
        "_arguments() { print -l -- $@ };"
    )

    def asked(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in ("plait", *words))
        ask = f'{stubs} . "$1"; words=({line}); CURRENT={len(words) + 1}; _plait'
        return ran("zsh", "-f", "-c", ask, "zsh", file, cwd=tmp_path)

    assert [row.partition(":")[0] for row in asked("")] == list(COMMANDS)
    for command in ALL:
        flags = {flag for word in command.options for flag in word.flags}
        rows = asked(command.name, "-")
        assert {found[1] for row in rows if (found := re.match(r"\*(-[\w-]+)\[", row))} == flags
    assert "*--on-question[" in " ".join(asked("run", "-"))
    assert any(row.endswith(":(fail deny wait)") for row in asked("run", "-"))


def test_the_manual_names_every_command_and_option(capsys: pytest.CaptureFixture[str]):
    assert main(["man"]) == 0
    page = capsys.readouterr().out.replace("\\-", "-")
    for command in ALL:
        section = page.partition(f"\n.SS {command.name}\n")[2].partition("\n.S")[0]
        assert section
        for word in command.options:
            assert all(flag in section for flag in word.flags)


def test_a_manual_reader_finds_nothing_to_complain_about(capsys: pytest.CaptureFixture[str]):
    need("groff")
    main(["man"])
    page = capsys.readouterr().out
    argv = ["groff", "-man", "-Tutf8", "-ww", "-z"]
    done = subprocess.run(argv, input=page.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
