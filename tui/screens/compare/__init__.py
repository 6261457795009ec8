"""Show candidates side by side, and make a composite of their hunks."""
