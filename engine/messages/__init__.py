"""All that crosses the port, as plain data: commands, events, views, diffs and logs."""
