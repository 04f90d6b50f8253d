"""The view `cuts`: what a campaign of power cuts came to. The sentence, the bounds by aim and shape, each failing cut
with its proof, and what the cuts showed of the drive and of the harness."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from ssdrig.base.shipped import as_called
from ssdrig.plan.rules import chance
from ssdrig.powerloss import picture, tally
from ssdrig.reading import cuts
from ssdrig.reading.cuts import BIN_MS, POWER_NS, Evidence
from ssdrig.reading.row import Row, Table
from ssdrig.views import svg
from ssdrig.views.context import Context, panel
from ssdrig.views.cuts import sentences as cuts_sentences
from ssdrig.views.cuts.sentences import count, numbers, summed
from ssdrig.views.terms import number

MOST_PROOFS = 3  # of a cut, in sentences; the others are in its folder
MOST_FAILING = 60  # cuts with their proof in words
MOST_LINKS = 400  # numbers of cuts in one cell


def cuts_view(context: Context) -> str:
    """All panels of a campaign, by step and run."""
    out = []
    for path in context.paths:
        for run, name in context.runs():
            row = next((r for r in run.rows if r.act.path == path and r.result.get("kind") == "cuts"), None)
            if row is None:
                out.append(panel(context.title("Power cuts", "", path) + name, "", "No cut was made.", "wide"))
            else:
                out += list(_panels(run, row, context.title("Power cuts", "", path), name))
    return "".join(out)


def _panels(run_table: Table, row: Row, title: str, name: str) -> Iterator[str]:
    event = row.result
    run = run_table.run_folder
    where = cuts.folders(run, [record["cut"] for record in event["cuts"]])
    results, method = (
        "".join(f"<p>{escape(line)}</p>" for line in lines)
        for lines in (cuts_sentences.results(event), cuts_sentences.method(event))
    )
    bad = event["failing_cuts"] or event["failing_others"]
    # the page begins with the plan's headline, which gives the verdict and the chance
    sentence = cuts_sentences.damage(event) if run_table.plan.headline else cuts_sentences.verdict(event)
    first = f'<p class="{"warn" if bad else "verdict"}"><b>{escape(sentence)}</b></p>' if sentence else ""
    how = f"<details><summary>How it was tested</summary>{method}</details>"
    yield panel(title + name, first + results + how, "", "wide")
    yield panel(f"Verdicts by aim and shape{name}", _matrix(event), _MATRIX, "wide")
    seen = {
        record["cut"]: _evidence(record, where) for record in cuts.of_drive(event["cuts"]) if record["cut"] in where
    }
    yield from _failing(event, seen, where, run, name)
    if event.get("filesystems"):
        yield panel(f"File systems and databases{name}", _filesystems(event["filesystems"]), _ABOVE, "wide")
    yield from _timelines(event, seen, name)
    yield from _of_drive(event, seen, name)
    yield panel(f"The harness{name}", _harness(run_table, event), "", "wide")


def _evidence(record: Mapping, where: Mapping[int, Path]) -> Evidence:
    """The fall is left out that a rig has seen of another drive."""
    fired_ns = None if record.get("power_why") else record.get("fired_ns")
    return cuts.evidence(where[record["cut"]], fired_ns)


_MATRIX = (
    "Aim: the moment that the cuts were timed to; shape: how the power fell."
    " Cuts after which damage was found, of all cuts, and the bound on the chance per cut (one-sided, 95 %,"
    " Clopper-Pearson, of all cuts that may have done it). A cut may show several classes."
    f" {chance.NO_SAMPLES}"
)


def _matrix(event: Mapping) -> str:
    """Strata as rows, classes as columns."""
    names = list(event["classes"])
    heads = ["Aim", "Shape", "Broke a promise", "Chance per cut"]
    heads += [name if cuts.is_certain(name) else f"{name} ({cuts.standing_of(name)})" for name in names]
    body = []
    rows = [(stratum["aim"], stratum["shape"], stratum) for stratum in event["strata"]]
    for aim, shape, row in rows:
        cells = [_cell(row["numbers"], row["cuts"]), f"&lt; {chance.percent(row['bound'])}"]
        cells += [_cell(event["classes"][name].get(f"{aim} {shape}", []), row["cuts"]) for name in names]
        body.append(_row(escape(aim), escape(shape), cells))
    if len(rows) > 1:
        cells = [_cell(event["failing_cuts"], event["judged"]), f"&lt; {chance.percent(event['bound'])}"]
        for name in names:
            cells.append(_cell(sorted({n for of in event["classes"][name].values() for n in of}), event["judged"]))
        body.append(_row("this mix", "", cells))
    head = "".join(
        f'<th scope="col"{_tip(heading.partition(" ")[0] in names, heading)}>{escape(heading)}</th>'
        for heading in heads
    )
    table = f'<table class="matrix cuts"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _tip(known: bool, heading: str) -> str:
    return f' title="{escape(cuts.words_of(heading.partition(" ")[0]))}"' if known else ""


def _row(aim: str, shape: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{aim}</th><td>{shape}</td>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _cell(of: Sequence[int], cut: int) -> str:
    """ "3 / 50", which opens to the list of the cuts."""
    if not of:
        return f"0 / {cut}"
    links = ", ".join(f'<a href="#cut-{n}">{n}</a>' for n in of[:MOST_LINKS])
    more = f" and {len(of) - MOST_LINKS} more" if len(of) > MOST_LINKS else ""
    return f'<details class="cell"><summary><b>{len(of)}</b> / {cut}</summary>{links}{more}</details>'


def _failing(event: Mapping, seen: Mapping[int, Evidence], where: Mapping[int, Path], run: Path, name: str):
    """Each failing cut with what speaks for it."""
    accused = [r for r in event["cuts"] if r.get("failed")]
    suspects = [r for r in event["cuts"] if r["cut"] in event["suspicious_cuts"]]
    shown = set(cuts.in_detail(event["cuts"]))
    for record in accused[:MOST_FAILING]:
        evidence = seen.get(record["cut"])
        if evidence is None and record["cut"] in where:
            evidence = _evidence(record, where)
        what = "Cut" if tally.is_cut(record) else "Session"
        title = f"{what} {record['cut']}{name}: {', '.join(record['findings'])}"
        body = _facts(record) + _proof(record, evidence)
        if evidence is not None and record["cut"] in shown:
            body += one_cut(record, evidence, event["power_W"].get(str(record["cut"]), []), title)
        folder = where.get(record["cut"])
        soft = f"Evidence: {folder.relative_to(run)}" if folder else "The folder of this session is not there."
        yield _anchored(record["cut"], panel(title, body, soft, "wide"))
    rest = accused[MOST_FAILING:]
    if rest:
        links = numbers([r["cut"] for r in rest])
        yield panel(
            f"Further failing cuts{name}", f"<p>{escape(links)}: their proofs are in their folders.</p>", "", "wide"
        )
    if suspects:
        body = "".join(
            f'<li id="cut-{r["cut"]}">Cut {r["cut"]}, {escape(_how(r))}: '
            + "; ".join(f"{escape(c)}, {escape(cuts.words_of(c))}" for c in r["findings"])
            + "</li>"
            for r in suspects[:MOST_FAILING]
        )
        soft = "A suspicion is not a failure: it names the evidence that would prove one."
        yield panel(f"Suspicions{name}", f"<ul>{body}</ul>", soft, "wide")


_ABOVE = (
    "Records that fsync or COMMIT had acknowledged before power returned, and those that survived. A loss is the"
    " drive's fault if the block test proves a broken promise in the same session."
)


def _filesystems(rows: Sequence[Mapping]) -> str:
    """A row for each file system and each of its clients."""
    heads = ("Client", "Promised", "Left", "Lost", "Corrupt", "Extra", "Failing sessions", "By the drive")
    body = []
    for row in rows:
        counts = [str(row[key]) if row["client"] else "" for key in ("promised", "left", "lost", "corrupt", "extra")]
        failing = f"{len(row['failing'])} / {row['sessions']}"
        failing += f": {escape(numbers(row['failing']))}" if row["failing"] else ""
        cells = [*counts, failing, str(row["by_drive"]) if row["failing"] else ""]
        named = row["client"] or f"mounted, consistent ({row['options']})"
        body.append(_row(escape(row["filesystem"]), escape(named), cells))
    head = "".join(f'<th scope="col">{words}</th>' for words in ("File system", *heads))
    table = f'<table class="matrix cuts"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _anchored(cut: int, html: str) -> str:
    return html.replace("<figure", f'<figure id="cut-{cut}"', 1)


def _how(record: Mapping) -> str:
    return f"{record.get('aim')} {record.get('shape')}, seed {record.get('seed')}"


def _facts(record: Mapping) -> str:
    facts = [_how(record)]
    for key, words in (("delta_flush_us", "FLUSH submitted"), ("delta_ack_us", "acknowledged")):
        us = record.get(key)
        if us is not None:
            facts.append(f"{words} {number(abs(us) / 1e3, 3)} ms {'before' if us >= 0 else 'after'} the cut")
    if record.get("in_flight") is not None:
        facts.append(f"{count(record['in_flight'], 'command')} under way")
    if record.get("ready_s") is not None:
        facts.append(f"ready after {number(record['ready_s'], 2)} s")
    blocks = ", ".join(f"{name} on {count(n, 'block')}" for name, n in record["findings"].items())
    return f'<p class="soft">{escape("; ".join(facts))}.</p><p>{escape(blocks)}.</p>'


def _proof(record: Mapping, evidence: Evidence | None) -> str:
    proofs = evidence.proofs if evidence else []
    words = [str(line) for line in record.get("words") or []]
    out = [f"<p>{escape(line)}</p>" for line in words]
    if not proofs and not words:
        return "<p>The proof is missing or damaged.</p>"
    for proof in proofs[:MOST_PROOFS]:
        sentences = proof.get("sentences") if isinstance(proof, Mapping) else None
        out.append(f"<p class=proof>{escape(' '.join(str(line) for line in sentences or ['not readable']))}</p>")
    left = sum(record["findings"].values()) - min(len(proofs), MOST_PROOFS) - len(words)
    return "".join(out) + (f'<p class="soft">{count(left, "more block")} alike.</p>' if left > 0 else "")


def _timelines(event: Mapping, seen: Mapping[int, Evidence], name: str):
    """All cuts in one picture, and some clean ones one by one."""
    pictures = {n: evidence.picture for n, evidence in seen.items() if evidence.picture is not None}
    judged = cuts.of_drive(event["cuts"])
    lacking = len(judged) - len(pictures)
    soft = (
        "Purple: a FLUSH, from its submission to its acknowledgement. Grey: writes under way. Red: a write that had to"
    )
    soft += " survive and is lost. Sorted by the distance to the nearest FLUSH."
    soft += f" {count(lacking, 'cut')} without a picture." if lacking else ""
    if pictures:
        title = f"All cuts{name}"
        yield panel(title, all_cuts(judged, pictures, title), soft, "wide")
    for record in judged:
        if record["cut"] in cuts.in_detail(event["cuts"]) and not record.get("failed") and record["cut"] in seen:
            title = f"Cut {record['cut']}{name}: clean"
            watts = event["power_W"].get(str(record["cut"]), [])
            body = one_cut(record, seen[record["cut"]], watts, title)
            yield _anchored(record["cut"], panel(title, body, f"{_how(record)}. {_LEGEND}", "wide"))


_LEGEND = (
    "Blue: rail. Orange: power, mean of 5 ms. Grey and green: writes submitted and acknowledged in each ms. Purple:"
    " FLUSH. Light blue: write with FUA."
)


def _of_drive(event: Mapping, seen: Mapping[int, Evidence], name: str):
    """Cache, detection, falls, recovery, capacitors, counters."""
    window = event["window"]
    if window:
        title = f"Volatile window{name}"
        yield panel(title, ages(window, title) + f"<p>{escape(_window(window))}</p>", _AGES, "wide")
    else:
        why = "no write was seen that the drive may lose" if event["pictures"] else "no picture of a session was kept"
        yield panel(f"Volatile window{name}", "", f"Not known: {why}.", "wide")
    if event["detection"]:
        title = f"Cuts by their distance to a FLUSH{name}"
        soft = "Bins of 0.2 ms; red: cuts that broke a promise. An empty bin was never tried."
        yield panel(title, detection(event["detection"], title), soft, "wide")
    shapes = {record["cut"]: str(record.get("shape")) for record in event["cuts"]}
    curves = [
        (shapes[n], evidence) for n, evidence in seen.items() if evidence.volts is not None and len(evidence.volts)
    ]
    if curves:
        title = f"Falls of the rail{name}"
        soft = f"{len(curves)} recorded; shaded: from the lowest to the highest."
        yield panel(title, falls(curves, title) + _numbers(event, FALLS), soft, "wide")
    else:
        yield panel(f"Falls of the rail{name}", _numbers(event, FALLS), "No waveform was recorded.", "wide")
    for key, y_title, title, soft in (
        ("ready_s", "s", "Recovery: power to the first block read", ""),
        ("recharge_J", "J", "Recharge energy after power-on", _RECHARGE),
        ("boot_J", "J", "Energy of the start", ""),
    ):
        at, value = cuts.values(event["cuts"], *cuts.SUMMED[key])
        if not len(value):
            if key != "boot_J":
                yield panel(f"{title}{name}", "", f"Not known: no cut has it. {soft}")
            continue
        words = f"<p>{escape(summed(event, key, y_title))}.{escape(_slow(at, value) if key == 'ready_s' else '')}</p>"
        if key == "recharge_J" and event["capacitors"]:
            health, error = event["capacitors"]["percent"], event["capacitors"]["error_percent"]
            words += f"<p>At the last cut {number(health, 1)} ± {number(error, 1)} % of the first one's.</p>"
        trend = (event[key] or {}).get("trend")
        yield panel(f"{title}{name}", over_cuts(at, value, y_title, title, trend) + words, soft)
        if key == "ready_s":
            yield panel(f"{title}, how often{name}", histogram(value, "s", title))
    rows = "".join(
        f'<tr><th scope="row">{escape(what)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for what, *cells in cuts_sentences.smart(event)
    )
    head = "".join(f'<th scope="col">{words}</th>' for words in ("Counter", "first poll", "last poll", "per 100 cuts"))
    table = f'<table class="matrix"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    body = f'<div class="scroll">{table}</div>' if rows else ""
    unsafe = event["unsafe_shutdowns"]
    soft = (
        "" if unsafe is None else f"{unsafe} unsafe shutdowns were counted over {count(event['judged'], 'judged cut')}."
    )
    yield panel(f"SMART over the cuts{name}", body, soft if body else f"The drive was not polled. {soft}")


_AGES = (
    "Dots: share of the acknowledged writes of that age that are gone, among those that no promise covers. Grey: the"
    " number of these writes."
)
_RECHARGE = (
    "What a start after a cut takes more than one after an announced shutdown: what charges the drive's capacitors. A"
    " falling trend is a loss of their capacity. Their own hold-up cannot be seen on the rail."
)
FALLS = (
    ("t90_10_us", "90 % to 10 %", "ms", 1e-3),
    ("holdup_us", "Hold-up: edge to knee", "ms", 1e-3),
    ("knee_uV", "Knee", "V", 1e-6),
    ("residual_uV", "Residual", "V", 1e-6),
    ("off_s", "Without power", "s", 1.0),
)


def _numbers(event: Mapping, of: Sequence[tuple]) -> str:
    cells = [(words, summed(event, key, *how) or "not known") for key, words, *how in of]
    body = "".join(f'<tr><th scope="row">{words}</th><td>{escape(text)}</td></tr>' for words, text in cells)
    return f'<table class="numbers wraps prose"><tbody>{body}</tbody></table>'


def _slow(at, value) -> str:
    """Names the cuts after which the drive took much longer than usual."""
    slow = [int(n) for n, v in zip(at, value, strict=True) if v > cuts.SLOW * float(sorted(value)[len(value) // 2])]
    return f" More than {cuts.SLOW:g} times the median after cut {numbers(slow)}." if slow else ""


def _window(window: Mapping) -> str:
    if not window["oldest_ms"]:
        return "No acknowledged write was lost."
    low, *high = window["oldest_ms"]
    out = f"The oldest write that was lost was {low}" + (f" to {high[0]}" if high else "") + " ms old"
    if window["window_ms"] is not None:
        out += f"; {number(window['window_ms'], 1)} ms part lost from kept ones best"
        out += f", with {number(100 * window['wrong'], 1)} % on the wrong side"
    share = 100 * window["suffix_lost"] / window["newer"] if window["newer"] else 100.0
    out += f". Of the writes no older than the oldest lost one, {number(share, 1)} % are lost"
    out += ": a suffix" if share > 99.9 else ": scattered, no order is promised without a FLUSH"
    return out + f". At most {cuts_sentences.size(window['lost_bytes_most'])} were lost in one cut."


def _harness(table: Table, event: Mapping) -> str:
    header, begun, bound = table.data.header, event["begun"] or {}, event["bound_ns"]
    plan, seed = header.get("plan", {}), begun.get("seed", header.get("method", {}).get("seed"))
    rows = [("Cuts judged", f"{event['judged']}, {len(event['excluded'])} left out, {len(event['controls'])} control")]
    if bound:
        us = f"median {number(bound['median'] / 1e3, 0)} µs, at most {number(bound['most'] / 1e3, 0)} µs"
        rows.append(("Time of the cut on the host's clock, bound", us))
    rows.append(("Written in all", cuts_sentences.written(event)))
    rows += [("Not tested", "; ".join(map(str, begun["cannot"])))] if begun.get("cannot") else []
    rows.append(("Seed", str(seed)))
    again = f"./ssdrig run {plan.get('name')} … --only-cut N --seed {seed}, with the drive and the options of this run"
    rows.append(("To repeat session N", as_called(again)))
    host = header.get("host") or {}
    versions = [f"ssdrig {header.get('ssdrig')}", f"kernel {host.get('kernel')}", f"Python {host.get('python')}"]
    rows.append(("Versions", ", ".join(versions)))
    body = "".join(f'<tr><th scope="row">{a}</th><td>{escape(b)}</td></tr>' for a, b in rows)
    out = f'<table class="numbers wraps prose"><tbody>{body}</tbody></table>'
    for title, of in (("Left out", event["excluded"]), ("Control sessions", event["controls"])):
        lines = "".join(f"<li>{escape(_line(one))}</li>" for one in of[:MOST_LINKS])
        out += f"<details><summary>{title}: {len(of)}</summary><ul>{lines}</ul></details>" if of else ""
    return out


def _line(one: Mapping) -> str:
    if "control" in one:
        return f"{one['cut']}, {one['control']}: {'clean' if one['ok'] else one['why'] or 'FAILED'}"
    return f"{one['cut']}: {one['why']}"


HTML = {"cuts": cuts_view}  # view -> how it is drawn


WIDTH = 960
FAR_MS, NEAR_MS, PAST_MS = -picture.BEFORE_MS, -20.0, 15.0  # of one cut: left of NEAR_MS the axis is compressed
NEAR_PX = 330  # where the axis changes its scale
COARSE = 10
LANES = {"rail": (12, 92), "load": (106, 166), "marks": (180, 232)}
ALL_MS = (-20.0, 2.0)  # of all cuts
FALL_MS = (-1.0, 12.0)
FALL_POINTS, MOST_FALLS = 110, 48


class Time:
    """ms from the cut -> px; two straight pieces."""

    def __init__(self, from_px: float, to_px: float):
        self.pieces = [(FAR_MS, NEAR_MS, from_px, NEAR_PX), (NEAR_MS, PAST_MS, NEAR_PX, to_px)]

    def __call__(self, ms: float) -> float:
        low, high, a, b = self.pieces[0] if ms < NEAR_MS else self.pieces[1]
        return round(a + (min(high, max(low, ms)) - low) / (high - low) * (b - a), 1)


def one_cut(record: Mapping, seen: Evidence, watts: Sequence[float | None], title: str) -> str:
    """A cut over time: rail and power, writes submitted and acknowledged, FLUSHes, FUA, lost blocks."""
    x = Time(46.0, WIDTH - 46.0)
    out = [f'<path class="grid" d="M{x(0)} 8V236M{NEAR_PX} 8V236"/>']
    for ms in (-300, -200, -100, -15, -10, -5, 0, 5, 10):
        out.append(f'<text x="{x(ms)}" y="250" class="mid small">{number(ms, 0)}</text>')
    middle = (46 + WIDTH - 46) / 2
    out.append(f'<text x="{middle}" y="264" class="mid small soft">ms from the cut; the scale changes at −20 ms</text>')
    for top, bottom in LANES.values():
        out.append(f'<path class="axis" d="M46 {top}V{bottom}H{WIDTH - 46}"/>')
    out += _power(x, watts) + _rail(x, seen)
    if seen.picture is not None:
        out += _load(x, seen.picture) + _marks(x, seen.picture)
    else:
        out.append('<text x="60" y="140" class="small soft">no picture of its commands was kept</text>')
    label = f"{title}: rail, power, writes, FLUSH and FUA around the cut"
    return (
        f'<svg class="plot cut" viewBox="0 0 {WIDTH} 268" role="img" aria-label="{escape(label)}">'
        + "".join(out)
        + "</svg>"
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if i else 'M'}{a} {b}" for i, (a, b) in enumerate(points))


def _lane(name: str, high: float) -> svg.Axis:
    top, bottom = LANES[name]
    return svg.Axis(0.0, high, bottom, top)


def _rail(x: Time, seen: Evidence) -> list[str]:
    if seen.volts is None or seen.since_edge_us is None or not len(seen.volts):
        return ['<text x="340" y="24" class="small soft">the fall was not recorded</text>']
    y = _lane("rail", 1.1 * max(0.1, float(seen.volts.max())))
    every = max(1, len(seen.volts) // 300)
    points = [
        (x(us / 1e3), y(float(v))) for us, v in zip(seen.since_edge_us[::every], seen.volts[::every], strict=True)
    ]
    top, _ = LANES["rail"]
    high = float(seen.volts.max())
    return [
        f'<path class="line" style="stroke:var(--blue)" d="{_path(points)}"/>',
        f'<text x="{WIDTH - 42}" y="{y(high) + 4}" class="small">{number(high, 1)} V</text>',
        f'<text x="{WIDTH - 42}" y="{top + 70}" class="small soft">rail</text>',
    ]


def _power(x: Time, watts: Sequence[float | None]) -> list[str]:
    known = [w for w in watts if w is not None]
    if not known:
        return []
    y = _lane("rail", 1.15 * max(0.1, *known))
    step_ms, out, points = POWER_NS / 1e6, [], []
    for i, w in enumerate([*watts, None]):
        if w is not None:
            at = FAR_MS + i * step_ms
            points += [(x(at), y(w)), (x(at + step_ms), y(w))]
        elif points:
            out.append(f'<path class="line" style="stroke:var(--orange)" d="{_path(points)}"/>')
            points = []
    return [*out, f'<text x="42" y="22" class="end small">{number(max(known), 1)} W</text>']


def _load(x: Time, of: Mapping) -> list[str]:
    submitted, acknowledged = of["ticks"]["submitted"], of["ticks"]["acknowledged"]
    most = max(1, *submitted, *acknowledged)
    y, out = _lane("load", 1.1 * most), []
    for counts, colour in ((submitted, "--grey"), (acknowledged, "--green")):
        points: list[tuple[float, float]] = []
        for begin, end in _steps(len(counts)):
            mean = sum(counts[begin:end]) / (end - begin)
            points += [(x(FAR_MS + begin), y(mean)), (x(FAR_MS + end), y(mean))]
        out.append(f'<path class="line thin" style="stroke:var({colour})" d="{_path(points)}"/>')
    return [*out, f'<text x="42" y="{LANES["load"][0] + 8}" class="end small">{most}</text>']


def _steps(of: int) -> list[tuple[int, int]]:
    """Bins of a ms where the axis is stretched, COARSE of them together before."""
    near, past = int(NEAR_MS - FAR_MS), min(of, int(PAST_MS - FAR_MS))
    return [(i, min(i + COARSE, near)) for i in range(0, near, COARSE)] + [(i, i + 1) for i in range(near, past)]


def _marks(x: Time, of: Mapping) -> list[str]:
    top, _ = LANES["marks"]
    flushes, fuas = [], []
    for submit, done in of["flushes"]:
        end = x(0.0 if done is None else done / 1e3)
        flushes.append(
            f"M{x(submit / 1e3)} {top + 2}v12M{x(submit / 1e3)} {top + 8}H{end}" + "v-6v12v-6" * (done is not None)
        )
    for submit, done in of["fuas"]:
        end = x(0.0 if done is None else done / 1e3)
        fuas.append(f"M{x(submit / 1e3)} {top + 24}H{max(end, x(submit / 1e3) + 1)}")
    out = [
        f'<path class="line" style="stroke:var(--purple)" d="{"".join(flushes)}"/>',
        f'<path class="line" style="stroke:var(--sky);stroke-width:4" d="{"".join(fuas)}"/>',
        f'<text x="42" y="{top + 12}" class="end small">FLUSH</text>',
        f'<text x="42" y="{top + 28}" class="end small">FUA</text>',
        f'<text x="42" y="{top + 44}" class="end small">fate</text>',
    ]
    since = of["in_flight"]["since_us"]
    if since is not None:
        out.append(
            f'<path class="line" style="stroke:var(--grey);stroke-width:4" d="M{x(since / 1e3)} {top + 40}H{x(0)}">'
            f"<title>{of['in_flight']['count']} writes under way</title></path>"
        )
    for key, colour, words in (
        ("volatile_us", "--orange", "oldest write lost that had not to survive"),
        ("lost_us", "--review", "first write lost that had to survive"),
    ):
        if of[key] is not None:
            ms = of[key] / 1e3
            out.append(
                f'<path d="{svg.MARKS["down" if key == "lost_us" else "diamond"]}" style="fill:var({colour})"'
                f' transform="translate({x(ms)} {top + 40}) scale(5)">'
                f"<title>{words}, acknowledged {number(-ms, 3)} ms before the cut</title></path>"
            )
    return out


def all_cuts(records: Sequence[Mapping], pictures: Mapping[int, Mapping], title: str) -> str:
    """A row for each cut, sorted by its distance to the nearest FLUSH: its FLUSHes, the commands under way, the lost
    blocks."""
    rows = sorted((r for r in records if r["cut"] in pictures), key=_by_delta)
    tall = min(12.0, max(1.5, 700 / max(1, len(rows))))
    x = svg.Axis(*ALL_MS, 46, WIDTH - 12)
    paths: dict[str, list[str]] = {"--grey": [], "--purple": []}
    marks = []
    for i, record in enumerate(rows):
        of, y = pictures[record["cut"]], round(10 + (i + 0.5) * tall, 1)
        since = of["in_flight"]["since_us"]
        if since is not None:
            paths["--grey"].append(f"M{x(since / 1e3)} {y}H{x(0)}")
        for submit, done in of["flushes"]:
            end = max(0.0, submit / 1e3) if done is None else done / 1e3
            if end > ALL_MS[0] and submit / 1e3 < ALL_MS[1]:
                paths["--purple"].append(f"M{x(submit / 1e3)} {y}H{max(x(end), x(submit / 1e3) + 1)}")
        if of["lost_us"] is not None:
            words = f"cut {record['cut']}: a write that had to survive is lost"
            place = f"translate({x(of['lost_us'] / 1e3)} {y}) scale(4)"
            shape = f'<path d="{svg.MARKS["down"]}" style="fill:var(--review)" transform="{place}">'
            marks.append(f"{shape}<title>{words}</title></path>")
    height = round(10 + len(rows) * tall)
    out = [f'<path class="grid" d="M{x(0)} 6V{height}"/><path class="axis" d="M46 6V{height}H{WIDTH - 12}"/>']
    wide = max(1.0, round(0.7 * tall, 1))
    for colour, pieces in paths.items():
        kind = "wide" if colour == "--grey" else ""
        style = f"stroke:var({colour});stroke-width:{wide}" + (";opacity:.5" if kind else "")
        out.append(f'<path class="line" style="{style}" d="{"".join(pieces)}"/>')
    for ms in (-20, -15, -10, -5, 0):
        out.append(f'<text x="{x(ms)}" y="{height + 16}" class="mid">{number(ms, 0)}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{height + 32}" class="mid soft">ms from the cut, a row for each cut</text>')
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height + 38}" role="img" aria-label="{escape(title)}">'
        + "".join(out + marks)
        + "</svg>"
    )


def _by_delta(record: Mapping) -> tuple[bool, float]:
    delta = record.get("delta_flush_us")
    return delta is None, delta or 0.0


def ages(window: Mapping, title: str) -> str:
    """The chance that an acknowledged write was lost, over its age at the cut; grey: the number of these writes."""
    surviving, lost = np.array(window["kept"]), np.array(window["lost"])
    total = surviving + lost
    last = min(len(total), int(np.flatnonzero(total).max()) + 2)
    plot = svg.Plot(title, WIDTH, 260, (0.0, float(last)), (0.0, 100.0))
    edges = picture.AGES_MS
    for i in np.flatnonzero(total):
        plot.cell(i + 0.1, i + 0.9, 0.0, 100 * float(total[i] / total.max()), "fill:var(--grid)")
    for i in np.flatnonzero(total):
        share = 100 * float(lost[i] / total[i])
        words = f"{edges[i]} ms and older: {lost[i]} of {total[i]} lost"
        plot.mark(i + 0.5, share, {"shape": "circle", "colour": "--blue"}, words, 3)
    every = max(1, last // 12)
    plot.axes("age at the cut, ms", "lost, %", [(i, str(edges[i])) for i in range(0, last, every) if i < len(edges)])
    return plot.text()


def detection(bins: Sequence[Mapping], title: str) -> str:
    """Cuts, and failing cuts, by their distance to the nearest FLUSH."""
    low, high = bins[0]["from_ms"], bins[-1]["from_ms"] + BIN_MS
    most = max(row["cuts"] for row in bins)
    plot = svg.Plot(title, WIDTH, 240, (low, high), (0.0, 1.1 * max(1, most)))
    for interval in bins:
        at = interval["from_ms"]
        plot.cell(at, at + 0.9 * BIN_MS, 0.0, interval["cuts"], "fill:var(--grey)")
        if interval["failing"]:
            plot.cell(at, at + 0.9 * BIN_MS, 0.0, interval["failing"], "fill:var(--review)")
    plot.axes("ms from the submission of the nearest FLUSH to the cut", "cuts")
    return plot.text()


def falls(waveforms: Sequence[tuple[str, Evidence]], title: str) -> str:
    """All falls on one axis: the band of all of them, and a line for some; `waveforms`: (shape, evidence with V)."""
    grid = np.linspace(*FALL_MS, FALL_POINTS)
    shapes = sorted({shape for shape, _ in waveforms})
    looks = {shape: svg.look(i) for i, shape in enumerate(shapes)}
    curves = [
        (shape, np.interp(grid, seen.since_edge_us / 1e3, seen.volts, np.nan, np.nan))
        for shape, seen in waveforms
        if seen.since_edge_us is not None and seen.volts is not None
    ]
    all_of = np.array([curve for _, curve in curves])
    most = float(np.nanmax(all_of))
    plot = svg.Plot(title, WIDTH, 280, FALL_MS, (0.0, 1.08 * max(0.1, most)))
    for shape in shapes:
        own = np.array([curve for name, curve in curves if name == shape])
        some = np.isfinite(own).all(axis=0)
        low, high = own[:, some].min(axis=0), own[:, some].max(axis=0)
        outline = [*zip(grid[some], high, strict=True), *reversed(list(zip(grid[some], low, strict=True)))]
        around = _path([(plot.x(float(a)), plot.y(float(b))) for a, b in outline])
        plot.out.append(f'<path style="fill:var({looks[shape]["colour"]});opacity:.18" d="{around}z"/>')
    every = max(1, -(-len(curves) // MOST_FALLS))
    for shape, curve in curves[::every]:
        points = [(float(a), float(b)) for a, b in zip(grid, curve, strict=True)]
        plot.line(points, f"stroke:var({looks[shape]['colour']});stroke-width:1;opacity:.6")
    plot.axes("ms from the cut", "V")
    return plot.text() + svg.legend(shapes, [looks[shape] for shape in shapes])


def over_cuts(at: np.ndarray, value: np.ndarray, y_title: str, title: str, line: Mapping | None = None) -> str:
    """A value of each cut over the cuts, with the straight line through them."""
    low, high = svg.extent(value.tolist(), False)
    if float(value.min()) > 0.5 * high:  # a trend of some percent is to be seen
        low = float(value.min()) - 0.1 * (high - float(value.min()))
    plot = svg.Plot(title, 470, 240, (0.0, float(at.max()) + 1), (low, high))
    plot.dots([(float(a), float(b)) for a, b in zip(at, value, strict=True)], "stroke:var(--blue);stroke-width:4")
    if line:
        ends = (float(at.min()), float(at.max()))
        middle = float(at.mean())
        plot.line(
            [(a, line["mean"] + line["per_100"] / 100 * (a - middle)) for a in ends], "stroke:var(--review)", "dashed"
        )
    plot.axes("cut", y_title)
    return plot.text()


def histogram(value: np.ndarray, x_title: str, title: str) -> str:
    """How often a value was seen, in twenty bins."""
    counts, edges = np.histogram(value, bins=min(20, max(4, len(value) // 3)))
    plot = svg.Plot(title, 470, 240, (float(edges[0]), float(edges[-1])), (0.0, 1.1 * max(1, int(counts.max()))))
    for n, a, b in zip(counts, edges[:-1], edges[1:], strict=True):
        if n:
            plot.cell(float(a), float(a + 0.92 * (b - a)), 0.0, float(n), "fill:var(--blue)")
    plot.axes(x_title, "cuts")
    return plot.text()
