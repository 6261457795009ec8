"""Where a worker lives: its place, what stands around it, and what is started there."""
