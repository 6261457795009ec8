"""Prove that no attempt changed anything that is not its own."""
