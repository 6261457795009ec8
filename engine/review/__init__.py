"""Take a change from its diff to its landing: compare, resolve, compose and move it."""
