"""Meters, one module each, named by the scheme of their URL: see meter.py."""
