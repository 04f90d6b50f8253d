"""Reads one [[show]] of a PTS plan's page back and holds each of its numbers against what was put into the run."""

import re

import page_reader
import pts_runs
import pytest
import synthetic_plan
from page_reader import value

from ssdrig.base.words import clock
from ssdrig.plan import shows
from ssdrig.plan.kinds import load
from ssdrig.report import page
from ssdrig.views import context

UNITS = {"ms": 1000.0}  # of a figure whose word is in µs
DIGITS = 0.0052  # three digits


class Case:
    """One [[show]] of a plan's page beside what was put into the run."""

    def __init__(self, w, table_, show):
        self.w, self.table_, self.show = w, table_, show
        self.html = page.html_of(show["view"])(context.Context([table_], ["run"], show))
        self.panels = page_reader.panels(self.html)
        self.words = shows.listed(show.get("value"))
        self.paths = shows.listed(show.get("of"))
        self.log = show.get("scale") == "log"
        self.where = dict(word.split("=") for word in str(show.get("where", "")).split())

    def labels(self, path: str, where=None) -> list[str]:
        wanted = self.where | {key: str(v).replace(" ", "") for key, v in (where or {}).items()}
        return [
            label
            for label, act in self.w.acts.items()
            if (act.path == path or act.path.startswith(path + "/"))
            and all(str(act.point.get(key)).replace(" ", "") == v for key, v in wanted.items())
        ]

    def puts(self, label: str) -> list:
        """What stands for a point: its last five rounds."""
        return [put for (of, _), put in self.w.put.items() if of == label][-5:]

    def number(self, label: str, word: str) -> float | None:
        act, puts = self.w.acts[label], self.puts(label)
        if not act.keys.get("off"):
            if self.show.get("window"):  # the last minute of a group, or the last 20 %
                (put,) = puts
                begin = put.seconds - 60 if act.path in ("before", "stimulus", "after") else 4 * put.seconds // 5
                cut = {key: getattr(put, key)[begin:] for key in ("reads", "writes", "watts")}
                return pts_runs.figures([put._replace(**cut)])[word]
            more = {"lat_mean_most": pts_runs.figures(puts)["lat_mean"] if puts[0].seconds >= 60 else None}
            more |= {"gap": self.w.gaps.get(label)}
            return (pts_runs.figures(puts) | more)[word]
        (put,), begin = puts, round(load.begins_s(act.keys))
        if self.show.get("window"):  # the last cycle
            begin = put.seconds - round(act.keys["off"]) - 5
        cut = put._replace(reads=put.reads[begin:], writes=put.writes[begin:], watts=put.watts[begin:])
        period, off = round(act.keys["off"]) + 5, round(act.keys["off"])
        pauses = [w for s, w in enumerate(cut.watts) if 1 <= s % period < off - 1]
        more = {"burst_iops": cut.ios / (5 * cut.seconds / period), "pause_W": sum(pauses) / len(pauses)}
        return (pts_runs.figures([cut]) | more)[word]

    def near(self, seen: float | None, wanted: float | None, title: str, word: str, half: float = 0.0) -> None:
        """`half`: of the last place of a printed figure, which ends where its error does."""
        if wanted is None or seen is None:
            assert seen is wanted, title
            return
        scale = next((UNITS[unit] for unit in UNITS if re.search(rf"\b{unit}\b", title)), 1)
        room = 0.02 if word in ("lat_p99", "lat_p99999", "lat_max") else DIGITS  # fio's bins
        assert seen * scale == pytest.approx(wanted, rel=room, abs=1.01 * half * scale), (title, word)


def matrix(case: Case) -> int:
    numbers = set()
    rows_key, columns_key = case.show["rows"], case.show["columns"]
    for word, panel in zip(case.words, case.panels, strict=True):
        (head, *lines) = panel.tables[0]
        assert head[0] == f"{context.axis(rows_key)} ↓ {context.axis(columns_key)} →"
        for row, *cells in lines:
            for column, cell in zip(head[1:], cells, strict=True):
                where = {rows_key: row.removesuffix(" %"), columns_key: column.removesuffix(" %")}
                (label,) = case.labels(case.paths[0], where)
                wanted = case.w.acts[label].keys["threads"] * (10 + list_of(case).index(label))
                wanted = case.number(label, word) if word != "host_cpu" else wanted
                case.near(value(cell), wanted, panel.title, word)
                numbers.add((word, cell))
        assert len(lines) * len(head[1:]) == len(list_of(case)) > 3
    cells = sum(len(list_of(case)) for _ in case.words)
    assert len(numbers) >= 0.9 * cells or "–" in {cell for _, cell in numbers}, "each cell has a number of its own"
    return cells


