"""Say why a key is grey whatever is under the cursor."""

READ_ONLY_IDEAS = frozenset(
    {
        "yes",
        "yes_wide",
        "no",
        "no_wide",
        "steer",
        "comment",
        "send",
        "retry",
        "retry_with",
        "pause",
        "pause_run",
        "new",
        "start",
        "land",
        "try",
        "cap",
        "limits",
        "interrupt",
        "check",
        "terminal",
        "take_over",
        "edit",
        "edit_all",
        "publish",
    }
)
"""Ideas that change something: a console that only watches refuses these."""

PLAYED_OVER = frozenset({"mark", "undo", "redo"})
"""Ideas that a replay lacks because their keys are those of the player."""

_FROM_THE_DIFF = "comments are sent from where they stand; d opens the diff"
ELSEWHERE = {
    **dict.fromkeys(
        (f"{screen}.send" for screen in ("fleet", "worker", "compare")), _FROM_THE_DIFF
    ),
    "review.send": "what is said here goes to its agent at once",
    **dict.fromkeys(("everywhere.pane", "everywhere.pane_back"), "all panes hear their keys here"),
    "worker.select": "y copies the line under the cursor; shift and the mouse select more",
    "compare.select": "hunks are taken whole here",
    "compare.zoom": "it fills the screen already",
    "compare.more": "enter shows both sides of the hunk in full",
    "compare.less": "enter shows both sides of the hunk in full",
    "fleet.show_kinds": "its bands stand apart already; w finds a worker by name",
    "review.show_space": "every byte is decided here, blanks too",
    "runs.diff": "runs are not compared; in one of them 4 compares its candidates",
}
"""The reasons why a key that works on other screens does nothing on this one."""
