"""Reads and writes of a block device: Linux AIO, NBD, and the slots of commands under way."""
