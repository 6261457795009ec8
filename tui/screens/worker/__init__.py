"""Show one worker: its log, its limits, what happened to it."""
