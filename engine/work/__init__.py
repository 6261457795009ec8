"""Do the work of one attempt: its workspace, its agent, its log, its check, its collection."""
