"""Resolve conflicts, and land the result."""
