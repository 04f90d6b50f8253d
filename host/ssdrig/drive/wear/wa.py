"""Write amplification = NAND bytes written / host bytes written, from two SMART snapshots, with its error. Pure.

Counters round up or down, so each difference is off by less than one unit: with e_N = u_N / dN and e_H = u_H / dH the
true value is within WA (e_N + e_H) / (1 - e_H), which is the worst case and not a probability. For an error of eps
the host has to write dH >= (u_N / WA + u_H (1 + eps)) / eps.
"""

import math
from typing import Any, NamedTuple

from ssdrig.base.overprovisioning import assumed_raw_bytes
from ssdrig.base.words import size

COARSEST_ESTIMATE = 0.5  # likewise for an estimate, whose raw NAND is not known either
COARSEST = 0.2  # a relative error above this and the figure is refused: StorScore's rule of fewer than five counts
_KNOWN_UNIT_BYTES = 512  # of /sys/block/X/stat field 7 and of fio's own count


class WriteAmplification(NamedTuple):
    """value is None if the counters are unusable, see `why`; error is absolute, relative_error its share of
    value.

    host_bytes, nand_bytes: the differences of the counters; None where the drive counts pages of a size it does not
    report. missing_bytes_*: host bytes that would still have to be written for an error of 5 or 2 %; of a value that is
    refused because it is too coarse, for WA = 1, the most it can take; None if that is unknown. tlc_only: WA
    without the NAND writes of the SLC cache, which count the same data twice; None unless the drive counts both. flags:
    of FLAGS. source: the counters."""

    value: float | None
    error: float | None
    relative_error: float | None
    host_bytes: int | None
    nand_bytes: int | None
    missing_bytes_5_percent: int | None
    missing_bytes_2_percent: int | None
    why: str | None
    tlc_only: float | None = None
    flags: tuple[str, ...] = ()
    source: str | None = None


FLAGS = {
    "host_did_not_move": "the host counter did not move",
    "nand_did_not_move": "the NAND counter did not move",
    "host_went_back": "the host counter went back: reset or wrapped",
    "nand_went_back": "the NAND counter went back: reset or wrapped",
    "host_wrapped": "the host counter wrapped once; its range was added",
    "nand_wrapped": "the NAND counter wrapped once; its range was added",
    "host_differs": (
        "the drive's host counter and the bytes the host counted itself differ by more than the counter's unit"
    ),
    "host_counted": "the host's own count was used, the drive's is coarser",
    "below_one": "less was written to the NAND than the host sent: the drive compresses, or a unit is wrong",
    "nand_batched": "the NAND counter did not change in the run and jumped afterwards: it is updated in batches",
    "host_wrote": "the host wrote while the drive was to settle",
    "estimated": "estimated from erase counts and raw NAND: the model's, or the capacity to the next power of two GiB",
    "still_moving": "the NAND counter still moved at the last poll: background work was not finished",
}


def between(before: dict, after: dict, host_bytes_known: int | None = None) -> WriteAmplification:
    """Write amplification between two counters.snapshot() dicts of one drive. Never raises on any content of a drive.

    host_bytes_known: bytes written to the drive meanwhile by a count of the host (fio's, or /sys/block/X/stat field 7 x
    512), used instead of the drive's host counter where the two agree within the counter's unit. Where the drive
    reports no NAND bytes but counts pages (host_program_pages, nand_program_pages: Micron F7 and F7 + F8) their ratio
    is taken; where it counts neither, an estimate from its mean P/E cycles and `raw_nand_bytes` of the snapshots, if
    they have it."""
    if None not in (before.get("serial"), after.get("serial")) and before["serial"] != after["serial"]:
        return _none(f"the snapshots belong to two drives, {before['serial']} and {after['serial']}")
    before, after = _paired(before, after)
    pages = all(
        s.get("nand_written_bytes") is None
        and s.get("host_program_pages") is not None
        and s.get("nand_program_pages") is not None
        for s in (before, after)
    )
    host, host_why, flags = _difference(before, after, "host_written", "host")
    if pages:
        return _of_pages(before, after, host)
    if all(s.get("nand_written_bytes") is None and s.get("pe_cycles_mean") is not None for s in (before, after)):
        return _of_cycles(before, after, host, host_why, flags)
    nand, nand_why, nand_flags = _difference(before, after, "nand_written", "NAND")
    flags = (*nand_flags, *flags)
    source = f"{after.get('nand_written_source')} / {after.get('host_written_source')}"
    host_unit: Any = after.get("host_written_unit_bytes")  # a number wherever the counter is one
    if host_bytes_known is not None and nand_why is None:
        if host is not None and host >= 0 and abs(host - host_bytes_known) > host_unit:
            flags = (*flags, "host_differs")
        elif host_bytes_known > 0 and (host is None or host >= 0 and host_unit > _KNOWN_UNIT_BYTES):
            host, host_why, host_unit = host_bytes_known, None, _KNOWN_UNIT_BYTES
            flags, source = (
                (*(f for f in flags if not f.startswith("host_")), "host_counted"),
                f"{after.get('nand_written_source')} / the host",
            )
    why = nand_why or host_why
    if why:
        missing = {}
        if flags == ("nand_did_not_move",) and host is not None:
            missing = _missing(1.0, after["nand_written_unit_bytes"], host_unit, host)
        return _none(why, host, nand, flags)._replace(source=source, **missing)
    assert nand is not None and host is not None  # or there were a reason
    return _value(nand, host, after["nand_written_unit_bytes"], host_unit, flags, source, _tlc(before, after))


