"""Find secrets in text that is exported, and replace each by the name of its kind.

Pure: text in, text out. A secret is the value of a variable that agents were given, a token of a
well-known shape, or a random-looking word next to a name such as `password`. The same secret gets
the same placeholder, `[redacted github-token 1]`, so that a reader still sees what belongs
together. Line ends inside a secret are kept: lines keep their numbers.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import log2
from typing import Any
from urllib.parse import quote

_PEM = r"PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = (
    rf"-----BEGIN [A-Z0-9 ]*{_PEM}"
    # A key holds no other: without that, each beginning would be read to the end of the text.
    rf"(?:(?:[^-]|-(?!----BEGIN )){{0,20000}}?-----END [A-Z0-9 ]*{_PEM}|[A-Za-z0-9+/=\s\\:,-]*)"
)
_BEGIN = r"(?:(?<![A-Za-z])|(?<=\\[nrtbf]))"
"""Not within a word; a digit, an underscore or an escaped line end may stand before a token."""
_SHAPES = {
    "aws-key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])",
    "github-token": r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})",
    "gitlab-token": r"gl(?:pat|ptt|dt|rt|cbt|soat)-[\w-]{20,}",
    "anthropic-key": r"sk-ant-[\w-]{16,}",
    "openai-key": r"sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1)-[\w-]{16,}|[A-Za-z0-9]{20,})",
    "slack-token": r"xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{10,}"
    r"|hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    "google-key": r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}",
    "npm-token": r"npm_[A-Za-z0-9]{36}",
    "pypi-token": r"pypi-[\w-]{50,}",
    "stripe-key": r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,}",
    "sendgrid-key": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "huggingface-token": r"hf_[A-Za-z0-9]{30,}",
    "docker-token": r"dckr_pat_[\w-]{20,}",
    "digitalocean-token": r"do[opr]_v1_[a-f0-9]{64}",
    "vault-token": r"hv[sbr]\.[\w-]{20,}",
    "age-key": r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    "telegram-token": r"(?<!\d)\d{8,10}:AA[\w-]{33}",
}
# The secret is a part of these: the group of the same name.
_PLACED = {
    # Whether there is one is looked at only once in each word, however often it says "eyJ".
    "jwt": r"(?<![\w-])(?=[\w-]+\.eyJ[\w-]{{4,}}\.)[\w-]*?"
    rf"{_BEGIN}(?P<{{}}>eyJ[\w-]{{{{8,}}}}\.eyJ[\w-]{{{{4,}}}}\.[\w-]*)",
    "authorization": r"(?i:authorization|x-api-key|x-auth-token|private-token)"
    r"[\"'\\]*\s*[:=]\s*[\"'\\]*(?:(?i:bearer|basic|token|digest)\s+)?(?P<{}>[\w.~+/=-]{{8,}})",
    "bearer-token": r"\b[Bb]earer\s+(?P<{}>[\w.~+/=-]{{20,}})",
    "url-password": r"\b[A-Za-z][A-Za-z0-9+.-]{{0,40}}://"
    r"(?:[^\s/:@\"'<>\[\]{{}}]*:(?P<{}>[^\s/@\"'<>\[\]{{}}]+)@)",
    "url-token": r"\bhttps?://(?P<{}>[A-Za-z0-9_-]{{20,}})@",
}


_HINTS = {
    "private-key": ("private key",),
    "aws-key": ("akia", "asia", "abia", "acca"),
    "github-token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "gitlab-token": ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-"),
    "anthropic-key": ("sk-ant-",),
    "openai-key": ("sk-",),
    "slack-token": ("xox", "xapp-", "hooks.slack.com"),
    "google-key": ("aiza", "ya29.", "gocspx-"),
    "jwt": ("eyj",),
    "npm-token": ("npm_",),
    "pypi-token": ("pypi-",),
    "stripe-key": ("_live_", "_test_", "whsec_"),
    "sendgrid-key": ("sg.",),
    "huggingface-token": ("hf_",),
    "docker-token": ("dckr_pat_",),
    "digitalocean-token": ("_v1_",),
    "vault-token": ("hvs.", "hvb.", "hvr."),
    "age-key": ("age-secret-key-1",),
    "telegram-token": (":aa",),
    "authorization": ("authorization", "x-api-key", "x-auth-token", "private-token"),
    "bearer-token": ("bearer",),
    "url-password": ("://",),
    "url-token": ("://",),
}
"""A text that has none of these, in lower case, has no secret of the kind; looking is cheap."""
_RULES = {
    kind: re.compile(shape)
    for kind, shape in (
        ("private-key", f"(?P<secret>{_PRIVATE_KEY})"),
        *((kind, f"{_BEGIN}(?P<secret>{shape})") for kind, shape in _SHAPES.items()),
        *((kind, shape.format("secret")) for kind, shape in _PLACED.items()),
    )
}
KEY_LIKE = re.compile(
    r"(?i)(?:api|access|private|secret|signing|encryption|master|account|shared)[_-]?key"
    r"|secret|token|passw(?:or)?d|passphrase|credential|\bpwd\b|_pwd|(?<![a-z])auth(?!or)"
)
"""Names of what is secret: `API_KEY`, `dbPassword`, `auth_token`."""
_NAMED = re.compile(
    rf"(?P<name>{KEY_LIKE.pattern.removeprefix('(?i)')})[\w.-]{{0,80}}"
    r"[\"'\\]*\s*(?:=>|:=|[:=])\s*(?P<open>\\?[\"']?)"
    r"(?P<value>[A-Za-z0-9+/=_.~!@#$%^&*-]{8,})",
    re.IGNORECASE,
)
_PLAIN_NAME = re.compile(r"[A-Za-z_$][a-zA-Z_]*\d{0,2}(?:\.[A-Za-z_$][a-zA-Z_]*\d{0,2})*")
_SHORTEST_SECRET, _SHORTEST_VALUE, _SHORTEST_NAMED = 6, 8, 12
_LEAST_BITS = 2.8


def is_key_like(name: str) -> bool:
    """Return True if a variable or key of that name holds a secret."""
    is_place = name == "PWD" or name.upper().endswith(("_SOCK", "_FILE", "_PATH"))
    return bool(KEY_LIKE.search(name)) and not is_place


def _is_random(text: str) -> bool:
    """Return True if a word looks drawn by lot: letters and digits, hardly any twice."""
    has_both = any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
    counts = Counter(text)
    bits = -sum(n / len(text) * log2(n / len(text)) for n in counts.values())
    return has_both and bits >= _LEAST_BITS and not _PLAIN_NAME.fullmatch(text)


@dataclass(frozen=True, order=True)
class _Span:
    """A secret and where it stands."""

    start: int
    end: int
    kind: str
    secret: str


def secret_values(environ: Mapping[str, str], passed_on: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables whose values must not be given away, by name.

    Those are the ones that were passed on by name, unless their value is too short to be one, and
    every other one whose name says that it is secret.
    """
    passed = [re.compile(re.escape(name).replace(r"\*", ".*")) for name in passed_on]
    found = {}
    for name, value in environ.items():
        is_passed = any(pattern.fullmatch(name) for pattern in passed)
        shortest = _SHORTEST_SECRET if is_key_like(name) else _SHORTEST_VALUE
        if (is_passed or is_key_like(name)) and len(value) >= shortest:
            found[name] = value
    return found


