"""Ship the themes as data, one `.toml` file each."""
