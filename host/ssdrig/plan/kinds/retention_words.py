"""What a plan says of a retention test, as words and numbers. Pure."""

RATED, SEALED = "rated", "sealed"  # the class that the drive's maker names, or that the manifest does
NONE = "not given"
