"""Coding agents: how each is started and told things, and what its stream means.

The only room that knows any agent's command line. It starts no agent, holds no stream and does
not know worktrees, sandboxes or retries: it turns a request into a launch, bytes into events.
"""
