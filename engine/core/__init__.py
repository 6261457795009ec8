"""The thinking part: a run's state, the facts that change it and the effects it wants.

Knows when something may happen, and nothing of how it is done: no clock, no process, no file.
"""
