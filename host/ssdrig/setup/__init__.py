"""What the launcher installs, and where."""
