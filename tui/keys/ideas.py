"""Every idea a key can have: one idea per key over all screens. Data alone.

A key is written as its character, or by its name where it has none (`space`, `enter`, `ctrl+d`);
two characters that begin with `g`, `,`, `]` or `[` are a chord.
"""

from typing import NamedTuple


class Idea(NamedTuple):
    """Define what a key means on every screen."""

    name: str
    keys: tuple[str, ...]
    meaning: str


ACTING = (
    Idea("mark", ("space",), "take or mark what is under the cursor, and go on to the next"),
    Idea("open", ("enter",), "go in: open, unfold, look closer"),
    Idea("yes", ("a",), "yes: allow, approve, choose"),
    Idea("yes_wide", ("A",), "allow for the whole run"),
    Idea("no", ("x",), "no, out: stop, drop, leave out, deny"),
    Idea("no_wide", ("X",), "the same for the whole run, file, candidate or change"),
    Idea("next", ("n",), "next of what matters here; while a search is on, its next hit"),
    Idea("previous", ("N",), "previous of what matters here, or the previous hit"),
    Idea("undo", ("u", "z"), "undo what you did last"),
    Idea("redo", ("U", "Z", "ctrl+r"), "redo it"),
    Idea("comment", ("c",), "comment, with the code under the cursor"),
    Idea("send", ("C",), "send the pending comments"),
    Idea("steer", ("s",), "say something to the agent"),
    Idea("retry", ("r",), "retry as it was"),
    Idea("retry_with", ("R",), "retry with feedback"),
    Idea("pause", ("p",), "pause, put off; again: go on"),
    Idea("pause_run", ("P",), "pause the run; again: go on"),
    Idea("diff", ("d",), "open the diff; on a diff, change what is compared"),
    Idea("merge", ("m",), "go to Review; there, merge word by word"),
    Idea("merge_all", ("M",), "merge the whole file, or all files"),
    Idea("edit", ("e",), "edit what is under the cursor"),
    Idea("edit_all", ("E",), "edit the whole file or worktree"),
    Idea("copy", ("y",), "copy what is under the cursor"),
    Idea("copy_name", ("Y",), "copy its name: branch, path and line, worker"),
    Idea("select", ("v",), "select a range"),
    Idea("pick", ("w",), "pick a worker by name"),
    Idea("new", ("o",), "open a new worker in this run"),
    Idea("publish", ("O",), "open a pull request of what was landed or approved"),
    Idea("zoom", ("f",), "fill the screen with this pane; again: back"),
    Idea("follow", ("F",), "follow the end of the log; again: hold"),
    Idea("check", ("!",), "run the check on exactly this tree"),
    Idea("land", ("L",), "land"),
    Idea("try", ("W",), "try its result in your own checkout; again: take it back"),
    Idea("serve", ("H",), "its program, started for your browser; again: end it"),
    Idea("terminal", ("T",), "a shell inside the worker's sandbox"),
    Idea("more", ("+", "="), "more detail"),
    Idea("less", ("-",), "less detail"),
)

PLAYING = (
    Idea("play", ("space",), "play, hold"),
    Idea("step", (".",), "hold at the next thing that happened"),
    Idea("back", ("u",), "ten seconds back"),
    Idea("on", ("U",), "ten seconds on"),
    Idea("slower", ("<",), "slower"),
    Idea("faster", (">",), "faster"),
)
"""The meanings of keys in a replay, in place of their usual ones."""

