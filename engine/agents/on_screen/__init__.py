"""Drive agents that have a screen and no protocol, on a terminal that humans can take over."""
