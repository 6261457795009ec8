"""No secret survives redaction, whatever stands around it, and nothing else is touched."""

import base64
import json
import string
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.redaction import Redactor, secret_values

ROOT = Path(__file__).parents[2]
ALNUM = string.ascii_letters + string.digits


def of(alphabet: str, least: int, most: int | None = None) -> st.SearchStrategy[str]:
    return st.text(alphabet=alphabet, min_size=least, max_size=most or least)


def after(lead: str, rest: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return rest.map(lambda text: lead + text)


def _pem(body: list[str]) -> str:
    lines = "\n".join(body)
    return f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"


TOKENS: dict[str, st.SearchStrategy[str]] = {
    "aws-key": after("AKIA", of(string.ascii_uppercase + "234567", 16)),
    "github-token": after("ghp_", of(ALNUM, 36)) | after("github_pat_", of(ALNUM + "_", 22, 82)),
    "gitlab-token": after("glpat-", of(ALNUM, 20)),
    "anthropic-key": after("sk-ant-api03-", of(ALNUM + "-_", 40, 95)),
    "openai-key": after("sk-", of(ALNUM, 48)) | after("sk-proj-", of(ALNUM + "-_", 40, 150)),
    "slack-token": after("xoxb-", of(ALNUM + "-", 20, 60)),
    "google-key": after("AIza", of(ALNUM + "-_", 35)),
    "npm-token": after("npm_", of(ALNUM, 36)),
    "pypi-token": after("pypi-", of(ALNUM + "-_", 60, 170)),
    "stripe-key": after("sk_live_", of(ALNUM, 24, 99)),
    "huggingface-token": after("hf_", of(ALNUM, 34)),
    "jwt": st.tuples(of(ALNUM, 10, 40), of(ALNUM, 10, 40), of(ALNUM, 10, 40)).map(
        lambda parts: f"eyJ{parts[0]}.eyJ{parts[1]}.{parts[2]}"
    ),
    "private-key": st.lists(of(ALNUM + "+/", 64), min_size=1, max_size=20).map(_pem),
}
AROUND = st.text(
    alphabet=st.sampled_from(" \n\t.,:;()[]{}<>'\"|!?äé日") | st.sampled_from(" word"), max_size=30
)


@st.composite
def secrets(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.sampled_from(sorted(TOKENS)))
    return kind, draw(TOKENS[kind])


def survives(secret: str, text: str) -> bool:
    return any(len(line) > 7 and line in text for line in secret.split("\n")[1:-1] or [secret])


@given(found=secrets(), before=AROUND, behind=AROUND)
def test_no_token_survives_in_any_text(found: tuple[str, str], before: str, behind: str):
    _, secret = found
    whole = f"{before} {secret} {behind}"
    redactor = Redactor()
    text = redactor.text(whole)
    assert not survives(secret, text)
    assert text.startswith(f"{before} [redacted ")
    assert text.endswith(f" {behind}")
    assert text.count("\n") == whole.count("\n")
    assert redactor.text(text) == text
    assert not survives(secret, redactor.data(whole.encode()).decode())
    (value,) = redactor.json(json.loads(json.dumps([{"a": whole}])))
    assert not survives(secret, value["a"])


@given(found=secrets(), before=st.sampled_from(["1", "_", "KEY_", "\\n", "\\t", "é"]))
def test_a_token_is_found_behind_a_digit_or_an_escaped_line_end(
    found: tuple[str, str], before: str
):
    assert not survives(found[1], Redactor().text(f"{before}{found[1]} end"))


@given(found=secrets(), cuts=st.lists(st.integers(0, 400), max_size=8), glue=st.just(""))
def test_no_token_survives_in_pieces(found: tuple[str, str], cuts: list[int], glue: str):
    kind, secret = found
    whole = f"told: {secret} and on"
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    parts = [whole[a:b] for a, b in pairwise(places)]
    out = Redactor().texts(parts, glue)
    assert len(out) == len(parts)
    assert not survives(secret, "".join(out))
    assert "".join(out).replace("\n", "") == f"told: [redacted {kind} 1] and on"


@given(
    value=st.text(min_size=8, max_size=60).filter(lambda text: len(text.strip()) >= 8),
    before=AROUND,
    behind=AROUND,
)
def test_no_value_of_a_variable_survives_in_any_form(value: str, before: str, behind: str):
    redactor = Redactor({"DB_PASS": value})
    bare = value.strip()
    forms = [bare, json.dumps(bare)[1:-1], base64.b64encode(bare.encode()).decode()]
    for form in forms:
        assert form not in redactor.text(f"{before}{form}{behind}").replace("[redacted", "")
        assert form.encode() not in redactor.data(f"{before}{form}{behind}".encode())


@given(found=secrets(), other=secrets())
def test_the_same_secret_is_recognized_as_the_same(found: tuple[str, str], other: tuple[str, str]):
    kind, secret = found
    redactor = Redactor()
    first, again, third = redactor.texts([secret, secret, other[1]], " | ")
    assert first.strip("\n") == again.strip("\n") == f"[redacted {kind} 1]"
    assert (third.strip("\n") == first.strip("\n")) == (other == found)
    assert redactor.counts.total() == 3


@given(text=st.text(alphabet=ALNUM + " .,:;=/()\n", max_size=200))
def test_short_words_are_let_be(text: str):
    words = " ".join(word[:7] for word in text.split(" "))
    assert Redactor().text(words) == words


HARMLESS = [
    "commit 5f2b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b",
    "3b241101-e2bb-4255-8caf-4136c566a962",
    "sha512-VmBOkEkZ4qQ2vA8cOM9GZ0gGmCBcUwDPKxV4wjdyzM0eFZQg6nSGZHk0w==",
    '<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf">',
    "tokens: 123456, token = self.tokens2, password: str = read_password()",
    "https://example.com/a:b@c and git@github.com:owner/name.git",
    "author: Ada <ada@example.com>",
    "SSH_AUTH_SOCK is set; see TOKEN_FILE",
    "index 83db48f..bf269f4 100644",
    "secret: [redacted github-token 1]",
    "task-aaaabbbbccccddddeeeeffff and disk-1a2b3c4d5e6f7a8b9c0d1e2f",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_is_let_be(text: str):
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.json({"a": [text]}) == {"a": [text]}
    assert not redactor.counts


NAMED = [
    ("password='hunter2pass9'", "hunter2pass9"),
    ('{"api_key": "Zk39dKe02kdLs9"}', "Zk39dKe02kdLs9"),
    ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzAbC12", "wJalrXUtnFEMI"),
    ("Authorization: Bearer a1b2c3d4e5", "a1b2c3d4e5"),
    ("curl -H 'x-api-key: 0123456789abc'", "0123456789abc"),
    ("postgres://me:s3cr3t@db/x", "s3cr3t"),
    ("https://ghx_abcdefghijklmnopqrst@github.com/a", "ghx_abcdefghijklmnopqrst"),
]


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_what_stands_next_to_a_name_is_found(text: str, secret: str):
    assert secret not in Redactor().text(text)


def test_a_value_under_a_name_is_found_in_json():
    redacted = Redactor().json({"client_secret": "q8Zt20xLmP4w", "name": "q8Zt20xLmP4w"})
    assert redacted == {"client_secret": "[redacted named-secret 1]", "name": "q8Zt20xLmP4w"}


def test_variables_that_were_passed_on_or_are_called_secret_are_known():
    environ = {
        "MY_TOKEN": "abcdef",
        "PASSED_ON": "12345678",
        "SHORT": "1",
        "OTHER": "123456789",
        "SSH_AUTH_SOCK": "/tmp/ssh-x/agent",  # noqa: S108 - a path of no file
        "PWD": "/home/me/project",
    }
    assert set(secret_values(environ, ["PASSED*", "SHORT"])) == {"MY_TOKEN", "PASSED_ON"}


_ABOUT_SECRETS = {
    "tests/e2e/test_export_story.py",
    "tests/integration/test_git_workspace.py",
    "tests/integration/test_history_contract.py",
    "tests/unit/history/test_address.py",
    "tests/unit/test_hostile_texts.py",
}


def test_files_of_this_repository_are_hardly_touched():
    """A measure of false alarms: eleven megabytes of code, pictures and pages."""
    redactor, touched = Redactor(), set()
    for folder in ("engine", "tui", "themes", "docs", "tests", "screenshots"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path != Path(__file__):
                data = path.read_bytes()
                touched |= {str(path.relative_to(ROOT))} if redactor.data(data) != data else set()
    assert touched <= _ABOUT_SECRETS
