"""For tests: what a starved stand-in did not see. It keeps host time, so on a busy machine it loses conversions that a
board would not."""

from ssdrig.meter import samples


def unseen_J(run, t0_ns: int, t1_ns: int) -> float:
    """The most by which the energy between two times can be wrong for want of samples: as long as there were none, at
    the highest power of the run."""
    most_J = 0.0
    for power in samples.load_rails(run):
        gaps = power.gaps
        inside = (gaps.to_ns > t0_ns) & (gaps.from_ns < t1_ns)
        most_J += float(gaps.ns[inside].sum()) * 1e-9 * float(power.P.max())
    return most_J
