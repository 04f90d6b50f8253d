"""Verdicts for machines: limits against figures, runs against runs, as JUnit XML and as OCPTV."""
