"""ssdrig: shows what an SSD really does: power, I/O, wear and events of one run on one time axis."""

__version__ = "0.1.0"
