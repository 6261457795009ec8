"""The engine's port over a socket: the server every engine opens, and the client of second shells.

Knows lines, requests and who may connect; what a command means is for the supervisor.
"""
