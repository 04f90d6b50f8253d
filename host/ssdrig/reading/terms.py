"""How a figure is defined: one line of a table beside the function that computes it. The keys, the page, the short
table on the terminal and host/docs/reference/figures.md are made from these lines."""

from typing import NamedTuple


class Term(NamedTuple):
    """One figure: its key, label, unit, decimal places, group, meaning, and which way is better."""

    key: str
    label: str
    unit: str
    places: int
    group: str
    meaning: str
    better: str = ""  # "more", "less", or "" where neither is


def terms(table: str) -> list[Term]:
    """The lines of a table: key | label | unit | decimal places | better | meaning; an indented line continues the one
    before, "# " begins a group."""
    out, group = [], ""
    for line in table.strip().replace("\n    ", " ").splitlines():
        if line.startswith("# "):
            group = line[2:]
            continue
        key, label, unit, places, better, meaning = (cell.strip() for cell in line.split("|"))
        out.append(Term(key, label, unit, int(places), group, meaning, better))
    return out
