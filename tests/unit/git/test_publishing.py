from dataclasses import replace

import pytest

from engine.git.publishing import PullRequest, web_address

REQUEST = PullRequest(
    remote="origin", url="", branch="b", name="a/b", base="main", title="t", body=""
)


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://token@github.com/o/r.git", "https://github.com/o/r"),
        ("git@github.com:o/r.git", "https://github.com/o/r"),
        ("ssh://git@host:22/o/r", "https://host/o/r"),
        ("/srv/r.git", ""),
        ("file:///srv/r.git", ""),
    ],
)
def test_the_page_of_a_remote_shows_no_login(url: str, page: str):
    assert web_address(url) == page


def test_a_request_can_be_made_in_a_browser():
    on = {
        name: replace(REQUEST, url=f"git@{name}:o/r.git").page
        for name in ("github.com", "gitlab.org")
    }
    assert on == {
        "github.com": "https://github.com/o/r/compare/main...a/b?expand=1",
        "gitlab.org": "https://gitlab.org/o/r/-/merge_requests/new?merge_request[source_branch]=a%2Fb",
    }
    assert replace(REQUEST, url="/srv/r.git").page == ""
