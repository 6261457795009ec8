"""The proof that no attempt changed anything but what is its own."""