def estimate(snapshot: dict, raw_bytes: int | None = None) -> WriteAmplification | None:
    """Write amplification over the drive's life from mean P/E cycles x raw NAND / host bytes, for a drive that counts
    neither NAND bytes nor pages; None if one of these is unknown, or the error exceeds COARSEST_ESTIMATE.

    raw_bytes: raw NAND of the model; None: between the capacity and the next power of two GiB. A mean of m whole cycles
    is up to one cycle more, and what was written since the erases fills the NAND up to once more: m to m + 2 cycles, so
    that the error is 4.8 % at 20 cycles where the raw NAND is known."""
    mean, host, capacity = (snapshot[name] for name in ("pe_cycles_mean", "host_written_bytes", "capacity_bytes"))
    unit = snapshot["host_written_unit_bytes"] or 0
    if not mean or not capacity or host is None or host <= unit:
        return None
    least, most = (raw_bytes, raw_bytes) if raw_bytes else (capacity, assumed_raw_bytes(capacity))
    low, high = mean * least / (host + unit), (mean + 2) * most / (host - unit)
    value = (low + high) / 2
    error = (high - low) / 2
    if error > COARSEST_ESTIMATE * value:
        return None
    source = f"mean P/E cycles ({snapshot['pe_cycles_source']}) x raw NAND / {snapshot['host_written_source']}"
    nand = round(value * host)
    return WriteAmplification(
        value, error, error / value, host, nand, None, None, None, flags=("estimated",), source=source
    )


def _of_cycles(
    before: dict, after: dict, host: int | None, host_why: str | None, flags: tuple[str, ...]
) -> WriteAmplification:
    """An estimate from mean P/E cycles between two readings x raw NAND (unknown: see estimate()). Either mean is cut to
    a whole cycle, and either time up to all of the NAND may have been written since the erases: within 2 cycles."""
    name, source = "mean P/E cycles", f"mean P/E cycles x raw NAND / {after.get('host_written_source')}"
    if host_why or host is None:
        return _none(host_why or "the drive has no host counter", host, None, flags)._replace(source=source)
    unit, cycles = after.get("host_written_unit_bytes") or 0, after["pe_cycles_mean"] - before["pe_cycles_mean"]
    capacity, raw_bytes = after.get("capacity_bytes"), after.get("raw_nand_bytes")
    why = (
        f"the drive has no NAND counter, and its {name} rose by only {cycles:g}: the error would be over {COARSEST:.0%}"
    )
    least, most = raw_bytes or capacity or 0, raw_bytes or (assumed_raw_bytes(capacity) if capacity else 0)
    if cycles <= 2 or host <= unit or not least:
        return _none(why, host, None, flags)._replace(source=source)
    low, high = (cycles - 2) * least / (host + unit), (cycles + 2) * most / (host - unit)
    value, error = (low + high) / 2, (high - low) / 2
    if error > COARSEST * value:
        return _none(why, host, None, flags)._replace(source=source)
    estimated = WriteAmplification(value, error, error / value, host, round(value * host), None, None, None)
    return estimated._replace(flags=(*flags, "estimated"), source=source)


