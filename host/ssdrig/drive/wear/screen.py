"""The wear of a drive for people: bars, sentences, what is not known. Pure, but for asking whether stdout is a
terminal."""

import shutil
import sys
import textwrap

from ssdrig.base import words as in_words
from ssdrig.base.terminal import painted, painter, printable
from ssdrig.drive.smart import health
from ssdrig.drive.smart.plausible import ERROR_COUNTERS
from ssdrig.drive.wear.endurance import Rate, rate_words
from ssdrig.drive.wear.wa import figure

BAR = 20
ENDS = {"lowest": "pe_cycles_min", "highest": "pe_cycles_max"}
LIMITS = {
    "tbw": "the rated TBW",
    "pe_cycles": "the rated P/E cycles",
    "percentage_used": '100 % in the drive\'s own "percentage used"',
    "warranty_time": "the end of the warranty's years",
}

HEALTH = {
    health.OK: ("health ok", "green"),
    health.WARNING: ("HEALTH WARNING", "yellow"),
    health.FAILING: ("HEALTH FAILING", "red"),
    health.UNKNOWN: ("health unknown", "dim"),
}
RETENTION_COUNTERS = {
    **ERROR_COUNTERS,
    "temperature_max_C": "highest °C",
    "warning_temp_min": "minutes above the warning temperature",
    "critical_temp_min": "minutes above the critical one",
}


