"""Turn views into rows of inked text, as plain data that tests can compare.

This room knows words, figures, glyphs, cutting and layout. It knows no terminal library and no
keys.
"""
