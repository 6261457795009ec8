"""Runs: the core's decisions performed, facts journalled, commands judged, questions answered."""
