"""Let consoles and shells reach an engine, in this process or over a socket."""
