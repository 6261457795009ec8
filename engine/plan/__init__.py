"""Turn a manifest into a plan: steps in order, figures clamped, workers expanded.

This room knows order, cycles, clamps, replicas, variants and matrices. It reads no files and starts
nothing.
"""
