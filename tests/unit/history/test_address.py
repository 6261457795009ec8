"""A repository has one address, whoever cloned it and however."""

import pytest

from engine.history.feeder import address


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("git@example.org:team/parser.git", "example.org/team/parser"),
        ("https://example.org/team/parser", "example.org/team/parser"),
        ("https://me:hush@example.org/team/parser.git/", "example.org/team/parser"),
        ("ssh://git@example.org:2222/team/parser.git", "example.org/team/parser"),
        ("/srv/git/parser.git", "/srv/git/parser"),
        ("", ""),
    ],
)
def test_an_address_has_no_scheme_and_no_password(url: str, told: str):
    assert address(url) == told
