"""Provide a worker's workspace, sandbox and ports, and start commands there.

This room knows the place of the project, sandboxes, seeds, ports and artifacts.
"""
