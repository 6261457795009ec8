"""Keep runs: the journal of each, the database of each worker, and the files around them.

`store` is the seam: everybody takes a `Store`, and only `engine.site.place` chooses one. `sqlite`
is the only store today. `codec` writes values as JSON; `layout` and `files` know paths and locks.
This room does not know what a fact means, when something may happen, or what git keeps.

This package imports nothing, so that `layout` can be used without loading SQLite.
"""
