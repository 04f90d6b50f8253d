"""What takes the power of a drive away and gives it back."""