def _paired(before: dict, after: dict) -> tuple[dict, dict]:
    """Both snapshots with the host counter that belongs to their NAND counter. Log 22h has its own, of the same
    endurance group and also in bytes (NVMe Base Specification 2.1, figure "FDP Statistics Log Page": HBMW, MBMW, user
    data both); if the NAND bytes are from that page, log 02h covers the whole drive and its whole life in units of
    512 000 bytes."""
    if any(
        s.get("nand_written_source") != "log 22h" or s.get("fdp_host_written_bytes") is None for s in (before, after)
    ):
        return before, after
    first, last = (
        s
        | {
            "host_written_bytes": s["fdp_host_written_bytes"],
            "host_written_unit_bytes": 1,
            "host_written_source": "log 22h",
            "host_written_wrap_bytes": None,
        }
        for s in (before, after)
    )
    return first, last


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
            if relative > COARSEST:
                why = (
                    f"the two polls took {polls_ns / 1e6:.0f} ms of the time between them: the error would be over"
                    f" {COARSEST:.0%}"
                )
                wa = wa._replace(value=None, error=None, relative_error=None, tlc_only=None, why=why)
            else:
                wa = wa._replace(relative_error=relative, error=relative * wa.value)
        out.append((after["t_ns"], wa))
    return out


class Settled(NamedTuple):
    """run: s0 to s1, right after the load; with_background: s0 to the poll at which the drive had settled (or the last
    one), which is later[poll]. background_bytes: NAND bytes written between the two, the drive's own work; None if not
    counted. flags: of FLAGS; settled only if neither still_moving nor host_wrote is among them."""

    run: WriteAmplification
    with_background: WriteAmplification
    poll: int | None
    background_bytes: int | None
    settled: bool
    flags: tuple[str, ...]


def settled(s0: dict, s1: dict, later: list[dict], host_bytes_known: int | None = None) -> Settled:
    """The lag procedure: s0 before the load, s1 right after its flush, `later` the polls at 60, 120, 300 s of a drive
    that is left alone. S2 is the first of two polls in a row among `later` whose counters are equal."""
    counters = [
        (s.get("nand_written_bytes", None), s.get("nand_program_pages"), s.get("host_written_bytes")) for s in later
    ]
    quiet = next(
        (i for i in range(len(later) - 1) if counters[i] == counters[i + 1] and counters[i][:2] != (None, None)), None
    )
    index = quiet if quiet is not None else len(later) - 1 if later else None
    run = between(s0, s1, host_bytes_known)
    if index is None:
        return Settled(run, run, None, None, False, ("still_moving",))
    s2 = later[index]
    whole = between(s0, s2, host_bytes_known)
    flags = []
    if quiet is None:
        flags.append("still_moving")
    if s2.get("host_written_bytes") is not None and s1.get("host_written_bytes") is not None:
        if abs(s2["host_written_bytes"] - s1["host_written_bytes"]) > (s2.get("host_written_unit_bytes") or 0):
            flags.append("host_wrote")
    background = _difference(s1, s2, "nand_written", "NAND")[0]
    background = None if background is None or background < 0 else background
    moved, unit = background, s2.get("nand_written_unit_bytes")
    if background is None and None not in (s1.get("nand_program_pages"), s2.get("nand_program_pages")):
        moved, unit = s2["nand_program_pages"] - s1["nand_program_pages"], 1
    if "nand_did_not_move" in run.flags and moved is not None and unit is not None and moved > unit:
        flags.append("nand_batched")
    return Settled(run, whole, index, background, not flags or flags == ["nand_batched"], tuple(flags))


def words(wa: WriteAmplification) -> str:
    """The figure in words, with its error and its basis, and the gain from more writing."""
    more = wa.missing_bytes_5_percent
    if wa.value is None:
        return f"not known: {wa.why}" + (f"; the host has to write at most {size(more)} more for ±5 %" if more else "")
    text = figure(wa.value, wa.error or 0.0)
    if wa.host_bytes is not None:
        text += f" over {size(wa.host_bytes)} written by the host"
    if wa.tlc_only is not None:
        text += f"; {wa.tlc_only:.2f} without the SLC cache's writes"
    if more:
        text += f"; {size(more)} more for ±5 %"
    return "; ".join([text, *(FLAGS[f] for f in wa.flags)])


def figure(value: float, error: float, most_places: int = 4) -> str:
    """ "1.83 ± 0.02": two digits of the error, rounded up so that it stays a bound."""
    places = max(0, min(most_places, 1 - math.floor(math.log10(error)))) if error else most_places
    return f"{value:.{places}f} ± {math.ceil(error * 10**places) / 10**places:.{places}f}"


