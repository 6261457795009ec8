"""Show terminals in panes: a shell in a worker's sandbox, and the screen of an agent."""
