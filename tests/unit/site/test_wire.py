"""All that can be asked of a far half can be written down: its arguments, and its answer."""

import pytest

from engine.site import wire
from engine.site.far import CALLS


@pytest.mark.parametrize("name", CALLS)
def test_a_call_can_be_written_down(name: str) -> None:
    act = CALLS[name]
    form = wire._form(act)
    given = set(form.signature.parameters) - {"self"}
    assert set(form.codecs) == given
