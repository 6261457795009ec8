"""Themes as data: one `.toml` file each; this module is here so that they ship."""