def list_of(case: Case) -> list[str]:
    return case.labels(case.paths[0])


def rounds(case: Case) -> int:
    seen, by = 0, case.show.get("by")
    for word, panel in zip(case.words, case.panels, strict=True):
        (plot,) = panel.plots
        page_reader.marks_lie_right(plot, case.log)
        for mark in plot.marks:
            number, point = re.match(r"round (\d+)(?:, ([^:]+))?: ", mark.words).groups()
            point = point and point.removeprefix(f"{context.axis(by)} ")
            (label,) = case.labels(case.paths[0], {by: point.removesuffix(" %")} if by else {})
            put = case.w.put[label, int(number)]
            case.near(value(mark.words.rpartition(": ")[2].split(" ")[0]), figure(put, word), mark.words, word)
            assert mark.x_px == plot.x_labels[number]
        assert len(plot.marks) == pts_runs.ROUNDS * len(case.labels(case.paths[0])) and plot.x_title == "round"
        seen += len(plot.marks)
    return seen


def figure(put, word: str):
    return pts_runs.figures([put])[word]


def lines(case: Case) -> int:
    seen = 0
    for word, panel in zip(case.words, case.panels, strict=True):
        (plot,) = panel.plots
        page_reader.marks_lie_right(plot, case.log)
        for mark in plot.marks:
            by, x = re.match(r"([^,]+), ([^:]+): ", mark.words).groups()
            by = by.removeprefix(f"{context.axis(case.show['by'])} ")
            (label,) = case.labels(case.paths[0], {case.show["by"]: by.removesuffix(" %"), case.show["x"]: x})
            case.near(value(mark.words.rpartition(": ")[2].split(" ")[0]), case.number(label, word), mark.words, word)
            assert mark.x_px == plot.x_labels[x]
        assert len(plot.marks) == len(list_of(case))
        seen += len(plot.marks)
    return seen


def steady(case: Case) -> int:
    verdicts = [verdict for path in case.paths for verdict in case.table_.verdicts if verdict.path == path]
    assert len(case.panels) == len(verdicts) > 0
    for one, panel in zip(verdicts, case.panels, strict=True):
        of = [label for label in case.w.acts if set(one.words.split()[1:]) <= set(label.split()[1:])]
        of = [label for label in of if label.startswith(one.path)]
        if one.words == "iops":  # records of a load
            (put,), params = case.puts(one.path), case.w.plan.params
            record, spaced = (int(params[key].removesuffix(" s")) for key in ("record", "spaced"))
            begins = range(0, put.seconds - record + 1, spaced)
            values = [sum(put.writes[begin : begin + record]) / record for begin in begins][-5:]
        else:
            word, label = one.words.split()[0], next(label for label in of if label.startswith(one.path + "/point"))
            values = [figure(put, word) for (label_of, _), put in case.w.put.items() if label_of == label]
        wanted = pts_runs.rule(values)
        (plot,), ((_, *_), *_) = panel.plots, panel.tables
        rows_ = {row[0]: row for row in panel.tables[0]}
        scale = 1000 if " ms" in rows_["Average"][1] else 1
        assert scale * value(rows_["Average"][1].split(" ")[0]) == pytest.approx(wanted["average"], rel=DIGITS)
        assert value(rows_["Data excursion"][1].split(" ")[0]) == pytest.approx(wanted["range"], abs=0.051)
        assert value(rows_["Slope excursion"][1].split(" ")[0]) == pytest.approx(wanted["slope"], abs=0.051)
        base, sign, m = re.match(r"(.+) ([+−]) (.+) × n", rows_["Line"][1]).groups()
        assert scale * value(base) == pytest.approx(wanted["b"], rel=DIGITS)
        assert scale * value(m) * (1 if sign == "+" else -1) == pytest.approx(wanted["m"], rel=DIGITS)
        assert rows_["Steady state"][1] == "yes" and wanted["range"] <= 20 and wanted["slope"] <= 10
        page_reader.marks_lie_right(plot)
        levels = [plot.y(line[0][1]) for line in plot.lines[:3]]
        ends = [plot.y(y) for _, y in plot.lines[3]]
        room = 0.03 * wanted["average"] / scale  # a pixel of an axis that holds round 1
        drawn = [*levels, *ends]
        average, m = wanted["average"] / scale, wanted["m"] / scale
        first = wanted["b"] / scale + m
        for seen, put_in in zip(drawn, (1.1 * average, average, 0.9 * average, first, first + 4 * m), strict=True):
            assert abs(seen - put_in) <= room
        assert len(plot.marks) == len(values)
    return len(verdicts)


