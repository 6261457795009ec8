"""Tell which files of a change deserve the first look, and why."""
