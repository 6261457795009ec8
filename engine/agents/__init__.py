"""Start, read and answer each kind of coding agent.

This is the only room that knows the command line of an agent. It starts no process and does not
know worktrees, sandboxes or retries: it turns a request into a launch, and bytes into events.
"""
