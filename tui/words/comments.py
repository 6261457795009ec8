"""Hold a remark of the user on a line of a change, until it is sent."""

from typing import NamedTuple


class Comment(NamedTuple):
    """Hold what the user wrote about a line, or a range that ends there, with its code.

    `about` names the run and the worker whose change it is: nobody else is sent it.
    """

    path: str
    key: str
    line: int
    number: int
    code: str
    text: str
    is_sent: bool = False
    about: str = ""
