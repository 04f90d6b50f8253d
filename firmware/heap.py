"""The heap in one piece, with room at its low end. Imported before anything else (main.py).

Compiling leaves garbage between lasting objects: collected often, it leaves 60 KB in one piece with two sensors on SPI,
otherwise 12. And MicroPython keeps the frame of most calls on the heap, and looks for a place from the low end on:
memory given back there is found immediately, not after all the rings (a round without work takes 0.21 ms instead of
0.41)."""

import gc

_low = [bytearray(4096)]
gc.threshold(32768)


def ready():
    """All is compiled and made."""
    gc.threshold(-1)  # a collection comes when memory ends, and when `go` asks for it
    _low.clear()
    gc.collect()
