"""Limits and isolation: what this machine can enforce, and how an attempt is wrapped in it.

Knows mechanisms and their probes; it does not start attempts and does not know what an agent is.
"""
