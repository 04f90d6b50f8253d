"""The words and numbers of a retention test in a plan. Pure."""

RATED, SEALED = "rated", "sealed"  # the class that the drive's maker names, or that the manifest does
NONE = "not given"
