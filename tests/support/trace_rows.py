"""Rows of a trace, written as (t_ns, offset_bytes, length_bytes, op) or as whole rows: those of one time are a burst of
that depth."""

import numpy as np

from ssdrig.load.traceform import ROW


def bursts_of(t_ns) -> np.ndarray:
    """The size of the burst that each I/O is in."""
    starts = np.flatnonzero(np.diff(t_ns, prepend=-1))
    sizes = np.diff(starts, append=len(t_ns))
    return np.repeat(sizes, sizes)


def rows_of(*rows) -> np.ndarray:
    out = np.array([(*row[:4], row[4] if len(row) > 4 else 0, 0) for row in rows], ROW)
    out["depth"] = bursts_of(out["t_ns"])
    return out
