"""Test what shells complete and the manual says: every command, every option, and nothing else."""

import os
import re
import subprocess  # noqa: TID251  real shells judge their own language
import sys
from collections.abc import Iterator
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


def quoted(*words: str) -> str:
    return " ".join(f"'{word}'" for word in ("plait", *words))


def answers(lines: list[str]) -> Iterator[list[str]]:
    """Return what a shell said to each of many questions, with a line of `=` behind each answer."""
    answer: list[str] = []
    for line in lines:
        if line == "=":
            yield answer
            answer = []
        else:
            answer.append(line)


def every_option(*, are_long: bool = False) -> list[set[str]]:
    wanted = "--" if are_long else "-"
    return [
        {flag for word in command.options for flag in word.flags if flag.startswith(wanted)}
        for command in ALL
    ]


def test_bash_completes_commands_options_values_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = script("bash", tmp_path, capsys)
    (tmp_path / "plan.yaml").touch()

    def asked(*lines: tuple[str, ...]) -> list[list[str]]:
        questions = [
            f"COMP_WORDS=({quoted(*words)}); COMP_CWORD={len(words)}; _plait; "
            'echo "${COMPREPLY[*]}"; echo ='
            for words in lines
        ]
        ask = "\n".join(['. "$1"', *questions])
        said = ran("bash", "-c", ask, "bash", file, cwd=tmp_path)
        return [" ".join(answer).split() for answer in answers(said)]

    assert asked(
        ("re",),
        ("land", "--ba"),
        ("run", "--on-question", "d"),
        ("completions", "z"),
        ("validate", "pla"),
    ) == [
        [name for name in COMMANDS if name.startswith("re")],
        ["--batch"],
        ["deny"],
        ["zsh"],
        ["plan.yaml"],
    ]
    assert [set(said) for said in asked(*((each.name, "-") for each in ALL))] == every_option()


_A_WORKER = """function plait; echo ' "worker": "port/worker_1",'; end"""  # it is asked each time


def test_fish_completes_commands_options_values_and_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = script("fish", tmp_path, capsys)

    def asked(*lines: str) -> list[set[str]]:
        questions = [f"complete -C {line!r}; echo =" for line in lines]
        command = "\n".join([f"source {str(file)!r}", _A_WORKER, *questions])
        said = ran("fish", "-N", "-c", command, cwd=tmp_path)
        return [{row.split("\t")[0] for row in answer} for answer in answers(said)]

    commands, workers, *words = asked(
        "plait re",
        "plait land p",
        "plait land --ba",
        "plait run --on-question d",
        "plait completions ",
    )
    assert commands >= {name for name in COMMANDS if name.startswith("re")}
    assert workers >= {"port/worker_1"}
    assert words == [{"--batch"}, {"deny"}, set(SHELLS)]
    assert asked(*(f"plait {each.name} --" for each in ALL)) == every_option(are_long=True)


def test_zsh_completes_commands_options_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = script("zsh", tmp_path, capsys)
    # The functions of zsh's own that draw a list are asked what they were given.
    stubs = (
        "compdef() { : }; _files() { : }; _describe() { print -l -- ${(P)2} }; "
        "_arguments() { print -l -- $@ };"
    )

    def asked(*lines: tuple[str, ...]) -> list[list[str]]:
        questions = [
            f"words=({quoted(*words)}); CURRENT={len(words) + 1}; _plait; print ="
            for words in lines
        ]
        ask = "\n".join([f'{stubs} . "$1"', *questions])
        return list(answers(ran("zsh", "-f", "-c", ask, "zsh", file, cwd=tmp_path)))

    commands, run, *each = asked(("",), ("run", "-"), *((one.name, "-") for one in ALL))
    assert [row.partition(":")[0] for row in commands] == list(COMMANDS)
    assert "*--on-question[" in " ".join(run)
    assert any(row.endswith(":(fail deny wait)") for row in run)
    option = re.compile(r"\*(-[\w-]+)\[")
    flags = [{found[1] for row in rows if (found := option.match(row))} for rows in each]
    assert flags == every_option()


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
