"""Twelve conflicts as they come up in real work, each with the result that a reviewer wants."""

from typing import NamedTuple


class Case(NamedTuple):
    """A path on all three sides (no text: no such file), what is wanted, and the keys for it."""

    what: str
    path: str
    base: str | None
    target: str | None
    incoming: str | None
    wanted: str | None
    keys: tuple[str, ...]
    renamed: str = ""
    """The target's name of the file."""


_HEAD = '"""Reads settings."""\n\n'
_FUNC = "def load(path):\n    with open(path) as file:\n        return parse(file.read())\n"
_TAIL = "\n\ndef main():\n    print(load('a'))\n"
_LIST = '{\n  "name": "csvlite",\n  "dependencies": [\n    "anyio",\n    "rich"%s\n  ]\n}\n'
_NEWS = "# Changes\n\n## Unreleased\n\n- Begun.\n"
_LIMIT, _STREAM = "- Limits the size of a block.\n", "- Reads in a stream.\n"
_MOVED = _FUNC.replace("open(path)", "open(path, encoding='utf-8')")
_PAD = "\n\nMAX = 10\nLEAST = 1\nNAME = 'x'\n\n\ndef parse(text):\n    return text.split()\n"

CASES = (
    Case(
        "both sides add to a list of imports",
        "src/a_imports.py",
        _HEAD + "import io\nimport sys\n" + _TAIL,
        _HEAD + "import io\nimport json\nimport sys\n" + _TAIL,
        _HEAD + "import io\nimport re\nimport sys\n" + _TAIL,
        _HEAD + "import io\nimport json\nimport re\nimport sys\n" + _TAIL,
        ("mark",),
    ),
    Case(
        "edits on lines side by side",
        "src/b_adjacent.py",
        "TIMEOUT = 30\nRETRIES = 3\nSIZE = 10\n",
        "TIMEOUT = 60\nRETRIES = 3\nSIZE = 10\n",
        "TIMEOUT = 30\nRETRIES = 5\nSIZE = 10\n",
        "TIMEOUT = 60\nRETRIES = 5\nSIZE = 10\n",
        ("mark",),
    ),
    Case(
        "both sides add a function at the end",
        "src/c_added.py",
        _HEAD + _FUNC,
        _HEAD + _FUNC + "\n\ndef save(path, data):\n    path.write_text(dump(data))\n",
        _HEAD + _FUNC + "\n\ndef check(data):\n    return 'name' in data\n",
        _HEAD
        + _FUNC
        + "\n\ndef save(path, data):\n    path.write_text(dump(data))\n"
        + "\n\ndef check(data):\n    return 'name' in data\n",
        ("take_both",),
    ),
    Case(
        "a version raised on both sides",
        "d_version.toml",
        '[project]\nname = "csvlite"\nversion = "1.2.0"\n',
        '[project]\nname = "csvlite"\nversion = "1.2.1"\n',
        '[project]\nname = "csvlite"\nversion = "1.3.0"\n',
        '[project]\nname = "csvlite"\nversion = "1.3.0"\n',
        ("mark",),
    ),
    Case(
        "reformatted on one side, changed on the other",
        "src/e_reformat.py",
        "def area(w,h):\n    return w*h\n",
        "def area(w, h):\n    return w * h\n",
        "def area(w,h):\n    return abs(w*h)\n",
        "def area(w, h):\n    return abs(w * h)\n",
        ("merge",),
    ),
    Case(
        "deleted on one side, changed on the other",
        "src/f_legacy.py",
        _HEAD + _FUNC,
        None,
        _HEAD + _FUNC.replace("path", "name"),
        None,
        ("take_target",),
    ),
    Case(
        "one file added on both sides, one of them with more",
        "tests/g_added.py",
        None,
        "def test_load():\n    assert load('a')\n",
        "def test_load():\n    assert load('a')\n\n\ndef test_none():\n    assert not load('b')\n",
        "def test_load():\n    assert load('a')\n\n\ndef test_none():\n    assert not load('b')\n",
        ("mark",),
    ),
    Case(
        "renamed and changed on one side, changed on the other",
        "src/h_old.py",
        _HEAD + _FUNC + _PAD + _TAIL,
        (_HEAD + _FUNC + _PAD + _TAIL).replace("open(path)", "open(path, newline='')"),
        (_HEAD + _FUNC + _PAD + _TAIL).replace("parse(file.read())", "parse(file.read().strip())"),
        (_HEAD + _FUNC + _PAD + _TAIL)
        .replace("open(path)", "open(path, newline='')")
        .replace("parse(file.read())", "parse(file.read().strip())"),
        ("mark",),
        "src/h_new.py",
    ),
    Case(
        "both sides add to a changelog",
        "CHANGELOG.md",
        _NEWS,
        _NEWS + _LIMIT,
        _NEWS + _STREAM,
        _NEWS + _LIMIT + _STREAM,
        ("mark",),
    ),
    Case(
        "both sides add the last item of a JSON list",
        "package.json",
        _LIST % "",
        _LIST % ',\n    "pydantic"',
        _LIST % ',\n    "structlog"',
        _LIST % ',\n    "pydantic",\n    "structlog"',
        ("mark",),
    ),
    Case(
        "a function moved on one side, changed on the other",
        "src/i_moved.py",
        _HEAD + _FUNC + _PAD,
        _HEAD.rstrip("\n") + "\n" + _PAD + "\n\n" + _FUNC,
        _HEAD + _MOVED + _PAD,
        _HEAD.rstrip("\n") + "\n" + _PAD + "\n\n" + _MOVED,
        ("edit_all",),
    ),
    Case(
        "whitespace changed on one side, words on the other",
        "src/j_blanks.py",
        "def area(w, h):\n\treturn w * h\n",
        "def area(w, h):\n    return w * h\n",
        "def area(w, h):\n\treturn w * h * SCALE\n",
        "def area(w, h):\n    return w * h * SCALE\n",
        ("mark",),
    ),
)
