"""Show the runs of the past."""
