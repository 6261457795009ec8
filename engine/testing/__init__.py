"""Simulate the world for tests of the core, and of programs that use the engine.

Nothing here touches the machine unless it says so.
"""
