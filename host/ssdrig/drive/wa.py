"""Write amplification = NAND bytes written / host bytes written, from two SMART snapshots, with its error. Pure.

Counters round up or down, so each difference is off by less than one unit: with e_N = u_N / dN and e_H = u_H / dH the true
value lies within WA (e_N + e_H) / (1 - e_H), which is the worst case and not a probability. For an error of eps the host has
to write dH >= (u_N / WA + u_H (1 + eps)) / eps.
"""

from dataclasses import dataclass

FEWEST_COUNTS = 5  # fewer than this and the figure is wrong rather than coarse (StorScore's rule)


@dataclass(frozen=True)
class WriteAmplification:
    """value is None when `why` says what is wrong with the counters; error is absolute, relative_error its share of value.

    missing_bytes_*: host bytes that would still have to be written for an error of 5 or 2 %; None if WA is not known."""

    value: float | None
    error: float | None
    relative_error: float | None
    host_bytes: int | None
    nand_bytes: int | None
    missing_bytes_5_percent: int | None
    missing_bytes_2_percent: int | None
    why: str | None


def between(before: dict, after: dict) -> WriteAmplification:
    """Write amplification between two smart.snapshot() dicts of one drive. Never raises for what a drive may say."""
    for name, what in (("nand_written_bytes", "no NAND counter"), ("host_written_bytes", "no host counter")):
        if before.get(name) is None or after.get(name) is None:
            return _none(f"the drive has {what}")
    if before["nand_source"] != after["nand_source"]:
        return _none(f"the NAND counters are of two kinds, {before['nand_source']} and {after['nand_source']}")
    host = after["host_written_bytes"] - before["host_written_bytes"]
    nand = after["nand_written_bytes"] - before["nand_written_bytes"]
    host_unit, nand_unit = after["host_unit_bytes"], after["nand_unit_bytes"]
    for name, delta, unit in (("host", host, host_unit), ("NAND", nand, nand_unit)):
        if delta < 0:
            return _none(f"the {name} counter went back by {-delta} bytes: it was reset or has wrapped", host, nand)
        if delta == 0:
            return _none(f"the {name} counter did not move", host, nand)
        if delta < FEWEST_COUNTS * unit:
            return _none(f"the {name} counter moved by less than {FEWEST_COUNTS} of its units of {unit} bytes", host, nand)
    value = nand / host
    relative = (nand_unit / nand + host_unit / host) / (1 - host_unit / host)

    def missing(eps):
        return max(0, int(host_bytes_for(value, eps, nand_unit, host_unit)) - host)

    return WriteAmplification(value, value * relative, relative, host, nand, missing(0.05), missing(0.02), None)


def host_bytes_for(value: float, eps: float, nand_unit: int, host_unit: int) -> float:
    """Host bytes that must be written for a relative error of at most eps at write amplification `value`."""
    return (nand_unit / value + host_unit * (1 + eps)) / eps


def during(snapshots: list[dict]) -> list[tuple[int, WriteAmplification]]:
    """Cumulative write amplification since the first snapshot: (t_ns, WA) for each later one, in order of time.

    Under load the two counters of a poll are not read at the same instant; the share of the time between the polls that
    the polls themselves took is added to the error."""
    series = sorted((s for s in snapshots if s["t_ns"] is not None), key=lambda s: s["t_ns"])
    out = []
    for after in series[1:]:
        wa = between(series[0], after)
        if wa.value is not None:
            polls_ns = sum(s["t_end_ns"] - s["t_start_ns"] for s in (series[0], after))
            relative = wa.relative_error + polls_ns / (after["t_ns"] - series[0]["t_ns"])
            wa = WriteAmplification(**{**vars(wa), "relative_error": relative, "error": relative * wa.value})
        out.append((after["t_ns"], wa))
    return out


def _none(why: str, host: int | None = None, nand: int | None = None) -> WriteAmplification:
    return WriteAmplification(None, None, None, host, nand, None, None, why)
