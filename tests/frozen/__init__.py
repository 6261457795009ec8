"""Runs of one day, kept: their journals must replay to the same views and reports forever."""
