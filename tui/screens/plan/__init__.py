"""Show the steps of a run as a graph and in time."""
