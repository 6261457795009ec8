"""Makes the core's decisions happen: performs effects, feeds facts back, tells observers.

Knows how the rooms are used together; it decides nothing that the core could decide.
"""
