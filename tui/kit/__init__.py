"""Hold what all screens share: rows of text, widgets, dialogs, the session."""
