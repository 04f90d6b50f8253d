"""The view `retention`: the sealed blocks, those that survived, where the drive has become slow, its own activity."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.reading.row import Row
from ssdrig.retention import terms
from ssdrig.views import svg
from ssdrig.views.context import Context, figure, panel
from ssdrig.views.retention import sentences as retention_sentences
from ssdrig.views.terms import number

WIDTH, HEIGHT, LOW = 960, 240, 120
BINS = 240  # of bad blocks over the drive
MOST_RUNS = 200  # of bad blocks in the table
COLOURS = {layouts.COLD: "--blue", layouts.MOVED: "--orange", layouts.BASELINE: "--grey"}


def retention_view(context: Context) -> str:
    """All panels, by step and run."""
    out = []
    for path in context.paths:
        for run, name in context.runs():
            row = next((r for r in run.rows if r.act.path == path and r.result.get("kind") == "retention"), None)
            title = context.title("Retention", "", path) + name
            out += list(_panels(row, title, name)) if row else [panel(title, "", "The step was not run.", "wide")]
    return "".join(out)


def _panels(row: Row, title: str, name: str) -> Iterator[str]:
    event = row.result
    lost = any(reading["bad"] for reading in event["passes"])
    first = f'<p class="{"warn" if lost else "verdict"}"><b>{escape(retention_sentences.verdict(event))}</b></p>'
    yield panel(
        title, first + "".join(f"<p>{escape(line)}</p>" for line in retention_sentences.lines(event)[1:]), "", "wide"
    )
    manifest = event["manifest"]
    if not manifest:
        return
    at = layouts.of_json(manifest["layout"])
    piece_GiB = at.piece_bytes / (1 << 30)
    if event["phase"] == "write":
        pieces = [dict(zip(("piece", *terms.UNITS), values, strict=True)) for values in manifest["baseline"]["each"]]
        yield panel(f"Baseline{name}", _speeds(at, pieces, manifest["baseline"], "p99_us", "P99, µs"), _PIECES, "wide")
        return
    for n, judged in enumerate(event["passes"], 1):
        which = f"{name}, pass {n}" if len(event["passes"]) > 1 else name
        soft = f"{_PIECES} A piece is {figure(piece_GiB)} GiB; the line is the baseline."
        known = [piece for piece in judged["pieces"] if piece["blocks"]]
        for key, words in (("p99_us", "P99, µs"), ("MBps", "MB/s")):
            caption = f"{'Latency' if key == 'p99_us' else 'Speed'} along the drive{which}"
            yield panel(caption, _speeds(at, known, manifest["baseline"], key, words), soft, "wide")
        yield panel(f"Bad blocks along the drive{which}", _bad(at, judged), _table(judged), "wide")
    if event["counts"]:
        yield panel(f"What the drive counts{name}", _counters(event), "", "wide")


_PIECES = "Each mark is a piece, read once with one command of 128 KiB at a time."


def _speeds(at: layouts.Layout, pieces: Sequence[Mapping], baseline: Mapping, key: str, words: str) -> str:
    """A figure of each piece over the drive, by kind; the baseline as a line."""
    values = [piece[key] for piece in pieces] + [baseline[key] or 0]
    log = key == "p99_us"
    gib = at.region_bytes / (1 << 30)
    plot = svg.Plot(words, WIDTH, HEIGHT, (0.0, gib), svg.extent(values, log), y_log=log)
    plot.axes("GiB from the beginning of the drive", words)
    for kind, colour in COLOURS.items():
        points = [
            ((piece["piece"] + 0.5) * at.piece_bytes / (1 << 30), piece[key])
            for piece in pieces
            if layouts.kind(piece["piece"]) == kind
        ]
        plot.dots(points, f"stroke:var({colour});stroke-width:4")
    if baseline[key]:
        plot.line([(0.0, baseline[key]), (gib, baseline[key])], "stroke:var(--grey)")
        if log:
            limit = terms.SLOW * baseline[key]
            plot.line([(0.0, limit), (gib, limit)], "stroke:var(--review);stroke-dasharray:4 3")
    return plot.text() + _legend()


def _legend() -> str:
    names = {layouts.COLD: "written once", layouts.MOVED: "moved by the drive", layouts.BASELINE: "read before"}
    items = "".join(
        f'<li><span style="color:var({COLOURS[kind]})" aria-hidden="true">■</span> {escape(words)}</li>'
        for kind, words in names.items()
    )
    return f'<ul class="legend">{items}</ul>'


def _bad(at: layouts.Layout, judged: Mapping) -> str:
    """Bad blocks in bins over the drive, and their list."""
    if not judged["bad"]:
        return "<p>None.</p>"
    per_bin = max(1.0, at.region_bytes / at.block_bytes / BINS)
    bins = [0] * BINS
    for first, n, _ in judged["bad_runs"]:
        while n > 0:
            place = min(BINS - 1, int(first / per_bin))
            some = n if place == BINS - 1 else min(n, max(1, int((place + 1) * per_bin) - first))
            bins[place], first, n = bins[place] + some, first + some, n - some
    gib = at.region_bytes / (1 << 30)
    plot = svg.Plot("bad blocks", WIDTH, LOW + 60, (0.0, gib), svg.extent([float(b) for b in bins], False))
    plot.axes("GiB from the beginning of the drive", "bad blocks")
    for i, n in enumerate(bins):
        if n:
            plot.cell(i * gib / BINS, (i + 0.9) * gib / BINS, 0.0, float(n), "fill:var(--review)")
    rows = "".join(
        f"<tr><td>{number(first, 0)}</td><td>{number(n, 0)}</td><td>{escape(kind)}</td>"
        f"<td>{escape(terms.WORDS.get(kind, ''))}</td></tr>"
        for first, n, kind in judged["bad_runs"][:MOST_RUNS]
    )
    heads = "".join(f'<th scope="col">{h}</th>' for h in ("First block", "Blocks", "Class", "Meaning"))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return plot.text() + f'<details><summary>The blocks</summary><div class="scroll">{table}</div></details>'


def _table(judged: Mapping) -> str:
    rest = len(judged["bad_runs"]) - MOST_RUNS
    return f"{number(rest, 0)} further runs of blocks are in the run folder." if rest > 0 else ""


def _counters(event: Mapping) -> str:
    """What the drive counts, at the seal and at each reading since."""
    seal = event["manifest"]["seal"]["smart"]
    keys = [
        key for key in retention_sentences.COUNTERS if any(c.get(key) is not None for c in (seal, *event["counts"]))
    ]
    heads = ["", "sealed", "power-on", *(f"reading {n}" for n in range(2, len(event["counts"]) + 1))]
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in heads)
    body = ""
    for key in keys:
        cells = "".join(f"<td>{number(c.get(key), 0)}</td>" for c in (seal, *event["counts"]))
        body += f'<tr><th scope="row">{escape(retention_sentences.COUNTERS[key])}</th>{cells}</tr>'
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


HTML = {"retention": retention_view}  # view -> how it is drawn
