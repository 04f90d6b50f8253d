"""The wear of a drive on a terminal: bars, sentences, unknown figures. Pure, except that it checks whether stdout is a
terminal."""

import shutil
import sys
import textwrap

from ssdrig.base import nvme_fdp
from ssdrig.base import words as in_words
from ssdrig.base.terminal import painted, painter, printable
from ssdrig.drive.smart import health
from ssdrig.drive.smart.plausible import ERROR_COUNTERS
from ssdrig.drive.wear.endurance import Rate, rate_words
from ssdrig.drive.wear.wa import figure

BAR, LEAST_BAR = 20, 8  # characters
NAME, SHARE = 16, 9  # characters before and after a bar
LEAST_WORDS = 12  # characters of a line next to a bar
WHOLE = {"break_on_hyphens": False}  # options, dates and names of models are not broken
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
    "critical_temp_min": "minutes above the critical temperature",
}


def screen(report: dict, width: int | None = None, colour: bool | None = None, explain: bool = False) -> str:
    """What standing.report() found, in at most `width` columns (default: the terminal's, at most 100). Text of the
    drive is made printable. explain: with what the retention figure means."""
    report = _printable(report)
    width = min(width or shutil.get_terminal_size((80, 24)).columns, 100)
    paint = painter(sys.stdout) if colour is None else painted if colour else lambda text, name: text
    lines = _head(report, width, paint)
    bars = _bars(report, width, paint)
    lines += ["", *bars] if bars else []
    body, retention = [], report["retention"]
    if not report["hard_disk"]:
        body += projection_sentences(report)
    body += _facts(report)
    if not report["hard_disk"]:
        if retention["hours"] is not None or retention["state"] == "void":
            body.append(retention["words"])
            if explain:
                body.append(retention["explanation"] or "")
    else:
        body.append(f"{retention['words']}.")
    lines += [""] if body else []
    for text in body:
        lines += textwrap.wrap(text, width, **WHOLE)
    if report["unknown"]:
        lines += ["", paint("not known:", "bold")]
        for text in report["unknown"]:
            lines += textwrap.wrap(text, width, initial_indent="  - ", subsequent_indent="    ", **WHOLE)
    return "\n".join(lines) + "\n"


def projection_sentences(report: dict) -> list[str]:
    """When which limit is reached at which rate, and what may be written; one sentence each."""
    p, wa = report["projection"], report["wa"]
    out = _over(p) if p["rate_bytes_per_day"] is None else _reached(p, wa)
    if p["warranty_end"] is None and p["warranty_days_left_at_most"] is not None:
        left = p["warranty_days_left_at_most"]
        years = f"the warranty's {report['limits']['years']:g} years"
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
    """The limits that a drive of unknown rate has reached."""
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
    if not worn:
        out.append(f"At {rate_words(rate)} ({rate.source}) no endurance limit can be projected.")
    else:
        first = worn[0]
        limit = LIMITS[first["limit"]]
        text = f"Life left at this workload: {_span(first, rate.calendar)}, until {limit}"
        if first["days"] == 0:
            text = f"{limit[0].upper()}{limit[1:]} has been reached"
        years = next((a for a in p["ahead"] if a["limit"] == "warranty_time"), None)
        if years is not None and first["days"] > 0:
            order = "before" if first["days"] < years["days"] else "after"
            text += f", {order} the warranty's years end" + (
                f" in {in_words.period(years['days'])}" if years["days"] > 0 else "ed"
            )
        out.append(f"{text}. Workload: {rate_words(rate)}{known}; {rate.source}.")
        for a in worn[1:]:
            when = "reached" if a["days"] == 0 else f"in {_span(a, rate.calendar)}"
            name = LIMITS[a["limit"]]
            out.append(f"{name[0].upper()}{name[1:]}: {when} ({a['source']}).")
    return out


def _head(report: dict, width: int, paint) -> list[str]:
    name, serial, firmware = (printable(report[key]) for key in ("model", "serial", "firmware"))
    about = [
        serial and f"S/N {serial}",
        firmware and f"firmware {firmware}",
        report["protocol"],
        report["capacity_bytes"] and in_words.size(report["capacity_bytes"]),
        _namespace(report),
        "SIMULATED" if report["simulated"] else None,
    ]
    shown, shade = HEALTH[report["health"]]
    counts = [
        (report["temperature_C"], "{} °C"),
        (_sensors(report["temperature_sensors_C"]), "sensors {} °C"),
        (report["power_on_hours"], "{} h on"),
        (report["power_cycles"], "power cycles {}"),
        (report["unsafe_shutdowns"], "unsafe shutdowns {}"),
        (report["media_errors"], "media errors {}"),
    ]
    counts_in_words = [words.format(value) for value, words in counts if value is not None]
    reasons = []
    for reason in report["health_reasons"]:
        lines = textwrap.wrap(reason["words"], width, initial_indent="  ! ", subsequent_indent="    ", **WHOLE)
        reasons += [paint(line, HEALTH[reason["state"]][1]) for line in lines]
    return [
        *_packed(name or "unknown model", "bold", about, width, paint),
        *_packed(shown, shade, counts_in_words, width, paint),
        *reasons,
    ]


