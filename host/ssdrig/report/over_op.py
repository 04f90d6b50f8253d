"""Runs of one test with different over-provisioning, side by side: what each share of unwritten NAND buys."""

from collections.abc import Sequence
from html import escape

from ssdrig.report.terms import number, with_error

HEAD = ("OP of raw", "OP of user", "α", "drive writes", "IOPS", "WA", "WA, closed form", "µJ per I/O")
WORDS = "Window steady of each run. Closed form: uniformly random writes, blocks collected in turn."


def is_series(figures: Sequence[dict]) -> bool:
    """Whether there are several runs of several sizes of the tested range."""
    return len({f["tested_bytes"] for f in figures if f["tested_bytes"]}) > 1


def rows(figures: Sequence[dict]) -> list[list[str]]:
    """A row of cells for each run, the least over-provisioning first. What follows from an assumed raw NAND says so."""
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
        number(f["iops_mean"], 0),
        with_error(f["wa"], f["wa_error"], 3),
        of_raw("wa_closed_form", 3),
        number(f["energy_uJ_per_io"], 1),
    ]


def lines(figures: Sequence[dict]) -> list[str]:
    """For a terminal."""
    from ssdrig.report import phases

    return ["over-provisioning", *phases.text([list(HEAD), *rows(figures)], "  ")]


def section(figures: Sequence[dict]) -> str:
    """For the page; nothing where the runs do not differ in it."""
    if not is_series(figures):
        return ""
    head = "".join(f'<th scope="col">{escape(words)}</th>' for words in HEAD)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows(figures))
    return (
        f'<section aria-labelledby="op-h"><h2 id="op-h">Over-provisioning</h2><p class="soft">{WORDS}</p>'
        f'<div class="scroll"><table class="phases"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</section>"
    )
