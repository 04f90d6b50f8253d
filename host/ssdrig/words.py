"""Numbers in the units that people use, and text from elsewhere made safe to print. Pure."""

import math

DAYS_PER = {"hour": 1 / 24, "day": 1, "week": 7, "month": 365.25 / 12, "year": 365.25}
YEARS_MOST = 100  # a projection beyond this says no more than "not in your time"


def size(count: float) -> str:
    """Bytes in decimal units with three digits: 13880000000000 -> '13.9 TB'."""
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(count) < 999.5 or unit == "PB":
            break
        count /= 1000
    digits = 0 if unit == "B" else max(0, 2 - math.floor(math.log10(abs(count)))) if abs(count) >= 1 else 2
    return f"{count:.{digits}f} {unit}"


def unit(bytes_per_count: int) -> str:
    """The unit of a counter: 512 -> '512 B', 33554432 -> '32 MiB', 10**9 -> '1 GB'."""
    for factor, name in ((1 << 30, "GiB"), (10**9, "GB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if bytes_per_count % factor == 0:
            return f"{bytes_per_count // factor} {name}"
    return f"{bytes_per_count} B"


def days(count: float) -> str:
    """5 -> '5.0 days', 100 -> '3.3 months', 950 -> '31 months', 4000 -> '11 years', above 100 years 'over 100
    years'."""
    if count < 60:
        return f"{count:.1f} days" if count < 10 else f"{count:.0f} days"
    if count < 365.25 * 4:
        months = count / DAYS_PER["month"]
        return f"{months:.1f} months" if months < 10 else f"{months:.0f} months"
    years = count / DAYS_PER["year"]
    if years > YEARS_MOST:
        return f"over {YEARS_MOST} years"
    return f"{years:.1f} years" if years < 10 else f"{years:.0f} years"


def hours(count: float) -> str:
    """96.2 -> '96 h', 355 -> '14.8 d', 2190 -> '13.0 weeks', 36700 -> '4.2 years'."""
    for name, length, upto in (("h", 1, 120), ("d", 24, 60 * 24), ("weeks", 168, 366 * 24)):
        if count < upto:
            return f"{count / length:.{0 if name == 'h' and count >= 20 else 1}f} {name}"
    return f"over {YEARS_MOST} years" if count > YEARS_MOST * 8766 else f"{count / 8766:.1f} years"


def printable(text: str) -> str:
    """Text of a drive, a file or a user for a terminal: control and format characters (an ESC, a newline, a turn of
    direction) as their code points, so that nothing but text arrives there."""
    return "".join(c if c.isprintable() else f"<{ord(c):02X}>" for c in text)
