"""Do what keys ask for, alike on several screens."""
