"""Provide what stands around a worker, and start commands there.

This room knows the place of the project, shelters, seeds, ports and artifacts.
"""