def _forms(value: str) -> set[str]:
    """Return a value as it may be written: plain, in JSON, in a URL, in base64."""
    bare = value.strip()
    encoded = base64.b64encode(bare.encode(errors="surrogateescape")).decode()
    return {
        bare,
        json.dumps(bare)[1:-1],
        json.dumps(bare, ensure_ascii=False)[1:-1],
        quote(bare, safe="", errors="surrogateescape"),
        encoded.rstrip("="),
    }


@dataclass
class Redactor:
    """Replaces secrets, and counts them by kind since `counts` was read last.

    Attributes:
        values: Secrets that are known, by the name of their variable.
        counts: How many were replaced, by kind.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        forms = {form: name for name, value in self.values.items() for form in _forms(value)}
        self._names = {form: name for form, name in forms.items() if len(form) >= _SHORTEST_SECRET}
        # In bytes that are read as latin-1 a value of other letters looks like this.
        for form, name in list(self._names.items()):
            raw = form.encode(errors="surrogateescape").decode("latin-1")
            self._names.setdefault(raw, name)
        longest = sorted(self._names, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest))) if longest else None
        self._numbers: dict[str, dict[str, int]] = {}

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        return self.texts([text])[0]

    def data(self, data: bytes) -> bytes:
        """Return bytes of any encoding without their secrets."""
        return self.text(data.decode("latin-1")).encode("latin-1", "replace")

    def texts(self, parts: Sequence[str], glue: str = "") -> list[str]:
        """Return pieces of one text without its secrets, also where one lies in several pieces."""
        whole = glue.join(parts)
        spans = self._spans(whole)
        if not spans:
            return list(parts)
        starts = list(accumulate((len(part) + len(glue) for part in parts), initial=0))
        out = []
        for part, begin in zip(parts, starts, strict=False):
            out.append("".join(self._cut(whole, spans, begin, begin + len(part))))
        return out

    def _cut(self, whole: str, spans: Sequence[_Span], begin: int, end: int) -> Iterator[str]:
        """One piece of the whole; a secret is named in the piece where it begins."""
        here = begin
        for span in spans:
            if span.end <= begin or span.start >= end:
                continue
            yield whole[here : max(span.start, here)]
            if span.start >= begin:
                yield self._placeholder(span)
            here = min(span.end, end)
            yield "\n" * whole.count("\n", max(span.start, begin), here)
        yield whole[here:end]

    def _placeholder(self, span: _Span) -> str:
        self.counts[span.kind] += 1
        if span.kind == "variable":
            return f"[redacted ${span.secret}]"
        numbers = self._numbers.setdefault(span.kind, {})
        number = numbers.setdefault(span.secret, len(numbers) + 1)
        return f"[redacted {span.kind} {number}]"

    def _spans(self, text: str) -> list[_Span]:
        """Return where the secrets are, in order; where two overlap they are one."""
        found = sorted((*self._known_spans(text), *_shaped_spans(text), *_named_spans(text)))
        merged: list[_Span] = []
        for span in found:
            last = merged[-1] if merged else None
            if last is None or span.start >= last.end:
                merged.append(span)
            elif span.end > last.end:
                secret = last.secret if last.kind == "variable" else text[last.start : span.end]
                merged[-1] = _Span(last.start, span.end, last.kind, secret)
        return merged

    def _known_spans(self, text: str) -> Iterator[_Span]:
        for match in self._known.finditer(text) if self._known else ():
            yield _Span(match.start(), match.end(), "variable", self._names[match[0]])

    def json(self, value: Any) -> Any:
        """Return a JSON value without the secrets in its texts and keys."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.json(item) for item in self._joined(value)]
            case dict():
                return {self._key(key): self._under(key, item) for key, item in value.items()}
            case _:
                return value

    def _key(self, key: str) -> str:
        return key if _PLAIN_NAME.fullmatch(key) else self.text(key)

    def _joined(self, items: list[Any]) -> list[Any]:
        """Return lines of one text, each with more about it, without a secret of several lines."""
        if len(items) < 2 or not all(_has_text(item) for item in items):  # noqa: PLR2004
            return items
        texts = self.texts([item["text"] for item in items], "\n")
        return [{**item, "text": text} for item, text in zip(items, texts, strict=True)]

    def _under(self, key: str, value: Any) -> Any:
        """Return the value of a key; a random word under a key-like one is a secret."""
        redacted = self.json(value)
        is_whole = isinstance(value, str) and redacted == value
        if is_whole and is_key_like(key) and len(value) >= _SHORTEST_NAMED and _is_random(value):
            return self._placeholder(_Span(0, len(value), "named-secret", value))
        return redacted


def _has_text(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("text"), str)


def _shaped_spans(text: str) -> Iterator[_Span]:
    lower = text.lower()
    for kind, hints in _HINTS.items():
        if any(hint in lower for hint in hints):
            for match in _RULES[kind].finditer(text):
                yield _Span(*match.span("secret"), kind, match["secret"])


def _named_spans(text: str) -> Iterator[_Span]:
    for match in _NAMED.finditer(text):
        value = match["value"].rstrip(".")
        is_password = "pass" in match["name"].lower()
        shortest = _SHORTEST_VALUE if is_password and match["open"] else _SHORTEST_NAMED
        if len(value) >= shortest and _is_random(value):
            start = match.start("value")
            yield _Span(start, start + len(value), "named-secret", value)