def _sensors(celsius: list[int | None] | None) -> str | None:
    """The temperatures of sensor 1 to the last; one alone is that of the drive."""
    return ", ".join("–" if of is None else str(of) for of in celsius) if celsius and len(celsius) > 1 else None


def _namespace(report: dict) -> str | None:
    """The namespace where it is not the whole drive."""
    part, whole = report["namespace_bytes"], report["capacity_bytes"]
    return f"namespace of {in_words.size(part)}" if part and whole and part < 0.99 * whole else None


def _packed(first: str, shade: str, parts: list, width: int, paint) -> list[str]:
    """The parts in a row, wrapped at `width`; the first one painted."""
    lines = [first]
    for part in filter(None, parts):
        if len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(f"  {part}")
    return [paint(first, shade) + lines[0][len(first) :], *lines[1:]]


def _bars(report: dict, width: int, paint) -> list[str]:
    """A bar for each known share of a limit; the spare shows the rest, the others the used share. Bars give way to the
    words next to them, down to LEAST_BAR."""
    p, limits = report["projection"], report["limits"] or {}
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
                (words, p[f"pe_{name}_used_percent"], f"{report[f'pe_cycles_{name}']:g} of {p['rated_pe_cycles']:g}")
            )
    if p["percentage_used"] is not None:
        rows.append(("percentage used", p["percentage_used"], _by_whom(report, "percentage_used")))
    if p["available_spare_percent"] is not None:
        least = p["available_spare_threshold_percent"]
        rows.append(("spare left", p["available_spare_percent"], "" if least is None else f"warns below {least} %"))
    out: list[str] = []
    longest = max((len(words) for *_, words in rows), default=0)
    room = max(LEAST_BAR, min(BAR, width - NAME - SHARE - longest))
    indent = NAME + room + SHARE
    for name, percent, words in rows:
        bar = "█" * max(0, min(room, round(percent / 100 * room))) or ("▏" if percent > 0 else "")
        left = percent - (p["available_spare_threshold_percent"] or 0) if name == "spare left" else 100 - percent
        shade = "green" if left > 20 else "yellow" if left > 0 else "red"
        share = f"{percent:.0f} %" if percent >= 10 or percent == int(percent) else f"{percent:.1f} %"
        first, *more = textwrap.wrap(words, max(LEAST_WORDS, width - indent), **WHOLE) or [""]
        rest = paint("·" * (room - len(bar)), "dim")
        out.append(f"{name:{NAME}}{paint(bar, shade)}{rest} {share:>6}  {first}".rstrip())
        out += [" " * indent + line for line in more]
    return out


def _of(part: float, whole: float) -> str:
    """ "50.0 of 300 TB", both with their units where these differ."""
    words, all_words = in_words.size(part), in_words.size(whole)
    number, unit = words.split(" ")
    return f"{number if all_words.endswith(' ' + unit) else words} of {all_words}"


def _by_whom(report: dict, name: str) -> str:
    """The source of a percentage; "as the drive reports" only if a standard defines it."""
    source = (report["sources"].get(name) or {}).get("source") or ""
    if source.startswith("attribute"):
        return f"by {source}"
    return source if source.startswith("smartctl") else "as the drive reports"


def _printable(value):
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value


def _facts(report: dict) -> list[str]:
    parts = [
        f"{name} {in_words.size(report[key])}"
        for name, key in (
            ("host written", "host_written_bytes"),
            ("read", "host_read_bytes"),
            ("NAND written", "nand_written_bytes"),
            (f"namespace {report['namespace']} alone: written", "namespace_written_bytes"),
            ("read", "namespace_read_bytes"),
        )
        if report[key] is not None
    ]
    out = [", ".join(parts) + "."] if parts else []
    if out:
        out[0] = out[0][0].upper() + out[0][1:]
    if report["wa"]["value"] is not None:
        since = f"since {report['wa']['since']}" if report["wa"]["since"] else "over its life"
        out.append(f"Write amplification {since}: {report['wa']['words']}.")
    if report["fdp_erased_bytes"] is not None:
        events = nvme_fdp.in_words(report["fdp_events"] or ())
        erased = f"Data placement: {in_words.size(report['fdp_erased_bytes'])} of the media erased"
        out.append(f"{erased}{events and '; its last events: '}{events}.")
    mean = report["pe_cycles_mean"]
    if mean is not None and not report["hard_disk"]:
        ends = [f"{word} {report[key]:g}" for word, key in ENDS.items() if report[key] is not None]
        more = f", {', '.join(ends)}" if ends else ""
        out.append(f"Mean P/E cycles {mean:g}{more} ({report['pe_cycles_source']}).")
    counts = [f"{words} {report[key]}" for key, words in RETENTION_COUNTERS.items() if report[key] is not None]
    if counts and not report["hard_disk"]:
        out.append(f"Counters that matter to data retention: {', '.join(counts)}.")
    unpowered_hours = report["retention"]["unpowered_hours_at_most"]
    if unpowered_hours is not None:
        out.append(
            f"Without power at most {in_words.period(unpowered_hours / 24)} since the first reading (calendar less"
            " power-on hours)."
        )
    if report["limits"] and report["limits"]["source"]:
        out.append(f"Limits: {report['limits']['source']}.")
    return out


def _span(ahead: dict, calendar: bool) -> str:
    """ "14 months (12 to 17)", without the range if it is equal."""
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
