"""Hold candidates side by side, and weave one of their hunks."""
