"""Traces: I/Os with their own times, made from published statistics or converted, and played against a drive."""
