"""The console: shows what the engine does and asks the human; it decides nothing by itself.

Knows keys, colours, screens and how a view becomes rows. It does not know how anything is done:
whatever a key asks for goes to the engine as a command, and comes back as a view.
"""
