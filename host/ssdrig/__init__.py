"""ssdrig: shows what an SSD really does: power, I/O, wear and events of one run on one time axis."""

import os

__version__ = "0.1.0"

# NumPy's OpenBLAS starts a thread for each further processor, which spins for 50 ms in every process, beside the load
# that is measured. Nothing here multiplies matrices that are large enough for two.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
