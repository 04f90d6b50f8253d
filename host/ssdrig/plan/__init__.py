"""What a test consists of."""
