"""Test whether a text that is given is a manifest or a prompt."""

import pytest

from engine.api import is_manifest


@pytest.mark.parametrize(
    "text",
    [
        "pipelines:\n  - name: p\n",
        "# mine\n---\nruntime: {auto_merge: true}\nagents:\n  a: {}\npipline:\n- name: p\n".replace(
            "\n- ", "\n  - "
        ),
        "agents: {}\n\npipelines: [{name: p}]  # all of it",
    ],
)
def test_a_manifest_is_known_by_its_keys_also_with_mistakes_in_it(text: str):
    assert is_manifest(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Fix the parser.",
        "agents: make them faster",
        "Write a plait.yaml like this:\npipelines:\n  - name: p\n",
        "pipelines:\n  - name: p\nThat is what is wrong, fix it.",
        "notes:\n  nothing of ours\n",
    ],
)
def test_a_prompt_that_speaks_of_manifests_stays_a_prompt(text: str):
    assert not is_manifest(text)
