"""The first key that fingers from lazygit, vim, k9s or tmux try does it, or says which key does."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.consoles import opened
from tests.support.world import csvlite
from tui.keys import IDEAS, actions_on, default_keymap
from tui.keys.guesses import GUESSED

pytestmark = pytest.mark.anyio
_TABLE = Path(__file__).with_name("key_guesses.txt")
_AT = {
    "running": "implement/worker_1",
    "asks": "implement/worker_2",
    "failed": "port/worker_2",
    "review": "port/worker_1",
}
_INTENTS, _MET = 60, 54


class Guess(NamedTuple):
    """One row of the table; a key is met that does what is wanted, or names the one that does."""

    is_met: bool
    who: str
    wants: str
    screen: str
    worker: str
    keys: tuple[str, ...]
    shows: str


def _guess(line: str) -> Guess:
    mark, cells = line[0], [cell.strip() for cell in line[1:].split(" | ")]
    who, wants, place, keys, shows = (*cells[:4], " | ".join(cells[4:]))
    screen, worker = place.split()
    return Guess(mark == "+", who, wants, screen, _AT[worker], tuple(keys.split()), shows)


GUESSES = [_guess(line) for line in _TABLE.read_text().splitlines() if line[:1] in {"+", "-"}]


def test_most_of_the_first_keys_are_met():
    wanted = {(guess.who, guess.wants) for guess in GUESSES}
    assert len(wanted) == len(GUESSES) >= _INTENTS
    assert sum(guess.is_met for guess in GUESSES) >= _MET


@pytest.mark.parametrize("guess", GUESSES, ids=lambda guess: f"{guess.who}: {guess.wants}")
async def test_a_first_key_does_what_the_table_says(guess: Guess):
    async with opened(csvlite()) as console:
        console.app.session.worker = guess.worker
        if guess.screen != "fleet":
            await console.do(f"go_{guess.screen}")
        await console.press(*guess.keys)
        await console.shows(guess.shows)


@pytest.mark.parametrize("key", ["f7", "ctrl+underscore", "ß"])
async def test_a_key_without_a_meaning_says_so(key: str):
    async with opened(csvlite()) as console:
        await console.keys(key)
        await console.shows("not Latin" if key == "ß" else "does nothing here")


def test_no_guess_is_of_a_key_that_has_a_meaning_on_fleet():
    keymap = default_keymap()
    bound = {key for action in actions_on("fleet") for key in keymap.of(action.id)}
    assert GUESSED.keys() & bound == set()
    assert set(GUESSED.values()) <= IDEAS.keys()
