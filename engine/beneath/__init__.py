"""Read, copy, write and remove trees that an agent can shape, and follow none of their links.

An agent may put a link, a FIFO or a device where a folder was, also while we look. So this room
opens every path beneath the descriptor of a root folder, one component after the other, and never
follows a link. It opens regular files only, and never waits for the other end of one. It returns
refusals as values with their reasons. Everything here is synchronous: run it in a thread.
"""

from engine.beneath.copying import Copied, copy_as, copy_tree
from engine.beneath.mounted import is_mounted
from engine.beneath.opening import Name, PathRefused, Why
from engine.beneath.parting import Known, Parting, Sighting, join, part
from engine.beneath.removing import move_aside, release, remove_file, remove_tree
from engine.beneath.surveying import LastChange, Survey, last_change, survey
from engine.beneath.walking import Bounds, EntryKind, WalkEntry, kind_of, list_tree, open_up
from engine.beneath.writing import Taken, make_link, read_file, read_link, write_file

__all__ = [
    "Bounds",
    "Copied",
    "EntryKind",
    "Known",
    "LastChange",
    "Name",
    "Parting",
    "PathRefused",
    "Sighting",
    "Survey",
    "Taken",
    "WalkEntry",
    "Why",
    "copy_as",
    "copy_tree",
    "is_mounted",
    "join",
    "kind_of",
    "last_change",
    "list_tree",
    "make_link",
    "move_aside",
    "open_up",
    "part",
    "read_file",
    "read_link",
    "release",
    "remove_file",
    "remove_tree",
    "survey",
    "write_file",
]
