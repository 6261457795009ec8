"""Fakes that ship: a simulated world for the core, and builders for tests of programs on it.

Nothing here touches the machine unless it says so.
"""
