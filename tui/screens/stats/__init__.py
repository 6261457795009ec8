"""Show the outcomes of all attempts: a table, and a plot of the weeks."""
