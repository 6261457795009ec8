"""Report what attempts tried to reach on the network, from their proxy's growing log."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass
class EgressLog:
    """One attempt's log, read up to a place."""

    path: Path
    position: int = 0

    def news(self) -> list[tuple[str, bool]]:
        """Return host and port of each new connection, and whether it was let through."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self.position += len(whole)
        return [entry for line in whole.splitlines() if (entry := _entry(line)) is not None]


def _entry(line: bytes) -> tuple[str, bool] | None:
    try:
        entry = json.loads(line)
        return f"{entry['host']}:{entry['port']}", entry["egress"] == "allowed"
    except (ValueError, KeyError, TypeError):  # a full disk cut one short, and the next follows it
        return None
