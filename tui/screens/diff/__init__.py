"""Show what a worker changed, and let hunks be seen, said about and dropped."""
