"""Read `plait.yaml` strictly, and report every problem at once.

This room knows keys, types and references between them. It reads no files (the caller passes a
reader in), makes no plan, and starts nothing.
"""
