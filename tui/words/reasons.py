"""Say why a key is gray whatever is under the cursor."""

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
        "add_step",
        "land",
        "try",
        "cap",
        "limits",
        "interrupt",
        "check",
        "terminal",
        "checkpoint",
        "take_over",
        "edit",
        "edit_all",
        "publish",
        "explain",
    }
)
"""Ideas that change something: a console that only watches refuses these."""

PLAYED_OVER = frozenset({"mark", "undo", "redo"})
"""Ideas that a replay lacks because their keys are those of the player."""

_FROM_THE_DIFF = "comments are sent from the diff; {diff} opens it"
ELSEWHERE = {
    **dict.fromkeys(
        (f"{screen}.send" for screen in ("fleet", "worker", "compare")), _FROM_THE_DIFF
    ),
    "review.send": "your words go to the agent at once here",
    **dict.fromkeys(
        ("everywhere.pane", "everywhere.pane_back"), "every pane takes its own keys here"
    ),
    "worker.select": "{copy} copies the line under the cursor; shift+drag selects more",
    "compare.select": "hunks are taken as a whole here",
    "compare.zoom": "it fills the screen already",
    "compare.more": "{open} shows both sides of the hunk in full",
    "compare.less": "{open} shows both sides of the hunk in full",
    "fleet.show_kinds": "the bands are already separate; {pick} finds a worker by name",
    "review.show_space": "every byte counts here, whitespace too",
}
"""The reasons why a key that works on other screens does nothing on this one.

A key stands in a reason as its idea: `{diff}`.
"""
