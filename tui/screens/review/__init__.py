"""Decide conflicts, and land what is decided."""
