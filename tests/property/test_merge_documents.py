"""Proposals for files that programs read: two that can be read never become one that cannot."""

import json
import random
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

import engine.merge.ideas as ideas_room
from engine.merge import (
    ConflictKind,
    FileConflict,
    FileSide,
    Proposal,
    TextMerge,
    merge_texts,
    propose,
    reads_still,
)
from engine.merge.forms import writes_twice
from engine.merge.text import ConflictHunk
from tests.support.merge_texts import one_hunk

SEEDS = 300
KEYS = [f"k{number}" for number in range(6)]
Accepts = Callable[[ConflictHunk, bytes], bool]


def value(dice: random.Random, depth: int = 0) -> Any:
    plain = [dice.randrange(9), f"v{dice.randrange(9)}", True, None]
    if depth > 1 or dice.random() < 0.6:
        return dice.choice(plain)
    if dice.random() < 0.5:
        return [value(dice, depth + 1) for _ in range(dice.randrange(3))]
    return {key: value(dice, depth + 1) for key in dice.sample(KEYS, dice.randrange(3))}


def changed(document: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """A document with some keys changed, added, removed; added ones anywhere."""
    rows = list(document.items())
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(rows) + 1)
        known = {key for key, _ in rows}
        new = [key for key in (*KEYS, f"n{dice.randrange(4)}") if key not in known]
        if rows and at < len(rows) and dice.random() < 0.6:
            rows[at] = (rows[at][0], value(dice))
        elif rows and at < len(rows) and dice.random() < 0.3:
            del rows[at]
        elif new:
            rows.insert(at, (dice.choice(new), value(dice)))
    return dict(rows)


def json_text(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


def toml_text(document: dict[str, Any]) -> bytes:
    rows = [(key, json.dumps(one)) for key, one in document.items()]
    rows = [(key, one) for key, one in rows if "null" not in one and "{" not in one]
    return ("[table]\n" + "".join(f"{key} = {one}\n" for key, one in rows)).encode()


def read_json(text: bytes) -> None:
    def pairs(rows: list[tuple[str, Any]]) -> None:
        assert len(dict(rows)) == len(rows), "a key is there twice"

    json.loads(text, object_pairs_hook=pairs)


def read_toml(text: bytes) -> None:
    tomllib.loads(text.decode())


FORMS = {
    "package.json": (json_text, read_json),
    "settings.toml": (toml_text, read_toml),
}


def conflict(name: str, seed: int) -> FileConflict:
    write, _ = FORMS[name]
    dice = random.Random(seed)
    base = {key: value(dice) for key in dice.sample(KEYS, dice.randrange(1, 5))}
    texts = [write(each) for each in (base, changed(base, dice), changed(base, dice))]
    sides = [FileSide(path=name.encode(), mode="100644", blob=str(n), content=text)
             for n, text in enumerate(texts)]  # fmt: skip
    return FileConflict(
        path=name.encode(),
        kind=ConflictKind.CONTENTS,
        base=sides[0],
        target=sides[1],
        incoming=sides[2],
    )


def broken(name: str, text: TextMerge, accepts: Accepts | None) -> list[Proposal]:
    """The proposals with which the file cannot be read, whatever side the other hunks are."""
    _, read = FORMS[name]

    def is_read(hunk: ConflictHunk, offer: Proposal) -> bool:
        for at in (1, 2):  # target and incoming
            whole = text.render(
                lambda one, at=at: offer.text if one.key == hunk.key else b"".join(one[at + 1])  # type: ignore[misc]
            )
            try:
                read(whole)
            except (ValueError, AssertionError):
                continue
            return True
        return False

    return [
        offer
        for hunk in text.hunks
        for offer in propose(hunk, accepts=accepts)
        if not is_read(hunk, offer)
    ]


@pytest.mark.parametrize("name", FORMS)
def test_no_proposal_makes_two_documents_that_can_be_read_one_that_cannot(name: str):
    offered = 0
    for seed in range(SEEDS):
        made = conflict(name, seed)
        if made.text is not None:
            assert broken(name, made.text, reads_still(made)) == [], seed
            offered += sum(len(propose(h, accepts=reads_still(made))) for h in made.hunks)
    assert offered > SEEDS // 10, "good ones are still offered"


@pytest.mark.parametrize("name", FORMS)
def test_without_the_guards_some_proposals_are_nonsense(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ideas_room, "writes_twice", lambda *_: False)
    texts = [text for seed in range(SEEDS) if (text := conflict(name, seed).text) is not None]
    assert any(broken(name, text, None) for text in texts)


SETTINGS = {
    "json": ('  "{}": {},\n', ["size", "name"]),
    "the last of an object": ('  "{}": {}\n', ["size", "name"]),
    "yaml": ("{}: {}\n", ["size", "log-level"]),
    "toml": ("{} = {}\n", ["size", "log.level"]),
    "ini": ("{}={}\n", ["size", "name"]),
    "single quotes": ("    '{}': {},\n", ["size", "name"]),
    "go or css": ("\t{}: {},\n", ["size", "name"]),
}


@pytest.mark.parametrize("form", SETTINGS)
@pytest.mark.parametrize("base", ["", "1"])
def test_one_key_with_two_values_is_never_written_twice(form: str, base: str):
    """Among neighbors in alphabetical order too, where a union of lines looks surest."""
    line, (key, other) = SETTINGS[form]
    around = [line.format(name, "0") for name in ("aa", "bb", "yy", "zz")]

    def text(*rows: str) -> bytes:
        return "".join((*around[:2], *rows, *around[2:])).encode()

    old = text(line.format(key, base)) if base else text()
    for mine, theirs in (("2", "3"), ("[2]", "[3]"), ("alpha", "beta"), ("2", "'two'")):
        for more in ([], [line.format(other, "7")]):
            sides = text(line.format(key, mine), *more), text(line.format(key, theirs))
            for hunk in merge_texts(old, *sides).hunks:
                for offer in propose(hunk):
                    assert offer.text.count(key.encode()) == 1, offer


@pytest.mark.parametrize(
    "block",
    [
        '  {{\n    "name": "{0}"\n  }},\n',
        "- name: {0}\n  size: 1\n",
        "[{0}]\nsize = 1\n",
        "[[bin]]\nname = '{0}'\n",
        "{0}:\n  size: 1\n",
        "if {0}:\n    x = 1\nelse:\n    x = 2\n",
    ],
)
def test_like_keys_of_different_blocks_are_no_repetition(block: str):
    both = block.format("a") + block.format("b")
    hunk = one_hunk("", block.format("a"), block.format("b"))
    assert not writes_twice(hunk, both.encode())
    assert writes_twice(one_hunk("", "  size: 1\n", "  size: 2\n"), b"  size: 1\n  size: 2\n")
