"""The log of what an attempt tried to reach: read as it grows, whatever a full disk did to it."""

from pathlib import Path

from engine.site.egress import EgressLog

REACHED = b'{"egress": "allowed", "host": "a.org", "port": 443}\n'
REFUSED = b'{"egress": "denied", "host": "b.org", "port": 80}\n'


def test_each_line_is_told_once_and_when_it_is_whole(tmp_path: Path):
    path = tmp_path / "log"
    log = EgressLog(path)
    assert log.news() == []
    path.write_bytes(REACHED + REFUSED[:10])
    assert log.news() == [("a.org:443", True)]
    path.write_bytes(REACHED + REFUSED)
    assert log.news() == [("b.org:80", False)]
    assert log.news() == []


def test_a_line_that_was_cut_short_hides_no_other(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(REACHED[:20] + REACHED + b"7\n" + REFUSED)
    assert EgressLog(path).news() == [("b.org:80", False)]


def test_what_cannot_be_read_says_nothing(tmp_path: Path):
    assert EgressLog(tmp_path).news() == []
