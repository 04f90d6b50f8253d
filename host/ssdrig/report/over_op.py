"""Runs of one test with different over-provisioning, side by side: what each share of unwritten NAND buys."""

from collections.abc import Sequence
from html import escape

from ssdrig.report import phases
from ssdrig.views import trust_strip
from ssdrig.views.terms import number, with_error

HEAD = ("OP of raw", "OP of user", "α", "load's drive writes", "IOPS", "WA", "WA, closed form", "µJ per I/O", "trust")
WORDS = "Window steady of each run. Closed form: uniformly random writes, blocks collected in turn."


def is_series(figures: Sequence[dict]) -> bool:
    """Whether there are several runs of several sizes of the tested range."""
    return len({f["tested_bytes"] for f in figures if f["tested_bytes"]}) > 1


def rows(figures: Sequence[dict]) -> list[list[str]]:
    """A row of cells for each run, the least over-provisioning first. Figures from an assumed raw NAND state it,
    and a figure that depends on a bad item of the run's trust strip is marked."""
    return [_row(f) for f in sorted(figures, key=lambda f: -(f["tested_bytes"] or 0))]


def _row(f: dict) -> list[str]:
    def of_raw(key: str, places: int, unit: str = "") -> str:
        known = f[key] is not None
        return number(f[key], places) + unit * known + " (assumed)" * (known and f["raw_nand_assumed"])

    user = f["op_user_percent"]
    return [
        of_raw("op_raw_percent", 1, " %"),
        number(user, 1) + " %" * (user is not None),
        of_raw("alpha", 3),
        number(f["drive_writes_t1"], 2),
        trust_strip.marked(number(f["iops_mean"], 0), "iops_mean", f),
        trust_strip.marked(with_error(f["wa"], f["wa_error"], 3), "wa", f),
        of_raw("wa_closed_form", 3),
        trust_strip.marked(number(f["energy_uJ_per_io"], 1), "energy_uJ_per_io", f),
        trust_strip.short(trust_strip.states(f["trust"])),
    ]


def lines(figures: Sequence[dict], width: int) -> list[str]:
    """The table for a terminal `width` columns wide."""
    scaled = trust_strip.wrapped(trust_strip.SCALED, width) if any(f["scaled"] for f in figures) else []
    table = phases.text([list(HEAD), *rows(figures)], "  ", width)
    return ["over-provisioning", *scaled, *table, *trust_strip.key_of_marks(table, width)]


def section(figures: Sequence[dict]) -> str:
    """For the page; nothing where the runs do not differ in it."""
    if not is_series(figures):
        return ""
    head = "".join(f'<th scope="col">{escape(words)}</th>' for words in HEAD)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows(figures))
    soft = WORDS + (f" {trust_strip.MARKED}" if trust_strip.MARK in body else "")
    return (
        f'<section aria-labelledby="op-h"><h2 id="op-h">Over-provisioning</h2><p class="soft">{soft}</p>'
        f'<div class="scroll"><table class="phases"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</section>"
    )
