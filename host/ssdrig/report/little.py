"""Little's check of a run as a piece of its page: how many loads hold, and a table of those that do not."""

from collections.abc import Sequence
from html import escape

from ssdrig.analysis import little
from ssdrig.analysis.table import Row
from ssdrig.report.shown import figure
from ssdrig.report.terms import number

MOST = 20  # loads in the table
HEADS = ("Load", "Round", "In flight", "Asked for", "Off by, %", "Lasted, mean latencies", "By its kind")


def section(rows: Sequence[Row], name: str = "") -> str:
    """ "" for a run without a closed loop."""
    found = little.loads(rows)
    if not found:
        return ""
    title = "Little's check" + (f": {name}" if name else "")
    out = [f"<section><h2>{escape(title)}</h2><p>{escape(little.words(rows))}.</p>"]
    beyond = little.beyond(found)
    if beyond:
        more = f" The {MOST} worst:" if len(beyond) > MOST else ""
        out.append(f'<p class="warn">{len(beyond)} beyond {little.LITTLE_PERCENT:g} %.{more}</p>')
        head = "".join(f'<th scope="col">{words}</th>' for words in HEADS)
        out.append(f'<div class="scroll"><table class="steps"><thead><tr>{head}</tr></thead><tbody>')
        for load in beyond[:MOST]:
            cells = [str(load.round or "–"), number(load.in_flight, 2), number(load.asked, 0)]
            cells += [f"{load.error_percent:+.2f}".replace("-", "−"), figure(load.latencies)]
            body = "".join(f"<td>{cell}</td>" for cell in cells) + f'<td class="said">{escape(load.why)}</td>'
            out.append(f'<tr><th scope="row">{escape(load.label)}</th>{body}</tr>')
        out.append("</tbody></table></div>")
    return "".join(out) + "</section>"
