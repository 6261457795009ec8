"""Copy the user's own settings of each client into a worker's HOME, filtered, and list them.

This room alone reads the files of the user's HOME. It does not know how an agent is started, nor
how its stream is read.
"""
