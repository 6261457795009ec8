"""Turn views into words: sentences, figures, reasons, the names of what happened."""
