"""A change from its diff to its landing: conflicts read, decided, composed and moved."""
