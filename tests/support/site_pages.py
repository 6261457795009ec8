"""Gather the pages for the site: the README as its front page, the others where they lie.

`python -m tests.support.site_pages FOLDER` writes them. The tree stays as it is, so links between
pages do too.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDER = re.compile(r"\]\(((?:docs/|\.\./)?decisions)/?\)")


def gather(place: Path) -> None:
    """Write every page and picture below a folder, which is emptied first."""
    shutil.rmtree(place, ignore_errors=True)
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        name = page.relative_to(ROOT)
        target = place / ("index.md" if name.name == "README.md" else name)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = page.read_text(encoding="utf-8").replace("](../README.md", "](../index.md")
        target.write_text(_FOLDER.sub(r"](\1/index.md)", text), encoding="utf-8")
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    rows = [
        f"- [{page.read_text().splitlines()[0].lstrip('# ')}]({page.name})" for page in decisions
    ]
    (place / "docs/decisions/index.md").write_text("# Decisions\n\n" + "\n".join(rows) + "\n")
    shutil.copytree(
        ROOT / "screenshots", place / "screenshots", ignore=shutil.ignore_patterns("*.py")
    )
    for name in ("LICENSE", "docs/plait.schema.json"):
        shutil.copy(ROOT / name, place / name)


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
