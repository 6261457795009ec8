"""Under which heading of the help page each idea stands."""

_BY_GROUP = {
    "MOVE": (
        *("down", "up", "left", "right", "unit_down", "unit_up", "first", "last", "half_down"),
        *("half_up", "page_down", "page_up", "scroll_left", "scroll_right", "pane", "pane_back"),
        *("next", "previous", "search", "open", "next_hunk", "previous_hunk", "next_file"),
        *("previous_file", "next_tab", "previous_tab", "next_worker", "previous_worker", "pick"),
        *("next_turn", "previous_turn"),
    ),
    "SCREENS": (
        *("go_inbox", "go_fleet", "go_worker", "go_diff", "go_compare", "go_review", "go_plan"),
        *("go_runs", "go_stats", "since_left", "back"),
    ),
    "THIS WORKER": (
        *("yes", "yes_wide", "no", "retry", "retry_with", "steer", "comment", "send", "pause"),
        *(
            "diff",
            "merge",
            "check",
            "land",
            "terminal",
            "detach",
            "end_shell",
            "edit",
            "edit_all",
            "copy",
            "copy_name",
        ),
        *("mark", "select"),
    ),
    "THE RUN": ("start", "add_step", "pause_run", "no_wide", "new", "publish"),
    "CONSOLE": (
        *("undo", "redo", "palette", "help", "leave", "quit", "quit_now", "to_shell", "redraw"),
        *("show_theme", "show_keys"),
    ),
}
GROUPS = {idea: group for group, ideas in _BY_GROUP.items() for idea in ideas}