def screen(found: dict, width: int | None = None, colour: bool | None = None, explain: bool = False) -> str:
    """What standing.report() found, in at most `width` columns (default: the terminal's, at most 100). Text of the
    drive is made printable. explain: with what the retention figure means."""
    found = _printable(found)
    width = min(width or shutil.get_terminal_size((80, 24)).columns, 100)
    paint = painter(sys.stdout) if colour is None else painted if colour else lambda text, name: text
    lines = _head(found, width, paint)
    bars = _bars(found, paint)
    lines += ["", *bars] if bars else []
    body, kept = [*_facts(found)], found["retention"]
    if not found["hard_disk"]:
        body += projection_sentences(found)
        if kept["hours"] is not None or kept["state"] == "void":
            body.append(kept["words"])
            if explain:
                body.append(kept["explanation"] or "")
    else:
        body.append(f"{kept['words']}.")
    lines += [""] if body else []
    for text in body:
        lines += textwrap.wrap(text, width)
    if found["unknown"]:
        lines += ["", paint("not known:", "bold")]
        for text in found["unknown"]:
            lines += textwrap.wrap(text, width, initial_indent="  - ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def projection_sentences(found: dict) -> list[str]:
    """When which limit is reached at which rate, and what may be written; one sentence each."""
    p, wa = found["projection"], found["wa"]
    out = _over(p) if p["rate_bytes_per_day"] is None else _reached(p, wa)
    if p["warranty_end"] is None and p["warranty_days_left_at_most"] is not None:
        left = p["warranty_days_left_at_most"]
        years = f"the warranty's {found['limits']['years']:g} years"
        over = f"By its power-on hours alone {years} are over."
        at_most = f"At most {in_words.period(left)} of {years} are left, by its power-on hours."
        out.append(over if left == 0 else at_most)
    if p["allowance_bytes_per_day"] is not None:
        out.append(
            f"Up to {in_words.size(p['allowance_bytes_per_day'])} a day can be written until {p['warranty_end']} within"
            " the rated TBW."
        )
    if p["projected_tbw_TB"] is not None:
        low, high = (in_words.size(p[f"projected_tbw_{end}_TB"] * 1e12) for end in ("low", "high"))
        out.append(
            f'Extrapolated from "percentage used", the drive endures about'
            f" {in_words.size(p['projected_tbw_TB'] * 1e12)} in total ({low} to {high})."
        )
    if p["workload_life_days"] is not None:
        out.append(
            f"By the drive's own timed counters its flash lasts {in_words.period(p['workload_life_days'])} at the"
            " workload they saw."
        )
    return out


def _over(p: dict) -> list[str]:
    """What has been reached, of a drive whose rate is not known."""
    over = [LIMITS[a["limit"]] for a in p["ahead"] if a["days"] == 0 and a["limit"] != "warranty_time"]
    return [f"{name[0].upper()}{name[1:]}: reached." for name in over]


def _reached(p: dict, wa: dict) -> list[str]:
    rate = Rate(
        p["rate_bytes_per_day"],
        p["rate_low_bytes_per_day"],
        p["rate_high_bytes_per_day"],
        p["rate_source"],
        p["rate_calendar"],
    )
    # a WA of its life is not that of a workload lately
    same_time = wa["since"] is not None or rate.source.startswith("mean")
    known = f", WA {figure(wa['value'], wa['error'], 2)}" if wa["value"] is not None and same_time else ""
    out = []
    worn = [a for a in p["ahead"] if a["limit"] != "warranty_time"]
    text = f"At this workload ({rate_words(rate)}{known}; {rate.source}) "
    if not worn:
        out.append(f"At {rate_words(rate)} ({rate.source}) no endurance limit can be projected.")
    else:
        first = worn[0]
        when = "has been reached" if first["days"] == 0 else f"is reached in {_span(first, rate.calendar)}"
        text += f"{LIMITS[first['limit']]} {when}"
        years = next((a for a in p["ahead"] if a["limit"] == "warranty_time"), None)
        if years is not None and first["days"] > 0:
            order = "before" if first["days"] < years["days"] else "after"
            text += f", {order} the warranty's years end" + (
                f" in {in_words.period(years['days'])}" if years["days"] > 0 else "ed"
            )
        out.append(text + ".")
        for a in worn[1:]:
            when = "reached" if a["days"] == 0 else f"in {_span(a, rate.calendar)}"
            name = LIMITS[a["limit"]]
            out.append(f"{name[0].upper()}{name[1:]}: {when} ({a['source']}).")
    return out


def _head(found: dict, width: int, paint) -> list[str]:
    name, serial, firmware = (printable(found[key]) for key in ("model", "serial", "firmware"))
    about = [
        serial and f"S/N {serial}",
        firmware and f"firmware {firmware}",
        found["protocol"],
        found["capacity_bytes"] and in_words.size(found["capacity_bytes"]),
        _namespace(found),
        "SIMULATED" if found["simulated"] else None,
    ]
    shown, shade = HEALTH[found["health"]]
    counts = [
        (found["temperature_C"], "{} °C"),
        (found["power_on_hours"], "{} h on"),
        (found["power_cycles"], "power cycles {}"),
        (found["unsafe_shutdowns"], "unsafe shutdowns {}"),
        (found["media_errors"], "media errors {}"),
    ]
    said = [words.format(value) for value, words in counts if value is not None]
    reasons = []
    for reason in found["health_reasons"]:
        lines = textwrap.wrap(reason["words"], width, initial_indent="  ! ", subsequent_indent="    ")
        reasons += [paint(line, HEALTH[reason["state"]][1]) for line in lines]
    return [
        *_packed(name or "unknown model", "bold", about, width, paint),
        *_packed(shown, shade, said, width, paint),
        *reasons,
    ]


def _namespace(found: dict) -> str | None:
    """The namespace where it is not the whole drive."""
    part, whole = found["namespace_bytes"], found["capacity_bytes"]
    return f"namespace of {in_words.size(part)}" if part and whole and part < 0.99 * whole else None


def _packed(first: str, shade: str, parts: list, width: int, paint) -> list[str]:
    """The parts behind each other, on as many lines as `width` takes; the first one painted."""
    lines = [first]
    for part in filter(None, parts):
        if len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(f"  {part}")
    return [paint(first, shade) + lines[0][len(first) :], *lines[1:]]


def _bars(found: dict, paint) -> list[str]:
    """A bar for each share of a limit that is known; the spare is what is left, the others what is used."""
    p, limits = found["projection"], found["limits"] or {}
    rows = []
    if p["tbw_used_percent"] is not None:
        then = " (warranty ends there)" if limits.get("mileage") else " rated"
        rows.append(("TBW", p["tbw_used_percent"], _of(p["host_written_bytes"], p["rated_tbw_bytes"]) + then))
    if p["warranty_used_percent"] is not None:
        rows.append(
            (
                "warranty time",
                p["warranty_used_percent"],
                f"to {p['warranty_end']}, {in_words.period(p['warranty_days_left'])} left",
            )
        )
    for name, words in (("mean", "P/E cycles"), ("max", "P/E cycles, max")):
        if p[f"pe_{name}_used_percent"] is not None:
            rows.append(
                (words, p[f"pe_{name}_used_percent"], f"{found[f'pe_cycles_{name}']:g} of {p['rated_pe_cycles']:g}")
            )
    if p["percentage_used"] is not None:
        rows.append(("percentage used", p["percentage_used"], _by_whom(found, "percentage_used")))
    if p["available_spare_percent"] is not None:
        least = p["available_spare_threshold_percent"]
        rows.append(("spare left", p["available_spare_percent"], "" if least is None else f"warns below {least} %"))
    out = []
    for name, percent, words in rows:
        bar = "█" * max(0, min(BAR, round(percent / 100 * BAR))) or ("▏" if percent > 0 else "")
        left = percent - (p["available_spare_threshold_percent"] or 0) if name == "spare left" else 100 - percent
        shade = "green" if left > 20 else "yellow" if left > 0 else "red"
        share = f"{percent:.0f} %" if percent >= 10 or percent == int(percent) else f"{percent:.1f} %"
        out.append(f"{name:16}{paint(bar, shade)}{paint('·' * (BAR - len(bar)), 'dim')} {share:>6}  {words}".rstrip())
    return out


def _of(part: float, whole: float) -> str:
    """ "50.0 of 300 TB", both with their units where these differ."""
    words, all_words = in_words.size(part), in_words.size(whole)
    number, unit = words.split(" ")
    return f"{number if all_words.endswith(' ' + unit) else words} of {all_words}"


def _by_whom(found: dict, name: str) -> str:
    """Whose word a percentage is. As the drive says: only where a standard defines it."""
    source = (found["sources"].get(name) or {}).get("source") or ""
    if source.startswith("attribute"):
        return f"by {source}"
    return source if source.startswith("smartctl") else "as the drive says"


def _printable(value):
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _printable(each) for name, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list | tuple) else value


