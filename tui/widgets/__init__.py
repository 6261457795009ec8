"""Paint rows and edit text: the few widgets of the console.

This room knows how rows reach the terminal with few bytes. What the rows say is the work of
`present`.
"""
