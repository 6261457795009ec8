"""Read and check themes, and turn them into colors; only theme files hold hex values.

A user's theme may leave roles out; the default theme fills them. A theme that cannot be read well
is refused with every reason, and the default stays.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from textual.theme import Theme as TextualTheme

DEFAULT = "loom"
BUILT_IN = ("loom", "linen", "contrast", "clear", "indigo", "walnut")
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")

_GROUNDS = ("background", "surface", "panel", "selection")
_STATES = ("done", "running", "waiting", "failed", "limit", "clash")
_SYNTAX = ("keyword", "string", "comment", "number", "definition", "type")
_WORDS = ("added_word", "removed_word")
_LINE_GROUNDS = ("added_ground", "removed_ground")
ROLES = (
    *_GROUNDS,
    *("line", "text", "muted", "accent", "focus"),
    *_STATES,
    *("added", "removed"),
    *_LINE_GROUNDS,
    *_WORDS,
    *("waiting_fill", "on_waiting", "on_fill"),
    *_SYNTAX,
)
"""Every role that a theme gives a color; some tones are mixed from them."""


class ThemeProblem(NamedTuple):
    """One thing wrong with a theme file."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class ThemeRefused(ValueError):
    """A theme that cannot be used, with every reason."""

    def __init__(self, problems: list[ThemeProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


@dataclass(frozen=True, kw_only=True)
class Theme:
    """A theme's colors by role."""

    name: str
    roles: Mapping[str, str]
    is_dark: bool = True
    is_high_contrast: bool = False
    description: str = ""

    @cached_property
    def colors(self) -> Mapping[str, str]:
        """Every role, the mixed tones included."""
        toned = dict(self.roles)
        gray, ground, text = (toned[r] for r in ("muted", "background", "text"))
        toned["strip"] = mix(gray, ground, 0.25)
        toned["meter"] = mix(gray, text, 0.25)
        toned["accent_deep"] = mix(toned["accent"], ground, 0.4)
        return toned

    def as_textual(self) -> TextualTheme:
        """The same for Textual's own widgets."""
        color = self.colors
        return TextualTheme(
            name=self.name,
            primary=color["accent"],
            accent=color["accent"],
            secondary=color["running"],
            success=color["done"],
            warning=color["waiting"],
            error=color["failed"],
            foreground=color["text"],
            background=color["background"],
            surface=color["surface"],
            panel=color["panel"],
            dark=self.is_dark,
            variables={f"role-{role.replace('_', '-')}": value for role, value in color.items()},
        )


@cache
def built_in(name: str) -> Theme:
    """One of the themes that ship."""
    text = resources.files("themes").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse(text, f"{name}.toml")


def load_all(user_folder: Path | None = None) -> tuple[dict[str, Theme], list[ThemeProblem]]:
    """Every theme by name, the user's over those that ship, and what is wrong with the user's."""
    themes = {name: built_in(name) for name in BUILT_IN}
    problems: list[ThemeProblem] = []
    for path in sorted(user_folder.glob("*.toml")) if user_folder else ():
        try:
            theme = parse(path.read_text(encoding="utf-8"), path.name)
        except ThemeRefused as refused:
            problems += refused.problems
        except (OSError, UnicodeDecodeError) as error:
            problems.append(ThemeProblem(path.name, f"cannot be read: {error}"))
        else:
            themes[theme.name] = theme
    return themes, problems


def parse(text: str, where: str) -> Theme:
    """The theme in a TOML text; raises ThemeRefused with everything that is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ThemeRefused([ThemeProblem(where, f"not TOML: {error}")]) from error
    problems = [ThemeProblem(where, message) for message in _shape_problems(data)]
    if problems:
        raise ThemeRefused(problems)
    given = {name: value.lower() for name, value in data.get("roles", {}).items()}
    missing = set(ROLES) - given.keys()
    base = built_in(data.get("base", DEFAULT)).roles if missing else {}
    theme = Theme(
        name=data["name"],
        roles={**base, **given},
        is_dark=data.get("dark", True),
        is_high_contrast=data.get("is_high_contrast", False),
        description=data.get("description", ""),
    )
    problems = [ThemeProblem(where, message) for message in contrast_problems(theme)]
    if problems:
        raise ThemeRefused(problems)
    return theme


_KEYS = {"name", "description", "dark", "is_high_contrast", "base", "roles"}


def _shape_problems(data: Mapping[str, object]) -> list[str]:
    problems = [f"unknown key {key!r}" for key in data if key not in _KEYS]
    name = data.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problems.append("`name` must be lowercase letters, digits, `-` or `_`")
    problems += [
        f"`{key}` must be true or false"
        for key in ("dark", "is_high_contrast")
        if not isinstance(data.get(key, True), bool)
    ]
    if data.get("base", DEFAULT) not in BUILT_IN:
        problems.append(f"`base` must be one of {', '.join(BUILT_IN)}")
    if not isinstance(data.get("description", ""), str):
        problems.append("`description` must be a string")
    roles = data.get("roles", {})
    if not isinstance(roles, dict):
        return [*problems, "`roles` must be a table of colors"]
    return problems + _role_problems(roles)


def _role_problems(roles: Mapping[str, object]) -> list[str]:
    known = set(ROLES)
    problems = []
    for role, value in roles.items():
        if role not in known:
            problems.append(f"unknown role {role!r}")
        elif not isinstance(value, str) or not _HEX.fullmatch(value):
            problems.append(f"{role}: {value!r} is not a color such as '#57cfc0'")
    return problems


def contrast_problems(theme: Theme) -> list[str]:
    """Every pair of colors that cannot be read well enough, with the figure and the rule."""
    strict = 7.0 if theme.is_high_contrast else 4.5
    rules: list[tuple[str, tuple[str, ...], tuple[str, ...], float]] = [
        ("text", ("text",), (*_GROUNDS, *_LINE_GROUNDS), 7.0),
        ("muted", ("muted",), _GROUNDS, strict),
        ("state", _STATES, _GROUNDS, strict),
        ("accent", ("accent",), _GROUNDS, 4.5),
        ("frames and rules", ("line",), ("background", "surface"), 3.0),
        ("syntax", _SYNTAX, _LINE_GROUNDS, 4.5),
        ("text on a changed word", ("text",), _WORDS, 4.5),
        ("text on a fill", ("on_waiting",), ("waiting_fill",), 4.5),
        ("text on a fill", ("on_fill",), ("clash", "failed"), 4.5),
    ]
    problems = []
    for rule, fronts, grounds, least in rules:
        for front in fronts:
            for ground in grounds:
                found = contrast(theme.roles[front], theme.roles[ground])
                if found < least:
                    problems.append(
                        f"{rule}: {front} on {ground} has contrast {found:.1f}, {least:g} is needed"
                    )
    return problems


def contrast(front: str, ground: str) -> float:
    """The contrast of two colors by the rule of the WCAG: 1 to 21."""
    lighter, darker = sorted((_luminance(front), _luminance(ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _channels(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _luminance(color: str) -> float:
    def linear(channel: int) -> float:
        share = channel / 255
        return share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - WCAG

    red, green, blue = (linear(channel) for channel in _channels(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mix(first: str, second: str, share: float) -> str:
    """The first color with so much of the second in it."""
    mixed = (
        round(one + (two - one) * share)
        for one, two in zip(_channels(first), _channels(second), strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
