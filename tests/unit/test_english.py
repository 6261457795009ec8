"""The pages are in plain English, as docs/style.md says, and the commands in them exist."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from tui.commands.base import parser_of
from tui.commands.names import COMMANDS

ROOT = Path(__file__).parents[2]
STYLE = ROOT / "docs/style.md"
HEADLESS = ROOT / "docs/headless.md"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
OWN = Path(__file__)
SOURCES = [
    path
    for folder in ("engine", "tui", "themes", "tests")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".toml", ".tcss"} and "fixtures" not in path.parts
]
MOST_WORDS = 30
_BRITISH = re.compile(
    r"behaviour|colour|honour|neighbour|favour(?!ed( by \w+)?[\",])|\bgrey|\bfor ever\b|licence|"
    r"(journ|sign|tot)alled|(lab|mod)elled|analyse|artefact|learnt|misspelt|"
    r"(final|initial|normal|organ|recogn|serial|summar|synthes)is(e|ed|es|ing)\b",
    re.IGNORECASE,
)
"""`favoured` is the name of a kind of proposal, in tables and on the wire."""
_OF_GIT = re.compile(
    r"\bgit director(y|ies)|directory rename|(directory/|file/|file or )\w+|safe\.directory|`[^`]*`"
)
"""Names that git has given, and code."""
_FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_CONSOLE = re.compile(r"^ *```(?:console\n|\n(?=plait [a-z]))(.*?)^ *```", re.DOTALL | re.MULTILINE)
_DRAWN = re.compile(r"<!--.*?-->", re.DOTALL)
_BULLET = re.compile(r"([-*]|\d+\.) ")
_END = re.compile(r"(?<=[.!?:;])[\"')]*\s+")


def blocks(text: str) -> Iterator[str]:
    """Yield every paragraph, bullet and cell of a page, without code."""
    lines: list[str] = []
    for line in [*_DRAWN.sub("", _FENCE.sub("", text)).splitlines(), ""]:
        bare = line.strip()
        is_new = not bare or bare.startswith(("|", "#")) or _BULLET.match(bare)
        if is_new and lines:
            yield " ".join(lines)
            lines = []
        if bare.startswith("|"):
            yield from re.split(r"(?<!\\)\|", bare.strip("|"))
        elif bare and not bare.startswith("#"):
            lines.append(bare)


def sentences(text: str) -> Iterator[str]:
    """Yield every sentence of a page; a name in code counts as one word."""
    for block in blocks(text):
        plain = re.sub(r"`[^`]*`", "CODE", block)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("*", "")
        yield from _END.split(plain.strip())


def banned() -> list[str]:
    """Return the words that the style page rules out."""
    table = STYLE.read_text().partition("## Words")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    return [word.strip() for row in rows[1:] for word in row.split(",")]


def slips(text: str) -> list[str]:
    """Return the sentences of a page that break a rule that a machine can hold."""
    return [
        sentence
        for sentence in sentences(text)
        if len(sentence.split()) > MOST_WORDS or has_banned(sentence)
    ]


def has_banned(text: str) -> bool:
    """Return True if a text has a word that the style page rules out."""
    return any_banned().search(_OF_GIT.sub("", text)) is not None


@cache
def any_banned() -> re.Pattern[str]:
    """Return a pattern of the words that the style page rules out."""
    return re.compile(rf"\b({'|'.join(map(re.escape, banned()))})\b", re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_plain_english(page: Path):
    text = page.read_text()
    if page == STYLE:  # it names what it rules out
        text = text.partition("## Words")[0]
    assert slips(text) == []


@pytest.mark.parametrize(
    "slip",
    [
        "A run is taken up again.",
        "| cell | The engine is told. |",
        "It makes a directory.",
        "- " + "word " * (MOST_WORDS + 1),
        "One line of a sentence\nthat goes on " + "and on " * MOST_WORDS,
    ],
)
def test_a_slip_is_noticed(slip: str):
    assert slips(f"A fine sentence.\n\n{slip}\n") != []


def british(text: str) -> list[str]:
    """Return the words of a text that have another spelling in American English."""
    return [found[0] for found in _BRITISH.finditer(text)]


def test_names_and_comments_are_spelled_as_in_america():
    found = {path: british(path.read_text()) for path in (*SOURCES, *PAGES) if path != OWN}
    assert {path: words for path, words in found.items() if words} == {}


def test_a_british_spelling_is_noticed():
    assert british("_COLOURS = 1  # kept for ever, initialised") != []
    assert british('FAVORED = "favoured"  # for every color: "favoured by lines"') == []


def test_code_is_no_english():
    assert slips("A git directory is git's: a `directory` of it is code.") == []
    assert slips("`told` is a name.\n\n```python\ntold = take_up\n```\n") == []


def shown(source: str) -> Iterator[str]:
    """Yield every text of a module that may be shown: of several words, and no docstring."""
    tree = ast.parse(source)
    bare = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in bare:
            yield from [node.value] if " " in node.value else ()


@pytest.mark.parametrize("package", ["engine", "tui"])
def test_what_is_shown_is_in_plain_english(package: str):
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in shown(path.read_text())
        if has_banned(text)
    ]
    assert found == []


def test_a_slip_in_what_is_shown_is_noticed():
    source = """def f():\n    'It is told.'\n    return f'{n} is told ' + 'told'\n"""
    assert list(shown(source)) == [" is told "]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every call of plait in the consoles of a page."""
    for fence in _CONSOLE.findall(text):
        for line in fence.splitlines():
            for call in re.split(r"\s{2,}(?=\$ )", line.strip()):
                words = _words(re.sub(r"^\$ ", "", call))
                if words[:1] == ["plait"] and "…" not in words:
                    yield words[1:]


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    stops = [n for n, word in enumerate(words) if word in {"|", "&&", ">", "2>", ";"}]
    return words[: stops[0]] if stops else words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_on_a_page_is_understood(page: Path):
    for words in commands(page.read_text()):
        if words and words[0] in COMMANDS and "--help" not in words:
            parser_of(words[0])[1].parse_args(words[1:])
        elif words and not words[0].startswith("-"):
            assert (ROOT / words[0]).exists() or words[0] in {"COMMAND", "[REPO]"}, words


