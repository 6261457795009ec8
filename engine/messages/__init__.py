"""Define all that crosses the port, as plain data: commands, questions, events, views."""
