"""From a manifest to a plan: which workers there are, in which order, and with what.

Knows order, cycles, clamps, replicas, variants and matrices; it reads no files and starts nothing.
"""
