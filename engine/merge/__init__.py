"""Merging as thought: conflicts as values, what may be chosen, and what has been chosen.

Knows bytes, lines, words and the three versions of a file. Does not know git, disks or clocks:
whoever has them brings the three versions here and carries the result away.
"""