def _value(
    nand: int, host: int, nand_unit: int, host_unit: int, flags: tuple, source: str, tlc: int | None
) -> WriteAmplification:
    """The ratio and its error, in units of both counters that are the same (bytes or pages)."""
    value = nand / host
    relative = (nand_unit / nand + host_unit / host) / (1 - host_unit / host) if host_unit < host else math.inf
    if relative > COARSEST:
        name, unit, delta = max((("host", host_unit, host), ("NAND", nand_unit, nand)), key=lambda n: n[1] / n[2])
        why = (
            f"the {name} counter moved by only {delta / unit:.0f} of its units of {unit} bytes: the error would be over"
            f" {COARSEST:.0%}"
        )
        return _none(why, host, nand, flags)._replace(source=source, **_missing(1.0, nand_unit, host_unit, host))
    if value * (1 + relative) < 1:
        flags = (*flags, "below_one")
    return WriteAmplification(
        value,
        value * relative,
        relative,
        host,
        nand,
        why=None,
        tlc_only=tlc / host if tlc is not None else None,
        flags=flags,
        source=source,
        **_missing(value, nand_unit, host_unit, host),
    )


def _missing(value: float, nand_unit: int, host_unit: int, host: int) -> dict:
    return {
        f"missing_bytes_{p}_percent": max(0, round(host_bytes_for(value, p / 100, nand_unit, host_unit)) - host)
        for p in (5, 2)
    }


def _of_pages(before: dict, after: dict, host_bytes: int | None) -> WriteAmplification:
    host, nand = (after[k] - before[k] for k in ("host_program_pages", "nand_program_pages"))
    for name, delta in (("host", host), ("nand", nand)):
        if delta <= 0:
            flag = f"{name}_did_not_move" if delta == 0 else f"{name}_went_back"
            why = FLAGS[flag].replace("counter", "page counter")
            return _none(why, host_bytes, None, (flag,))._replace(source="pages")
    wa = _value(nand, host, 1, 1, (), "NAND pages / host pages", None)
    # of the host's data; the drive does not report what the flash calls a page
    page_bytes = host_bytes / host if host_bytes else None
    more: dict[str, Any] = {
        k: None if page_bytes is None else round(getattr(wa, k) * page_bytes)
        for k in ("missing_bytes_5_percent", "missing_bytes_2_percent")
    }
    in_pages = wa.why and wa.why.replace("units of 1 bytes", "pages")
    return wa._replace(host_bytes=host_bytes or None, nand_bytes=None, why=in_pages)._replace(**more)


def _difference(before: dict, after: dict, counter: str, name: str) -> tuple[int | None, str | None, tuple[str, ...]]:
    """(difference in bytes, why it cannot be used, flags) of one counter. One that went back has wrapped if the drive's
    range is known and the count would be less than half of it; otherwise it was reset and is unusable."""
    a, b = before.get(f"{counter}_bytes"), after.get(f"{counter}_bytes")
    short = name.lower()
    if a is None or b is None:
        return None, f"{'the drive' if a == b else 'one of the two readings'} has no {name} counter", ()
    kinds = [(s.get(f"{counter}_source"), s.get(f"{counter}_unit_bytes")) for s in (before, after)]
    if kinds[0] != kinds[1]:
        one, other = (f"{source} in units of {unit} bytes" for source, unit in kinds)
        return None, f"the {name} counters have two kinds, {one} and {other}", ()
    if kinds[1][1] is None:
        return None, f"the unit of the {name} counter is not known", ()
    delta, wrap = b - a, after.get(f"{counter}_wrap_bytes")
    if delta < 0:
        if wrap and 0 <= b < a < wrap and delta + wrap < wrap / 2:
            return delta + wrap, None, (f"{short}_wrapped",)
        return (
            delta,
            f"the {name} counter went back by {-delta} bytes: it was reset or has wrapped",
            (f"{short}_went_back",),
        )
    if delta == 0:
        return 0, f"the {name} counter did not move", (f"{short}_did_not_move",)
    return delta, None, ()


def _tlc(before: dict, after: dict) -> int | None:
    a, b = (s.get("nand_written_tlc_bytes") for s in (before, after))
    return b - a if a is not None and b is not None and b >= a else None


def _none(
    why: str, host: int | None = None, nand: int | None = None, flags: tuple[str, ...] = ()
) -> WriteAmplification:
    return WriteAmplification(None, None, None, host, nand, None, None, why, flags=flags)
