"""Run the sub-commands of `plait`, one module each: arguments in, an exit code out.

Data goes to stdout, talk to stderr. Nothing here draws a console or decides anything.
"""
