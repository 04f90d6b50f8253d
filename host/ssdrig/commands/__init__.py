"""A command a file: options in, results out. No room imports one but the command line."""
