"""What is kept: the journal of a run, each worker's own database, and the files around them.

This room knows SQLite, JSON, paths and locks. It does not know what a fact means, when something
may happen, or what git keeps. One process writes a file, any number read it; whatever is wrong with
a file is a `StoreError` that says what to do.

Nothing is imported here, so that a path costs no database: use `engine.store.run_store`,
`agent_store`, `codec`, `layout`, `files` and `history` by name.
"""
