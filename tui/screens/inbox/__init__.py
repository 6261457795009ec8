"""Show everything that waits for a human."""
