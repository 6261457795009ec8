"""Decide what happens next in a run, as a pure function of its state and one fact.

This room knows when something may happen, and nothing of how it is done: no clock, no process,
no file.
"""
