"""Why a key is grey whatever is under the cursor."""

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
        "land",
        "cap",
        "limits",
        "interrupt",
        "check",
        "terminal",
        "edit",
        "edit_all",
    }
)
"""What changes something: a console that only watches refuses these."""

PLAYED_OVER = frozenset({"mark", "undo", "redo"})
"""What cannot be done in a replay because its keys are those of the player."""

LATER = {
    "publish": "this console opens no pull requests; `plait pr` does",
}
"""What no screen can do yet, with the reason that is shown."""
