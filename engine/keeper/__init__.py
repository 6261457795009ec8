"""Own the process tree of one attempt, in a small process that a zygote forks.

This room knows processes, files and limits. It does not know what an agent, a run or a repository
is. All programs here use the standard library only and run with `python -I -S`. Nothing here may
import another room of the engine, nor `typing` or `dataclasses`: those would double the memory
that each of many keepers holds.
"""