def bars(case: Case) -> int:
    seen = 0
    cards = list(page_reader.bars(case.html).items())
    for word, (heading, cells) in zip(case.words, cards, strict=True):
        for name, cell in cells.items():
            path, *points = name.split(", ")
            where = dict(map(_point, points))
            (label,) = case.labels(path, where)
            if word == "wa":
                continue  # of SMART: see below
            decimals = len(cell.partition(".")[2])
            case.near(value(cell), case.number(label, word), heading, word, 0.5 * 10**-decimals)
            seen += 1
    return seen


def _point(words: str) -> tuple[str, str]:
    axes = {title: key for key, (title, _) in context.AXES.items()}
    title = next(title for title in axes if words.startswith(title + " "))
    return axes[title], words[len(title) + 1 :].removesuffix(" %")


def by_second(put, word: str) -> list[float]:
    counts = [a + b for a, b in zip(put.reads, put.writes, strict=True)]
    by_word = {
        "iops": counts,
        "MB/s": [n * put.block / 1e6 for n in counts],
        "W": put.watts,
        "uJ/IO": [1e6 * w / n if n else float("nan") for n, w in zip(counts, put.watts, strict=True)],
        "lat_mean": [put.write_ns / 1000 if n else float("nan") for n in counts],
        "lat_max": [put.write_ns / 1000 if n else float("nan") for n in counts],
    }
    return by_word[word]


def series(case: Case) -> int:
    if "along" in case.show:
        return along(case)
    seen = 0
    for word, panel in zip(case.words, case.panels, strict=True):
        if word in ("wa", "C"):
            continue  # of SMART: see below
        (plot,) = panel.plots
        scale = 1000 if " ms" in f" {plot.y_title}" else 1
        puts = [put for path in case.paths for label in case.labels(path) for put in case.puts(label)]
        drawn = _pieces(plot, len(puts))
        for put, points in zip(puts, drawn, strict=True):
            wanted = [v for v in by_second(put, word) if v == v]
            assert len(points) == len(wanted), (panel.title, len(points), len(wanted))
            step = (
                0.02 * (max(wanted) - min(wanted)) if word in ("W", "uJ/IO") else 0
            )  # the reading of 20 ms that holds a step
            for (_, y_px), number in zip(points, wanted, strict=True):
                room = 2 * plot.y_of_px(case.log) * scale + (0.02 if word == "lat_max" else 0.001) * number + step
                assert abs(scale * plot.y(y_px) - number) <= room, (panel.title, number)
            seen += len(points)
        if len(puts) == 1:
            assert [round(plot.x(x), 1) for x, _ in drawn[0]][:3] == pytest.approx([0.5, 1.5, 2.5], abs=0.2)
    return seen


def _pieces(plot, n: int) -> list:
    assert len(plot.lines) == n
    return plot.lines


