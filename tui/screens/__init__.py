"""The screens: what each key does on each of them, and which rows they show.

Knows the session (what is chosen, marked, undone) and sends commands. How rows look is `present`.
"""
