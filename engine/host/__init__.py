"""The place where attempts run: the seam every host has, and the host that is this machine.

Knows how an attempt is started, read, told things and ended; it does not know what an agent is.
"""
