"""Emptying a drive: format, sanitize, security erase, discard, each verified by what the drive shows afterwards."""
