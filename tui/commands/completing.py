"""Commands and their options as completion scripts for three shells, and as a manual page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FILES = frozenset({"PLAN", "FILE", "PATH", "FILTER", "RUN|FILE", "PLAN|PROMPT|-", "PATH FILE"})
_FOLDERS = frozenset({"REPO", "FOLDER"})
_WORKERS = 'plait status --json 2>/dev/null | sed -n \'s/^ *"worker": "\\(.*\\)",\\{0,1\\}$/\\1/p\''
"""The workers of the latest run, one a line."""


@dataclass(frozen=True)
class Word:
    """One option, or one place for a word.

    Attributes:
        flags: How an option is spelled; none for a place.
        value: What its value is called; empty where an option takes none.
        choices: The values it takes, where these are few.
        help: What it does, in a line.
    """

    flags: tuple[str, ...]
    value: str
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True)
class Described:
    """One command: its name, its purpose, its usage line, its options and places."""

    name: str
    summary: str
    usage: str
    words: tuple[Word, ...]

    @property
    def options(self) -> tuple[Word, ...]:
        """Every option."""
        return tuple(word for word in self.words if word.flags)

    @property
    def places(self) -> tuple[Word, ...]:
        """Every place, in order."""
        return tuple(word for word in self.words if not word.flags)


def bash(commands: Sequence[Described]) -> str:
    """The script for bash: `source <(plait completions bash)`."""
    return "\n".join(_bash_lines(commands))


def _bash_lines(commands: Sequence[Described]) -> Iterator[str]:
    names = " ".join(command.name for command in commands)
    yield "# bash completion for plait"
    yield "_plait() {"
    yield "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
    yield '  local command=${COMP_WORDS[1]} options="" words=""'
    yield "  COMPREPLY=()"
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'    mapfile -t COMPREPLY < <(compgen -W "{names}" -- "$cur"; compgen -d -- "$cur")'
    yield "    return"
    yield "  fi"
    yield '  case "$command $prev" in'
    for command in commands:
        for word in command.options:
            if word.value:
                patterns = "|".join(f'"{command.name} {flag}"' for flag in word.flags)
                yield f"    {patterns}) {_bash_of(word)}; return ;;"
    yield "  esac"
    yield '  case "$command" in'
    for command in commands:
        flags = " ".join(flag for word in command.options for flag in word.flags)
        fill = _bash_of(command.places[0]) if command.places else ":"
        yield f'    {command.name}) options="{flags}"; [[ $cur == -* ]] || {{ {fill}; return; }} ;;'
    yield "  esac"
    yield '  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")'
    yield "}"
    yield "complete -o filenames -F _plait plait"


def _bash_of(word: Word) -> str:
    source = {
        "files": 'compgen -f -- "$cur"',
        "folders": 'compgen -d -- "$cur"',
        "workers": f'compgen -W "$({_WORKERS})" -- "$cur"',
        "choices": f'compgen -W "{" ".join(word.choices)}" -- "$cur"',
        "": "",
    }[_kind(word)]
    return f"mapfile -t COMPREPLY < <({source})" if source else ":"


def zsh(commands: Sequence[Described]) -> str:
    """The script for zsh: a file `_plait` on its `fpath`, or `source <(plait completions zsh)`."""
    return "\n".join(_zsh_lines(commands))


def _zsh_lines(commands: Sequence[Described]) -> Iterator[str]:
    yield "#compdef plait"
    yield "_plait_workers() {"
    yield f'  local -a found; found=(${{(f)"$({_WORKERS})"}}); compadd -a found'
    yield "}"
    yield "_plait() {"
    yield "  if (( CURRENT == 2 )); then"
    yield "    local -a commands; commands=("
    yield from (f"      {_quoted(f'{each.name}:{each.summary}')}" for each in commands)
    yield "    )"
    yield "    _describe command commands; _files -/; return"
    yield "  fi"
    yield "  local command=$words[2]; shift words; (( CURRENT-- ))"
    yield "  case $command in"
    for command in commands:
        specs = [spec for word in command.words for spec in _zsh_specs(word)]
        yield f"    {command.name}) _arguments {' '.join(specs)} ;;"
    yield "  esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = _plait ]; then _plait "$@"; else compdef _plait plait; fi'


def _zsh_specs(word: Word) -> Iterator[str]:
    action = {
        "files": "_files",
        "folders": "_files -/",
        "workers": "_plait_workers",
        "choices": f"({' '.join(word.choices)})",
        "": " ",
    }[_kind(word)]
    value = f":{_zsh_text(word.value)}:{action}" if word.value else ""
    if not word.flags:
        yield _quoted(f"*{value}")
    for flag in word.flags:
        yield _quoted(f"*{flag}[{_zsh_text(word.help)}]{value}")


def _zsh_text(text: str) -> str:
    """A text without what `_arguments` would take for its own signs."""
    return text.translate({ord("["): "(", ord("]"): ")", ord(":"): ";", ord("\\"): "/"})


def fish(commands: Sequence[Described]) -> str:
    """The script for fish: `plait completions fish | source`."""
    return "\n".join(_fish_lines(commands))


def _fish_lines(commands: Sequence[Described]) -> Iterator[str]:
    yield "# fish completion for plait"
    yield f"function __plait_workers; {_WORKERS}; end"
    for command in commands:
        described = _quoted(command.summary)
        yield f"complete -c plait -n __fish_use_subcommand -a {command.name} -d {described}"
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        for word in command.words:
            yield f"complete -c plait {seen}{_fish_flags(word)}{_fish_of(word)}"


def _fish_flags(word: Word) -> str:
    flags = "".join(
        f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in word.flags
    )
    return f"{flags} -d {_quoted(word.help)}" if flags else ""


def _fish_of(word: Word) -> str:
    needs = " -r" if word.flags and word.value else ""
    return (
        needs
        + {
            "files": " -F",
            "folders": " -x -a '(__fish_complete_directories)'" if word.flags else "",
            "workers": " -f -a '(__plait_workers)'",
            "choices": f" -f -a {_quoted(' '.join(word.choices))}",
            "": " -f" if word.flags else "",
        }[_kind(word)]
    )


def _kind(word: Word) -> str:
    """From where its values come."""
    if word.choices:
        return "choices"
    if word.value in _FILES:
        return "files"
    if word.value in _FOLDERS:
        return "folders"
    return "workers" if word.value == "WORKER" else ""


def _quoted(text: str) -> str:
    """A word of a shell; the three agree on single quotes but for the quote itself."""
    return "'" + text.replace("'", "\u2019") + "'"


def man_page(commands: Sequence[Described], version: str) -> str:
    """The manual page, in the macros of man."""
    return "\n".join(_man_lines(commands, version))


_INTRODUCTION = """.SH NAME
plait \\- run many coding agents at once in one git repository
.SH SYNOPSIS
.B plait
[\\fIREPO\\fR]
.br
.B plait
\\fICOMMAND\\fR [\\fIWORD\\fR ...]
.SH DESCRIPTION
Each agent works in its own worktree, sandbox and limits. You watch them live, read their changes,
and land one reviewed branch. Without a command the console opens.
.PP
\\fIWORKER\\fR is [RUN/]STEP/worker_N[@ATTEMPT], or any tail of it that means one worker.
.SH COMMANDS"""
_END = """.SH EXIT STATUS
0 all succeeded; 1 a step failed, or the run was cancelled; 2 bad usage or manifest;
3 a human is awaited; 4 a required mechanism is missing; 130 interrupted.
.SH ENVIRONMENT
PLAIT_STATE_HOME, PLAIT_SANDBOX, PLAIT_FORCE_OFF, NO_COLOR, EDITOR.
.SH FILES
plait.yaml, and .git/plait below the repository."""


def _man_lines(commands: Sequence[Described], version: str) -> Iterator[str]:
    yield f'.TH PLAIT 1 "" "plait {version}" "User Commands"'
    yield _INTRODUCTION
    for command in commands:
        yield f".SS {command.name}"
        yield f"{_roff(command.summary.capitalize())}."
        yield f".PP\n.B {_roff(command.usage)}"
        for word in command.words:
            if word.flags or word.help:
                name = ", ".join(word.flags) or word.value
                value = f" {word.value}" if word.flags and word.value else ""
                yield f".TP\n.B {_roff(name + value)}\n{_roff(word.help)}"
    yield _END


def _roff(text: str) -> str:
    """A text in which nothing is taken for a request, and a hyphen can be copied."""
    flat = " ".join(text.replace("%%", "%").split())
    escaped = flat.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
