"""The engine: runs many coding agents at once in one git repository, without a terminal.

Importing this package costs nothing; each public name brings its room with it when first used.
"""
