"""Ship the sample of `plait demo`: a small project, and the scripts of its agents."""
