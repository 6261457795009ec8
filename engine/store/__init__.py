"""What is kept: the journal of a run, each worker's own database, and the files around them.

`store` is the seam: everybody takes a `Store`, and only `engine.site.place` chooses which. `sqlite`
is the one there is; `codec` writes values as JSON, `layout` and `files` know paths and locks. The
room does not know what a fact means, when something may happen, or what git keeps.

Nothing is imported here, so that a path costs no database.
"""
