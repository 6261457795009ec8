"""Real merges of public repositories, to measure proposals by. Fetched by hand, never required."""
