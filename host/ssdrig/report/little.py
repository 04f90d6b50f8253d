"""Little's check of a run as a piece of its page: how many loads hold, and a table of those that do not or that are not
checked."""

from collections.abc import Sequence
from html import escape

from ssdrig.reading import little
from ssdrig.reading.row import Row
from ssdrig.views.terms import number

MOST = 20  # loads in a table
HEADS = ("Load", "Round", "In flight", "Asked for", "Off by, %", "Why not checked")


def section(rows: Sequence[Row], name: str = "") -> str:
    """ "" for a run without a closed loop."""
    loads = little.loads(rows)
    if not loads:
        return ""
    title = "Little's check" + (f": {name}" if name else "")
    out = [f"<section><h2>{escape(title)}</h2><p>{escape(little.words(rows))}.</p>"]
    beyond = little.beyond(loads)
    if beyond:
        more = f" The {MOST} worst:" if len(beyond) > MOST else ""
        out.append(f'<p class="warn">{len(beyond)} beyond {little.LITTLE_PERCENT:g} %.{more}</p>')
        out.append(_table(beyond[:MOST]))
    unchecked = [load for load in loads if load.error_percent is None]
    if unchecked:
        words = f"{len(unchecked)} not checked" + (f", the first {MOST}" if len(unchecked) > MOST else "")
        out.append(f"<details><summary>{words}</summary>{_table(unchecked[:MOST])}</details>")
    return "".join(out) + "</section>"


def _table(loads: Sequence[little.Load]) -> str:
    head = "".join(f'<th scope="col">{words}</th>' for words in HEADS)
    out = [f'<div class="scroll"><table class="steps"><thead><tr>{head}</tr></thead><tbody>']
    for load in loads:
        off = "–" if load.error_percent is None else f"{load.error_percent:+.2f}".replace("-", "−")
        cells = [str(load.round or "–"), number(load.in_flight, 2), number(load.asked, 0), off]
        body = "".join(f"<td>{cell}</td>" for cell in cells) + f'<td class="prose">{escape(load.why)}</td>'
        out.append(f'<tr><th scope="row">{escape(load.label)}</th>{body}</tr>')
    return "".join(out) + "</tbody></table></div>"
