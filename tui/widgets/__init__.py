"""The few widgets the console is made of: a board that paints rows, and a box for text.

Knows how rows reach the terminal with few bytes. What the rows say is the work of `present`.
"""