def along(case: Case) -> int:
    """By the minute with a mark each, else each second over what the load had written by then."""
    seen = 0
    for word, panel in zip(case.words or ["iops"], case.panels, strict=True):
        (plot,), (put,) = panel.plots, case.puts(case.paths[0])
        counts, scale = put.writes, 1000 if " ms" in f" {plot.y_title}" else 1
        if case.show["along"] == "minutes":
            whole = len(counts) // 60
            sums = [sum(counts[60 * i : 60 * i + 60]) / 60 for i in range(whole)]
            wanted = sums if word == "iops" else [case.number(case.paths[0], word)] * whole
            page_reader.marks_lie_right(plot, case.log)
            for i, (mark, number) in enumerate(zip(plot.marks, wanted, strict=True), 1):
                assert mark.words.startswith(f"minute {i}: ") and plot.x(mark.x_px) == pytest.approx(i - 0.5, abs=0.01)
                case.near(value(mark.words.partition(": ")[2].split(" ")[0]), number, mark.words, "lat_max")
            left = page_reader.value(re.search(r"the last 10 s, (.+) I/Os, left out", panel.soft)[1])
            assert panel.soft.startswith(f"{whole} whole minutes;") and left == sum(counts[60 * whole :])
            seen += whole
            continue
        unit = 1e9 if case.show["along"] == "written" else synthetic_plan.DRIVE["capacity_bytes"]
        if word == "wa":
            seen += len(plot.marks)
            continue  # of SMART: see below
        (dots,) = [[(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", plot.svg)]]
        done = 0.0
        for (x, y), count, number in zip(dots, counts, by_second(put, word), strict=True):
            at = (done + count * put.block / 2) / unit
            done += count * put.block
            room = plot.y_of_px(case.log) * (number if case.log else 1) * 1.1 + 0.01 * number
            assert abs(scale * plot.y(y, case.log) - number) <= room
            assert plot.x(x) == pytest.approx(at, abs=0.002 * sum(counts) * put.block / unit)
        seen += len(dots)
    return seen


def table(case: Case) -> int:
    (panel,) = case.panels
    head, *lines = panel.tables[0]
    for name, *cells in lines:
        label = name if name in case.w.acts else None
        assert label, name
        for word, title, cell in zip(case.words, head[1:], cells, strict=True):
            if word == "wa":
                continue  # of SMART: see below
            case.near(value(cell), case.number(label, word), title, word)
    labels = [label for path in case.paths for label in case.labels(path)]
    assert [line[0] for line in lines] == labels
    return len(lines) * len(case.words)


def recovery(case: Case) -> int:
    """By the put-in numbers: 500 falling to 381 MiB/s before; afterwards minutes of 100, 300, 445 and 470."""
    (panel,) = case.panels
    (mean, after), (most, at) = panel.tables[0]
    (put,) = case.puts("before")
    wanted = sum(put.writes) / put.seconds * put.block / 1e6
    assert value(re.search(r"([\d.]+) MB/s", mean)[1]) == pytest.approx(wanted, rel=DIGITS)
    assert value(re.search(r"([\d.]+) MB/s", most)[1]) == pytest.approx(wanted, rel=DIGITS), "of all, less than an hour"
    seconds = (sum(put.writes) / put.seconds, 0.9 * sum(put.writes) / put.seconds)
    (later,) = case.puts("after")
    for limit, value_ in zip(seconds, (after, at), strict=True):
        first = next(i for i, count in enumerate(later.writes) if count >= limit) + 1
        assert value_ == f"after {clock(first)}"
    return 2


def scatter(case: Case) -> int:
    if "along" in case.show:
        return along(case)
    (panel,), (path,) = case.panels, case.paths
    (plot,), (put,) = panel.plots, case.puts(path)
    (dots,) = [[(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", plot.svg)]]
    wanted = by_second(put, (case.words or ["iops"])[0])
    assert len(dots) == len(wanted)
    for (x, y), (second, number) in zip(dots, enumerate(wanted), strict=True):
        room = plot.y_of_px(case.log) * (number if case.log else 1) * 1.1
        assert abs(plot.y(y, case.log) - number) <= room and abs(plot.x(x) - second - 0.5) < 0.2
    return len(dots)


def histogram(case: Case) -> int:
    labels = [label for path in case.paths for label in case.labels(path)]
    plot = case.panels[0].plots[0]
    assert len(plot.lines) == len(labels)
    for label, line in zip(labels, plot.lines, strict=True):
        (put,) = case.puts(label)
        n = sum(put.hist.values())
        slower = [sum(c for at, c in put.hist.items() if at > ns) / n for ns in put.hist]
        drops = line[1::2]  # a step down at each latency, at the last to the bottom
        assert len(drops) == len(slower) and plot.x(line[-1][0], True) == pytest.approx(max(put.hist) / 1e6, rel=0.03)
        for (x, y), share, ns in zip(drops[:-1], [s for s in slower if s], list(put.hist)[:-1], strict=True):
            assert plot.y(y, True) == pytest.approx(share, rel=0.05)
            assert plot.x(x, True) == pytest.approx(ns / 1e6, rel=0.03)
    assert len(case.panels) >= 1 + len(labels)
    for label, panel in zip(labels, case.panels[1:], strict=False):
        (put,), n = case.puts(label), 0
        wanted = {"mean": put.lat_sum_ns / put.ios / 1e3, "longest": max(put.hist) / 1e3}
        for words, one_in in (("99 %", 100), ("99.9 %", 1000), ("99.99 %", 10_000), ("99.999 %", 100_000)):
            wanted[words] = pts_runs.percentile_us(put.hist, one_in)
        for words, us in wanted.items():
            bins = [
                value(one.split(": ")[1].removesuffix(" ms")) for one in panel.legend if one.startswith(f"{words}: ")
            ]
            assert bins == ([] if us is None else [pytest.approx(us / 1e3, rel=0.02)]), (label, words)
            n += us is not None
        ups = [plot_of for plot_of in panel.plots[0].lines if len(plot_of) == 2 and plot_of[0][0] == plot_of[1][0]]
        assert len(ups) == n >= 4
    return len(labels)


def demand(case: Case) -> int:
    seen = 0
    for word, panel in zip(("lat_mean", None, "W"), case.panels, strict=True):
        (plot,) = panel.plots
        page_reader.marks_lie_right(plot, word == "lat_mean")
        if word is None:
            seen += in_flight(case, plot)
            continue
        for mark in plot.marks:
            threads, depth, rate, cost = re.match(
                r"threads (\d+), queue depth (\d+): (.+) IOPS, (\S+) ", mark.words
            ).groups()
            (label,) = case.labels(case.paths[0], {"threads": threads, "qd": depth})
            case.near(value(rate), case.number(label, "iops"), "", "iops")
            case.near(value(cost), case.number(label, word), mark.words, word)
            assert plot.x(mark.x_px) == pytest.approx(case.number(label, "iops"), abs=30)
        assert len(plot.marks) == len(list_of(case))
        seen += len(plot.marks)
    return seen


def in_flight(case: Case, plot) -> int:
    for mark in plot.marks:
        threads, at = map(int, re.match(r"threads (\d+), (\d+) in flight: ", mark.words).groups())
        (label,) = case.labels(case.paths[0], {"threads": threads, "qd": at // threads})
        case.near(plot.y(mark.y_px), case.number(label, "iops"), mark.words, "lat_max")
        assert plot.x(mark.x_px, True) == pytest.approx(at, rel=0.01)
    assert len(plot.marks) == len(list_of(case))
    return len(plot.marks)


def by_formula(case: Case) -> int:
    (figure,) = [cell[""] for cell in page_reader.bars(case.html).values()]
    words = ["burst_iops", "iops"] if "@" in case.show["formula"] else ["MB/s"] * 2
    case.show = case.show | ({"window": "last"} if "@" in case.show["formula"] else {})
    paths = re.findall(r"([a-z0-9-]+)(?:@last)?\.", case.show["formula"])
    after, before = (case.number(path, word) for path, word in zip(paths, words, strict=True))
    figure_, _, error = figure.partition(" ± ")
    assert value(figure_) == pytest.approx(100 * after / before, rel=DIGITS, abs=value(error) / 10 if error else 0)
    return 1


CHECKS = {
    "matrix": matrix,
    "heat": matrix,
    "rounds": rounds,
    "lines": lines,
    "steady": steady,
    "bars": bars,
    "table": table,
    "recovery": recovery,
    "series": series,
    "scatter": scatter,
    "histogram": histogram,
    "demand": demand,
    "figure": by_formula,
}