def test_the_example_for_ci_is_a_workflow_whose_commands_exist():
    (text,) = re.findall(r"```yaml\n(name: agents\n.*?)```", HEADLESS.read_text(), re.DOTALL)
    workflow = yaml.safe_load(text)
    assert set(workflow) == {"name", True, "permissions", "jobs"}  # YAML reads `on` as true
    (job,) = workflow["jobs"].values()
    steps = job["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert all(
        re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step
    )
    calls = [_words(step["run"])[1:] for step in steps if step.get("run", "").startswith("plait ")]
    assert [call[0] for call in calls] == ["run", "export"]
    for call in calls:
        parser_of(call[0])[1].parse_args(call[1:])


def test_an_option_that_is_gone_is_noticed(capsys: pytest.CaptureFixture[str]):
    gone = "```console\n$ plait status          $ plait land W --gone\n```\n"
    status, land = commands(gone)
    assert status == ["status"]
    with pytest.raises(SystemExit):
        parser_of(land[0])[1].parse_args(land[1:])
    assert "--gone" in capsys.readouterr().err


def test_the_site_leads_to_every_page():
    listed = re.findall(
        r"- (?:plait: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES}
    by_index = {page for page in pages if page.startswith("docs/decisions/")}
    assert {"README.md" if page == "index.md" else page for page in listed} == pages - by_index


def sections(text: str) -> set[str]:
    """Return the names under which links find the sections of a page."""
    heads = re.findall(r"^#+ (.*)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def lost(page: Path, text: str) -> list[str]:
    """Return the links in the text of a page that lead to no page or to no section."""
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text)
    return [
        f"{link}#{name}"
        for link, name in links
        if "://" not in link and not _leads(page.parent / link if link else page, name)
    ]


def _leads(target: Path, name: str) -> bool:
    return target.exists() and (not name or name in sections(target.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_section(page: Path):
    assert lost(page, page.read_text()) == []


def test_a_link_that_leads_nowhere_is_noticed():
    text = "[a](gone.md) [b](style.md#gone) [c](style.md#words) [d](#gone) [e](#rules)"
    assert lost(STYLE, text) == ["gone.md#", "style.md#gone", "#gone"]
