"""Themes are read, filled up, measured; a theme that cannot be read well is refused."""

from pathlib import Path

import pytest
from textual.color import Color

from tui import theming
from tui.ink import Ink, Role
from tui.kit.palette import Palette
from tui.theming import ThemeRefused, built_in, contrast, load_all, mix, parse


@pytest.mark.parametrize("name", theming.BUILT_IN)
def test_every_theme_that_ships_has_every_role_and_can_be_read(name: str):
    theme = built_in(name)
    assert set(theme.roles) == set(theming.ROLES)
    assert theming.contrast_problems(theme) == []
    assert all(Color.parse(value) for value in theme.as_textual().variables.values())


def test_roles_of_ink_and_of_themes_are_the_same():
    assert {role.value for role in Role} == set(theming.ROLES) | {"meter", "strip", "accent_deep"}


def test_a_theme_fills_what_it_leaves_out_from_its_base():
    theme = parse('name = "mine"\n[roles]\naccent = "#80ffee"\n', "mine.toml")
    assert theme.roles["accent"] == "#80ffee"
    assert theme.roles["text"] == built_in("loom").roles["text"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "mine"\n[roles]\naccent = "red"\n', "accent: 'red' is not a color"),
        ('name = "mine"\n[roles]\nacent = "#000000"\n', "unknown role 'acent'"),
        ('name = "My Theme"\n', "`name` must be"),
        ('name = "mine"\ncolor = 1\n', "unknown key 'color'"),
        ('name = "mine"\ndark = "yes"\n', "`dark` must be true or false"),
        ('name = "mine"\nbase = "neon"\n', "`base` must be one of"),
        ('name = "mine"\nroles = 1\n', "`roles` must be a table"),
        ("name = ", "not TOML"),
        ('name = "mine"\n[roles]\ntext = "#444444"\n', "text: text on background has contrast"),
        ('name = "mine"\n[roles]\nmuted = "#444444"\n', "muted: muted on background"),
        ('name = "mine"\n[roles]\nfailed = "#552222"\n', "state: failed on background"),
        ('name = "mine"\n[roles]\non_fill = "#ff7279"\n', "text on a fill"),
        ('name = "mine"\n[roles]\nkeyword = "#333333"\n', "syntax: keyword"),
    ],
)
def test_a_theme_is_refused_with_the_reason(text: str, said: str):
    with pytest.raises(ThemeRefused) as refused:
        parse(text, "mine.toml")
    assert any(said in str(problem) for problem in refused.value.problems)


def test_high_contrast_is_held_to_a_stricter_rule():
    colors = built_in("loom").roles
    text = "\n".join(f'{role} = "{value}"' for role, value in colors.items())
    with pytest.raises(ThemeRefused):
        parse(f'name = "mine"\nis_high_contrast = true\n[roles]\n{text}\n', "mine.toml")


def test_a_folder_of_themes_gives_the_good_ones_and_names_the_bad_ones(tmp_path: Path):
    (tmp_path / "good.toml").write_text('name = "good"\n', "utf-8")
    (tmp_path / "bad.toml").write_text('name = "bad"\n[roles]\nx = 1\n', "utf-8")
    (tmp_path / "worse.toml").write_bytes(b"\xff\xfe")
    themes, problems = load_all(tmp_path)
    assert "good" in themes
    assert "bad" not in themes
    assert {problem.where for problem in problems} == {"bad.toml", "worse.toml"}


def test_contrast_is_the_one_of_the_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_tones_are_mixed():
    assert mix("#000000", "#ffffff", 0.5) == "#808080"


def test_plain_styles_have_no_color_at_all():
    palette = Palette(built_in("loom"), is_plain=True)
    for ink in (
        Ink(Role.FAILED),
        Ink(Role.ON_FILL, Role.FAILED, bold=True),
        Ink(ground=Role.SELECTION),
    ):
        style = palette.style(ink)
        assert style.color is None
        assert style.bgcolor is None
    assert palette.style(Ink(Role.ON_FILL, Role.FAILED)).reverse
    assert palette.style(Ink(ground=Role.ADDED_WORD)).underline
    assert not palette.style(Ink(Role.MUTED)).dim


def test_below_truecolor_line_grounds_fall_away_and_words_stay():
    palette = Palette(built_in("loom"), has_truecolor=False)
    assert palette.style(Ink(ground=Role.ADDED_GROUND)).bgcolor == palette.paper.bgcolor
    word = palette.style(Ink(ground=Role.ADDED_WORD)).bgcolor
    assert word is not None
    assert word.number == 22
