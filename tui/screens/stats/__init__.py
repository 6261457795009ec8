"""Show what all attempts came to: a table, and how it went week by week."""
