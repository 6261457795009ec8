"""Keep the history of many runs: of one person in SQLite, of a team in PostgreSQL.

A history is fed from the journals of `engine.store`, which stay the truth about each run. It can
be behind them and never before them, and all of it can be made again from them. `seam` says what a
history is; `sql` is what its two databases share, `sqlite` and `postgres` each know their own.
`tally` reads a journal into rows, `outbox` delivers them, `feeder` does it beside living runs.
"""