EVERYWHERE = (
    Idea("go_inbox", ("0", "gi"), "Inbox: everything that waits for a human"),
    Idea("go_fleet", ("1", "gf"), "Fleet"),
    Idea("go_worker", ("2", "gw"), "Worker"),
    Idea("go_diff", ("3", "gd"), "Diff"),
    Idea("go_compare", ("4", "gc"), "Compare"),
    Idea("go_review", ("5", "gr"), "Review"),
    Idea("go_plan", ("gp",), "Plan"),
    Idea("go_runs", ("gh",), "Runs, the history"),
    Idea("go_stats", ("gs",), "Stats: what all attempts came to"),
    Idea("start", ("S",), "start a run: a prompt, an agent, how many"),
    Idea("go_environment", ("ge",), "Environment of the worker, on its screen"),
    Idea("next_worker", ("gt",), "next worker, same screen"),
    Idea("previous_worker", ("gT",), "previous worker, same screen"),
    Idea("down", ("j", "down"), "down"),
    Idea("up", ("k", "up"), "up"),
    Idea("left", ("h", "left"), "left: tile, tab, hunk"),
    Idea("right", ("l", "right"), "right: tile, tab, hunk"),
    Idea("unit_down", ("J",), "next larger unit: step, tool call, file"),
    Idea("unit_up", ("K",), "previous larger unit"),
    Idea("first", ("gg", "home"), "first"),
    Idea("last", ("G", "end"), "last"),
    Idea("half_down", ("ctrl+d",), "half a page down"),
    Idea("half_up", ("ctrl+u",), "half a page up"),
    Idea("page_down", ("pagedown",), "a page down"),
    Idea("page_up", ("pageup",), "a page up"),
    Idea("scroll_left", ("shift+left",), "scroll to the left"),
    Idea("scroll_right", ("shift+right",), "scroll to the right"),
    Idea("pane", ("tab",), "next pane"),
    Idea("pane_back", ("shift+tab",), "previous pane"),
    Idea("search", ("/",), "search; filter Fleet, Inbox, Plan, Runs: phase: agent: step: needs:me"),
    Idea("leave", ("escape",), "close, or clear a search, a range, marks"),
    Idea("back", ("q",), "back one screen; on Fleet: leave the console"),
    Idea("palette", (":", "ctrl+p"), "every action of this screen with its key"),
    Idea("help", ("?",), "these keys, and why some are grey"),
    Idea("quit", ("ctrl+c",), "as q on Fleet; never stops an agent"),
    Idea("quit_now", ("ctrl+q",), "leave at once, agents go on"),
    Idea("to_shell", ("ctrl+z",), "to the shell and back"),
    Idea("redraw", ("ctrl+l",), "draw the screen again"),
    Idea("next_hunk", ("]c",), "next hunk or conflict"),
    Idea("previous_hunk", ("[c",), "previous hunk or conflict"),
    Idea("next_file", ("]f",), "next file"),
    Idea("previous_file", ("[f",), "previous file"),
    Idea("next_tab", ("]t",), "next tab"),
    Idea("previous_tab", ("[t",), "previous tab"),
)

PALETTE_ONLY = (
    Idea("cap", (), "how many workers may hold a slot at once"),
    Idea("rules", (), "rules: answers that are kept (always allow, deny); enter revokes one"),
    Idea("limits", (), "change the worker's limits, also while it runs"),
    Idea("forget", (), "never offer the remembered answer under the cursor again"),
    Idea("against", (), "hold the change against any branch or commit"),
    Idea("edit_other", (), "edit any other file of the result"),
    Idea("export", (), "write the run as a folder of plain files"),
    Idea("interrupt", (), "break off what the agent does now, without ending it"),
)
"""Ideas that are needed so seldom that they have no key of their own."""

SHOWING = (
    Idea("show_split", (",s",), "split, unified, or by width"),
    Idea("show_space", (",w",), "white space"),
    Idea("show_long", (",l",), "long lines: cut or wrapped"),
    Idea("show_times", (",t",), "time stamps"),
    Idea("show_invisible", (",i",), "invisible characters"),
    Idea("show_generated", (",g",), "generated files"),
    Idea("show_check", (",c",), "what the check printed"),
    Idea("show_kinds", (",f",), "filter by kind"),
    Idea("show_order", (",o",), "order"),
    Idea("show_theme", (",m",), "theme"),
    Idea("show_keys", (",k",), "your key file"),
)

REVIEWING = (
    Idea("take_target", ("t",), "take the target's side"),
    Idea("take_incoming", ("i",), "take the incoming side"),
    Idea("take_both", ("b",), "both, target first"),
    Idea("take_both_reversed", ("B",), "both, incoming first"),
    Idea("take_base", ("gb",), "the base, as it was before both"),
)
"""Ideas that only Review has: the sides of a conflict."""

_WAYS = (
    ("row", "up", "down"),
    ("half", "half_up", "half_down"),
    ("page", "page_up", "page_down"),
    ("end", "first", "last"),
    ("side", "left", "right"),
    ("unit", "unit_up", "unit_down"),
    ("next", "previous", "next"),
    ("hunk", "previous_hunk", "next_hunk"),
    ("file", "previous_file", "next_file"),
    ("tab", "previous_tab", "next_tab"),
    ("scroll", "scroll_left", "scroll_right"),
    ("worker", "previous_worker", "next_worker"),
)
PAIRS = {idea: (name, by) for name, back, on in _WAYS for idea, by in ((back, -1), (on, 1))}
"""Ideas that are two ways of one thing: a screen does both by `by_<name>(by)`."""
