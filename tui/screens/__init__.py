"""Show the screens, and do on each of them what its keys mean.

This room knows the session (what is chosen, marked, undone) and sends commands. How rows look is
the work of each screen's `page`, or of `tui.kit` where several screens share them.
"""
