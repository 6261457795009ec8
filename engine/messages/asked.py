"""Define what agents ask humans, and the answers that are kept for later questions."""

import re
from enum import StrEnum
from fnmatch import fnmatchcase

from engine.legible import hides
from engine.values import dataclass


class AnswerScope(StrEnum):
    """Those for whom an answer to a permission is kept."""

    WORKER = "worker"
    STEP = "step"
    RUN = "run"
    REPOSITORY = "repository"
    """This run, and all that begin later in this repository."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of an agent to a human; it stays open until somebody answers it.

    Attributes:
        about: The tool and its subject, as rules name them: `Bash(git push)`.
        danger: What the command would do that nobody can undo; empty if plait knows of nothing.
        command: The whole command that the agent asks permission for, if it asks for one.
        is_editable: A human can replace the command, and the agent's client runs the replacement.
        needs_human: No saved answer applies: the question comes from a terminal, or is about
            several commands.
    """

    id: str
    text: str
    choices: tuple[str, ...] = ()
    asked_at: float = 0.0
    is_permission: bool = False
    about: str = ""
    danger: str = ""
    command: str = ""
    is_editable: bool = False
    needs_human: bool = False

    @property
    def is_hiding(self) -> bool:
        """Return whether it holds something unseen: then a human allows it, each time anew."""
        return hides(self.text) or hides(self.command)


def is_allowing(answer: str) -> bool:
    """Return whether an answer to a permission allows it, or another command in its place."""
    word, _, command = answer.partition(":")
    is_other = word.strip().casefold() == "allow" and bool(command.strip())
    return answer == "allow" or is_other


_JOINS = re.compile(r"[;&|`\n\r<>]|\$\(")
"""Signs by which a shell ends one command or file name and begins another."""

_UPWARDS = re.compile(r"(?:^|[/\s\"'=])\.\.(?:/|\)?$|\s)")
"""A way out of the folder that a pattern names."""


def covers(pattern: str, about: str) -> bool:
    """Return whether a pattern allows `Tool(detail)`.

    `Bash(git *)` allows `git log`, and not `git log && rm -rf ~`; `Edit(src/*)` allows no path with
    `..` in it. Such a detail, and one with something hidden, is allowed only by its exact text or
    by a pattern for the whole tool.
    """
    if not fnmatchcase(about, pattern):
        return False
    tool, _, detail = about.partition("(")
    is_for_all = pattern in {about, f"{tool}(*)"} or fnmatchcase(tool, pattern)
    is_more = _JOINS.search(detail) or _UPWARDS.search(detail) or hides(detail)
    return is_for_all or not is_more


def parts_of(detail: str) -> tuple[str, ...]:
    """Return the single commands of a shell line, as far as its signs tell."""
    return tuple(part.strip(" \t()") for part in _JOINS.split(detail))


@dataclass(frozen=True, kw_only=True)
class KeptAnswer:
    """An answer to a permission that holds from then on, until it is revoked.

    Attributes:
        number: Its name within its run.
        where: The worker or the step that it holds for; empty for whole runs.
        asked: The question that it answers, as it was asked.
        pattern: The questions that it answers, as `Bash(git *)`; empty for exactly that one.
    """

    number: int
    answer: str
    scope: AnswerScope
    where: str = ""
    asked: str = ""
    pattern: str = ""

    def answers(self, question: Question, *, worker: str, step: str) -> bool:
        """Return whether it answers a question.

        A pattern never answers a dangerous question, and nothing allows one that hides something.
        Nothing at all answers one that needs a human.
        """
        if self.where not in {"", worker, step} or not question.is_permission:
            return False
        if question.needs_human:
            return False
        allows = is_allowing(self.answer)
        if question.is_hiding and allows:
            return False
        if not self.pattern:
            return question.text == self.asked
        about = question.about  # a denial may reach further than what allows
        is_meant = covers(self.pattern, about) if allows else fnmatchcase(about, self.pattern)
        return is_meant and not question.danger
