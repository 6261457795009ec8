"""Show all workers of a run, those that need a human first."""
