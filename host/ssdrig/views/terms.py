"""Name, unit and meaning of each figure: of the page, host/docs/reference/figures.md and the short table on the
terminal: the lines that reading/window_figures.py and reading/whole_run.py have for their figures."""

import math

from ssdrig.reading import whole_run, window_figures
from ssdrig.reading.window_figures import Term as Term

_ALL = [*window_figures.TERMS, *whole_run.TERMS]
TERMS = [term for group in dict.fromkeys(term.group for term in _ALL) for term in _ALL if term.group == group]

BY_KEY = {term.key: term for term in TERMS}


def number(value, places: int) -> str:
    """A figure for people: '12 345.6', '–' for None; never a negative zero."""
    if value is None:
        return "–"
    text = f"{value:,.{places}f}"
    return (text if text.strip("-0.,") else text.lstrip("-")).replace(",", "\u202f").replace("-", "−")


def with_error(value, error, places: int) -> str:
    """'1.94100 ± 0.00030': the error with two significant digits and the value to its last one; without an error, or
    with an error of 0, the value alone to `places`."""
    if value is None or not error or not math.isfinite(error):
        return number(value, places)
    places = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    return f"{number(value, places)} ± {number(error, places)}"


def markdown() -> str:
    """The list as host/docs/reference/figures.md has it; a test compares the two."""
    lines = ["| figure | unit | key in `--json` | meaning |", "|---|---|---|---|"]
    for term in TERMS:
        lines.append(f"| {term.label} | {term.unit} | `{term.key}` | {term.meaning} |")
    return "\n".join(lines)
