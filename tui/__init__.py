"""Show what the engine does, and ask the human.

The console decides nothing by itself. It knows keys, colors, screens and how a view becomes rows.
It does not know how anything is done: a key sends a command to the engine, and a view comes back.
"""
