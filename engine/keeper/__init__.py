"""The small process that owns one attempt's process tree, and the one that gives birth to it.

Knows processes, files and limits; it does not know what an agent, a run or a repository is. All
programs here use the standard library only and run with `python -I -S`: nothing of this package
may import another room of the engine, nor `typing` or `dataclasses`, which would double what each
of many keepers holds in memory.
"""
