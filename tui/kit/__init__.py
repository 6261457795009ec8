"""Hold what all screens share: rows of ink, widgets, dialogs, the session."""
