"""Keep the answers to permissions that hold for a whole repository, not for one run."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from engine.errors import StoreError
from engine.messages.asked import AnswerScope, KeptAnswer
from engine.store.codec import dump, load
from engine.store.files import write_atomically
from engine.values import dataclass


@dataclass(frozen=True)
class KeptAnswers:
    """The answers of one repository, in a file beside its runs that one engine writes at a time."""

    path: Path

    def read(self) -> tuple[KeptAnswer, ...]:
        """Return them in the order they were given; none where the file says nothing of ours."""
        try:
            said = json.loads(self.path.read_bytes())
            rules = [load(KeptAnswer, one) for one in said]
        except (OSError, ValueError, TypeError, StoreError):
            return ()
        kept = [rule for rule in rules if rule.scope is AnswerScope.REPOSITORY]
        return tuple(replace(rule, number=number) for number, rule in enumerate(kept, 1))

    def follow(self, before: Iterable[KeptAnswer], after: Iterable[KeptAnswer]) -> None:
        """Do to the file what a run did to its rules.

        Raises:
            StoreError: It could not be written.
        """
        old, new = _for_all_runs(before), _for_all_runs(after)
        if old == new:
            return
        there = _for_all_runs(self.read())
        left = [rule for key, rule in there.items() if key in new or key not in old]
        more = [rule for key, rule in new.items() if key not in old and key not in there]
        data = json.dumps([dump(rule) for rule in (*left, *more)], indent=1)
        write_atomically(self.path, data.encode())


def _for_all_runs(rules: Iterable[KeptAnswer]) -> dict[KeptAnswer, KeptAnswer]:
    """Return the rules of the repository by all but their numbers, which differ between runs."""
    mine = (rule for rule in rules if rule.scope is AnswerScope.REPOSITORY)
    return {replace(rule, number=0): rule for rule in mine}
