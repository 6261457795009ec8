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
    Idea("no", ("x",), "no: stop, drop, leave out, deny"),
    Idea("no_wide", ("X",), "the same for the whole run, file, candidate or change"),
    Idea("next", ("n",), "next item that matters here; during a search, the next hit"),
    Idea("previous", ("N",), "previous item that matters here, or the previous hit"),
    Idea("undo", ("u", "z"), "undo what you did last"),
    Idea("redo", ("U", "Z", "ctrl+r"), "redo what you undid"),
    Idea("comment", ("c",), "comment on the code under the cursor"),
    Idea("send", ("C",), "send the pending comments"),
    Idea("steer", ("s",), "say something to the agent"),
    Idea("retry", ("r",), "retry as it was"),
    Idea("retry_with", ("R",), "retry with feedback"),
    Idea("pause", ("p",), "pause or snooze; again: continue"),
    Idea("pause_run", ("P",), "pause the run; again: continue"),
    Idea("diff", ("d",), "open the diff; on a diff, choose what to compare with"),
    Idea("merge", ("m",), "go to Review; there, merge word by word"),
    Idea("merge_all", ("M",), "merge the whole file, or all files"),
    Idea("edit", ("e",), "edit what is under the cursor"),
    Idea("edit_all", ("E",), "edit the whole file or worktree"),
    Idea("copy", ("y",), "copy what is under the cursor"),
    Idea("copy_name", ("Y",), "copy its name: branch, worker, or path and line"),
    Idea("select", ("v",), "select a range"),
    Idea("pick", ("w",), "pick a worker by name"),
    Idea("new", ("o",), "add a worker to this run"),
    Idea("publish", ("O",), "open a pull request for what is landed or approved"),
    Idea("zoom", ("f",), "show this pane on the whole screen; again: back"),
    Idea("follow", ("F",), "follow the end of the log; again: stop following"),
    Idea("check", ("!",), "run the check on exactly this tree"),
    Idea("land", ("L",), "land"),
    Idea("try", ("W",), "try its result in your own checkout; again: restore your files"),
    Idea("serve", ("H",), "start its program for your browser; again: stop it"),
    Idea("terminal", ("T",), "open a shell inside the worker's sandbox, in a pane"),
    Idea("take_over", ("ga",), "take over the agent's own terminal, if it has one"),
    Idea("detach", ("ctrl+right_square_bracket",), "leave the terminal; its program keeps running"),
    Idea("checkpoint", ("gk",), "keep its files as they are now; a retry can start from them"),
    Idea("end_shell", ("gx",), "end the shell in its pane, and all that runs in it"),
    Idea("explain", ("gy",), "ask an agent to explain the differences; again: stop it"),
    Idea("more", ("+", "="), "more detail"),
    Idea("less", ("-",), "less detail"),
)

PLAYING = (
    Idea("play", ("space",), "play, or stop"),
    Idea("step", (".",), "stop at the next event"),
    Idea("back", ("u",), "ten seconds back"),
    Idea("on", ("U",), "ten seconds forward"),
    Idea("slower", ("<",), "slower"),
    Idea("faster", (">",), "faster"),
)
"""The meanings of keys in a replay, in place of their usual ones."""

EVERYWHERE = (
    Idea("go_inbox", ("0", "gi"), "Inbox: everything that waits for you"),
    Idea("go_fleet", ("1", "gf"), "Fleet"),
    Idea("go_worker", ("2", "gw"), "Worker"),
    Idea("go_diff", ("3", "gd"), "Diff"),
    Idea("go_compare", ("4", "gc"), "Compare"),
    Idea("go_review", ("5", "gr"), "Review"),
    Idea("go_plan", ("gp",), "Plan"),
    Idea("go_runs", ("gh",), "Runs: all runs of this repository"),
    Idea("go_stats", ("gs",), "Stats: outcomes of all attempts"),
    Idea("start", ("S",), "start a run: a prompt, an agent, the number of candidates"),
    Idea("add_step", ("go",), "add a step to the run on screen: a prompt, an agent"),
    Idea("since_left", ("gl",), "list what happened since you left, worker by worker"),
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
    Idea(
        "search",
        ("/",),
        "search; filter Fleet, Inbox, Plan and Runs by phase:, agent:, step: or needs:me",
    ),
    Idea("leave", ("escape",), "close this, or clear a search, a range or marks"),
    Idea("back", ("q",), "back one screen; on Fleet: leave the console"),
    Idea("palette", (":", "ctrl+p"), "every action of this screen with its key"),
    Idea("help", ("?",), "these keys, and why some are gray"),
    Idea("quit", ("ctrl+c",), "same as q on Fleet; never stops an agent"),
    Idea("quit_now", ("ctrl+q",), "leave at once; agents keep running"),
    Idea("to_shell", ("ctrl+z",), "to the shell and back"),
    Idea("redraw", ("ctrl+l",), "draw the screen again"),
    Idea("next_hunk", ("]c",), "next hunk or conflict"),
    Idea("previous_hunk", ("[c",), "previous hunk or conflict"),
    Idea("next_file", ("]f",), "next file"),
    Idea("previous_file", ("[f",), "previous file"),
    Idea("next_turn", (")", "]m"), "next message"),
    Idea("previous_turn", ("(", "[m"), "previous message"),
    Idea("next_tab", ("]t",), "next tab"),
    Idea("previous_tab", ("[t",), "previous tab"),
)

PALETTE_ONLY = (
    Idea("cap", (), "how many workers may hold a slot at once"),
    Idea("rules", (), "rules: saved answers (always allow, deny); enter revokes one"),
    Idea("limits", (), "change the worker's limits, even while it runs"),
    Idea("forget", (), "never offer the remembered answer under the cursor again"),
    Idea("against", (), "compare the change with any branch or commit"),
    Idea("edit_other", (), "edit any other file of the result"),
    Idea("export", (), "write the run as a folder of plain files"),
    Idea("interrupt", (), "interrupt the agent's current turn, without ending the agent"),
)
"""Ideas that are needed so seldom that they have no key of their own."""

SHOWING = (
    Idea("show_split", (",s",), "split, unified, or by width"),
    Idea("show_space", (",w",), "whitespace"),
    Idea("show_long", (",l",), "long lines: cut off or wrapped"),
    Idea("show_times", (",t",), "time stamps"),
    Idea("show_invisible", (",i",), "invisible characters"),
    Idea("show_generated", (",g",), "generated files"),
    Idea("show_moved", (",v",), "moved code"),
    Idea("show_check", (",c",), "the output of the check"),
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
    Idea("take_first", ("7",), "the first proposal"),
    Idea("take_second", ("8",), "the second proposal"),
    Idea("take_third", ("9",), "the third proposal"),
    Idea("regenerate", ("gm",), "regenerate a generated file, by its command"),
)
"""Ideas that only Review has: the sides of a conflict, and what is offered for it."""

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
    ("turn", "previous_turn", "next_turn"),
    ("scroll", "scroll_left", "scroll_right"),
    ("worker", "previous_worker", "next_worker"),
)
PAIRS = {idea: (name, by) for name, back, on in _WAYS for idea, by in ((back, -1), (on, 1))}
"""Ideas that are two ways of one thing: a screen does both by `by_<name>(by)`."""
