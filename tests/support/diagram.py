"""The phases as a picture: drawn from the tables of the core, so that it cannot tell otherwise."""

from pathlib import Path

from engine.core.phase import RULED, TOLD
from engine.phases import SETTLED, Phase

BEGIN, END = "<!-- phases:begin -->", "<!-- phases:end -->"
PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def phases_diagram() -> str:
    """Both tables as a Mermaid state diagram: solid words are facts, `rule` is a joint rule."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> WAITING"]
    for phase in Phase:
        words: dict[Phase, list[str]] = {}
        for fact, reached in TOLD[phase].items():
            for to in reached:
                words.setdefault(to, []).append(fact)
        for to in RULED.get(phase, ()):
            words.setdefault(to, []).append("rule")
        lines += [f"    {phase} --> {to} : {', '.join(words[to])}" for to in Phase if to in words]
    lines += [f"    {phase} --> [*]" for phase in Phase if phase in SETTLED]
    return "\n".join([*lines, "```"])


def with_diagram(page: str) -> str:
    """The page with the block between the two marks drawn anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{phases_diagram()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_diagram(PAGE.read_text()))
