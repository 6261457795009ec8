"""Run attempts on a host: the seam that every host has, and the host that is this machine.

This room knows how to start, read, feed and end an attempt. It does not know what an agent is.
"""
