"""The view `wear`: how a drive was worn over the amount written, the predicted end of its life, and the findings."""

from collections.abc import Mapping, Sequence
from html import escape

from ssdrig.base.shipped import as_called
from ssdrig.base.words import digits, size
from ssdrig.drive.wear import retention
from ssdrig.plan.rules import worn
from ssdrig.reading import wear_run
from ssdrig.reading.row import Row, Table
from ssdrig.views import svg
from ssdrig.views.context import Context, figure, panel
from ssdrig.views.terms import number

WIDTH, HEIGHT = 960, 320
SHOWN = 12  # slices in the table, at most
GB = 1e9
HEADS = ("Slice", "GB written", "Used, %", "Spare, %", "Media errors", "Samples", "Bad", "°C")


def wear_view(context: Context) -> str:
    """Two plots, the findings in words and a table of slices, by step and run."""
    out = []
    for path in context.paths:
        for run, name in context.runs():
            row = next((r for r in run.rows if r.act.path == path and r.result.get("slices")), None)
            if row is None:
                out.append(panel(context.title("Wear", "", path) + name, "", "No slice was written.", "wide"))
                continue
            slices = slices_of(row)
            title = context.title("Wear over the amount written", "", path) + name
            shown = _shown(row.result)
            words = "Blue: percentage used. Green: available spare."
            words += " Dashed: the prediction, shaded its error (95 %)." if shown else ""
            out.append(panel(title, _plot(title, run, shown, slices), words, "wide"))
            title = f"Write amplification of each slice{name}"
            out.append(panel(title, _wa(title, slices), "", "wide"))
            paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines(run, row))
            out.append(panel(f"What the wear has shown{name}", paragraphs + _table(slices), "", "wide"))
    return "".join(out)


def slices_of(row: Row) -> list[worn.Slice]:
    return [worn.Slice(**one) for one in row.result["slices"]]


def _shown(event: Mapping) -> dict | None:
    """The prediction that is drawn: of a drive that was worn the first one, to be held against what came."""
    known = [one for one in event["ends"] if one["host_bytes"]]
    if event["stop"] and known:
        return known[0]
    return event["end"] if event["end"]["host_bytes"] else None


def _plot(title: str, run: Table, end: Mapping | None, slices: Sequence[worn.Slice]) -> str:
    rated, last = run.data.header["drive"].get("rated_write_bytes"), slices[-1]
    most = max(last.host_bytes, end["high_bytes"] if end else 0, 1)
    plot = svg.Plot(title, WIDTH, HEIGHT, (0.0, 1.05 * most / GB), (0.0, 108.0))
    if end:
        at = end.get("at_bytes", last.host_bytes)
        begin = next(one for one in slices if one.host_bytes >= at)
        plot.band(end["low_bytes"] / GB, end["high_bytes"] / GB)
        knots = [(at / GB, begin.percentage_used or 0.0), (end["host_bytes"] / GB, float(worn.WORN_PERCENT))]
        plot.line(knots, "stroke:var(--review);stroke-width:2", "dashed")
    for key, colour in (("percentage_used", "--blue"), ("spare_percent", "--green")):
        known = [(s.host_bytes / GB, float(value)) for s in slices if (value := getattr(s, key)) is not None]
        plot.line(svg.thinned(known), f"stroke:var({colour})")
    if rated and rated <= 1.05 * most:
        plot.line([(rated / GB, 0.0), (rated / GB, 104.0)], "stroke:var(--ink);stroke-width:1", "dashed")
        plot.words(plot.x(rated / GB) - 4, plot.TOP + 12, "rated TBW", "end soft halo")
    plot.axes("GB written by the host in this step", "percent")
    return plot.text()


def _wa(title: str, slices: Sequence[worn.Slice]) -> str:
    amplifications = (
        (now, wear_run.amplification(before, now)) for before, now in zip(slices, slices[1:], strict=False)
    )
    values = [(now.host_bytes / GB, wa) for now, wa in amplifications if wa is not None]
    if not values:
        return "<p>Not known: the drive does not count NAND bytes.</p>"
    plot = svg.Plot(title, WIDTH, 220, (0.0, values[-1][0]), svg.extent([wa for _, wa in values], False))
    plot.line(svg.thinned(values), "stroke:var(--blue)")
    plot.axes("GB written by the host in this step", "NAND / host bytes")
    return plot.text()


def lines(run: Table, row: Row) -> list[str]:
    """What a wear step has found, in sentences."""
    event, drive, slices = row.result, run.data.header["drive"], slices_of(row)
    last = slices[-1]
    ended = f"; it ended: {event['stop']}" if event["stop"] else ""
    out = [f"{size(last.host_bytes)} written in {last.number} slices{ended}"]
    if event["wa"] is not None:
        out.append(f"write amplification {digits(event['wa'], 3)} over all slices")
    out += [f"predicted at {one['at_percent']:g} % used: {_end(one)}" for one in event["ends"][:1] if one["host_bytes"]]
    if (last.percentage_used or 0) < worn.WORN_PERCENT:
        end = event["end"]
        out.append(f"predicted now: {_end(end)}" if end["host_bytes"] else f"no prediction: {end['why']}")
    bad = [f"{count} {word}" for word, count in event["verdicts"].items() if word != "good" and count]
    out.append(f"{event['samples_read']} sample blocks read back, {', '.join(bad) or 'all as they were written'}")
    states = {"percentage used": last.percentage_used, "spare in percent": last.spare_percent}
    states["media errors"] = last.media_errors
    out.append(", ".join(f"{what} {'not reported' if v is None else f'{v:g}'}" for what, v in states.items()))
    return out + _retention(drive, last)


def _end(end: Mapping) -> str:
    low, high = size(end["low_bytes"]), size(end["high_bytes"])
    return f"worn after {size(end['host_bytes'])} of this step, {low} to {high} (95 %, {end['ticks']} ticks)"


def _retention(drive: Mapping, last: worn.Slice) -> list[str]:
    """The hand-over to retention: how long the drive has to hold its data from now on."""
    kind = drive.get("rated_class")
    off_C = retention.REQUIREMENTS[kind].off_C if kind in retention.REQUIREMENTS else 25
    bound = retention.bound(kind, last.percentage_used, off_C)
    own = as_called(f"./ssdrig wear {drive.get('serial') or 'SERIAL'} --storage-temp")
    out = [f"retention: {bound['words']} For other temperatures: {own} 25"]
    return out + ([bound["explanation"]] if bound["explanation"] else [])


def _table(slices: Sequence[worn.Slice]) -> str:
    """The first, the last and some slices between."""
    every = max(1, -(-len(slices) // SHOWN))
    drawn = [part for i, part in enumerate(slices) if i % every == 0 or i == len(slices) - 1]
    body = []
    for s in drawn:
        counted = (s.percentage_used, s.spare_percent, s.media_errors, s.samples, s.bad, s.temperature_C)
        cells = (figure(s.host_bytes / GB), *("–" if count is None else number(count, 0) for count in counted))
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        body.append(f'<tr><th scope="row">{s.number}</th>{row}</tr>')
    head = "".join(f'<th scope="col">{word}</th>' for word in HEADS)
    return (
        f'<div class="scroll"><table class="steps"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody>'
        "</table></div>"
    )


HTML = {"wear": wear_view}  # view -> how it is drawn
