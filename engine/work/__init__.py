"""The work of one attempt: its workspace, its agent, its log, its check, and what it left."""