def _facts(found: dict) -> list[str]:
    parts = [
        f"{name} {in_words.size(found[key])}"
        for name, key in (
            ("host written", "host_written_bytes"),
            ("read", "host_read_bytes"),
            ("NAND written", "nand_written_bytes"),
            (f"namespace {found['namespace']} alone: written", "namespace_written_bytes"),
            ("read", "namespace_read_bytes"),
        )
        if found[key] is not None
    ]
    out = [", ".join(parts) + "."] if parts else []
    if out:
        out[0] = out[0][0].upper() + out[0][1:]
    if found["wa"]["value"] is not None:
        since = f"since {found['wa']['since']}" if found["wa"]["since"] else "over its life"
        out.append(f"Write amplification {since}: {found['wa']['words']}.")
    mean = found["pe_cycles_mean"]
    if mean is not None and not found["hard_disk"]:
        ends = [f"{word} {found[key]:g}" for word, key in ENDS.items() if found[key] is not None]
        more = f", {', '.join(ends)}" if ends else ""
        out.append(f"Mean P/E cycles {mean:g}{more} ({found['pe_cycles_source']}).")
    counts = [f"{words} {found[key]}" for key, words in RETENTION_COUNTERS.items() if found[key] is not None]
    if counts and not found["hard_disk"]:
        out.append(f"Relevant to data retention: {', '.join(counts)}.")
    unpowered_hours = found["retention"]["unpowered_hours_at_most"]
    if unpowered_hours is not None:
        out.append(
            f"Without power at most {in_words.period(unpowered_hours / 24)} since the first reading (calendar less"
            " power-on hours)."
        )
    if found["limits"] and found["limits"]["source"]:
        out.append(f"Limits: {found['limits']['source']}.")
    return out


def _span(ahead: dict, calendar: bool) -> str:
    """ "14 months (12 to 17)", without the range where it says the same."""
    value = in_words.period(ahead["days"])
    clock = "" if calendar else " of power-on time"
    if value.startswith("over"):
        return value + clock
    low, high = (
        in_words.period(ahead["days_low"]),
        "never" if ahead["days_high"] is None else in_words.period(ahead["days_high"]),
    )
    unit = value.split(" ")[-1]
    if low.split(" ")[-1] == high.split(" ")[-1] == unit and not high.startswith("over"):
        low, high = low.split(" ")[0], high.split(" ")[0]
    range_ = "" if low == high else f" ({low} to {high})"
    return value + clock + range_
