"""The drive under test: which there are, which may be written, what they count, what that means for their life."""
