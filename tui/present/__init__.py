"""From views to rows of inked text: plain data, so that what is shown can be tested as values.

Knows words, figures, glyphs, cutting and layout. It knows no terminal library and no keys.
"""
