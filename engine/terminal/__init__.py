"""Emulate a terminal in memory: bytes of a program in, a grid of cells, replies and signals out."""
