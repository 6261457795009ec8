"""The one way into an engine, near or over a socket."""
