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
    }
)
"""What changes something: a console that only watches refuses these."""

LATER = {
    "go_compare": "candidates cannot be compared side by side in this console yet",
    "publish": "this console opens no pull requests; `plait pr` does",
    "check": "this console runs no checks by itself; `plait check` does",
    "edit": "files are not edited from this console yet",
    "edit_all": "files are not edited from this console yet",
}
"""What no screen can do yet, with the reason that is shown."""
