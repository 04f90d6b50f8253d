"""Every cell, verdict and plot of the shipped PTS plans is the number that was put into the run (pts_runs.py)."""

import re

import page_reader
import pts_runs
import pytest
import synthetic_plan
from page_reader import value

from ssdrig.analysis import bursts, table
from ssdrig.load import fiojob
from ssdrig.plan import expand, grammar, shows, values
from ssdrig.report import plan_page, shown
from ssdrig.rules import ends
from ssdrig.steps import load

UNITS = {"ms": 1000.0}  # of a figure whose word is in µs
DIGITS = 0.0052  # three digits


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """{plan: (what was put in, its table, {number of the show: its panels and cards})}, each made when asked for."""
    made, base = {}, tmp_path_factory.mktemp("pts")

    def of(name: str):
        if name not in made:
            w = pts_runs.ALL[name](base)
            found = table.load(w.end())
            made[name] = (w, found)
        return made[name]

    return of


class Case:
    """One [[show]] of a plan's page beside what was put into the run."""

    def __init__(self, w, found, show):
        self.w, self.found, self.show = w, found, show
        self.html = plan_page.VIEWS[show["view"]](shown.Context([found], ["run"], show))
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
            if self.show.get("window"):  # its last 20 %
                (put,) = puts
                begin = 4 * put.seconds // 5
                cut = {key: getattr(put, key)[begin:] for key in ("reads", "writes", "watts")}
                return pts_runs.figures([put._replace(**cut)])[word]
            return pts_runs.figures(puts)[word]
        (put,), begin = puts, round(load.begins_s(act.keys))
        if self.show.get("window"):  # the last cycle
            begin = put.seconds - round(act.keys["off"]) - 5
        cut = put._replace(reads=put.reads[begin:], writes=put.writes[begin:], watts=put.watts[begin:])
        period, off = round(act.keys["off"]) + 5, round(act.keys["off"])
        pauses = [w for s, w in enumerate(cut.watts) if 1 <= s % period < off - 1]
        more = {"burst_iops": cut.ios / (5 * cut.seconds / period), "pause_W": sum(pauses) / len(pauses)}
        return (pts_runs.figures([cut]) | more)[word]

    def near(self, seen: float | None, wanted: float | None, title: str, word: str) -> None:
        if wanted is None or seen is None:
            assert seen is wanted, title
            return
        scale = next((UNITS[unit] for unit in UNITS if re.search(rf"\b{unit}\b", title)), 1)
        room = 0.02 if word in ("lat_p99", "lat_p99999", "lat_max") else DIGITS  # fio's bins
        assert seen * scale == pytest.approx(wanted, rel=room), (title, word)


def matrix(case: Case) -> int:
    numbers = set()
    rows_key, columns_key = case.show["rows"], case.show["columns"]
    for word, panel in zip(case.words, case.panels, strict=True):
        (head, *lines) = panel.tables[0]
        assert head[0] == f"{shown.axis(rows_key)} ↓ {shown.axis(columns_key)} →"
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
    seen, by = 0, case.show["by"]
    for word, panel in zip(case.words, case.panels, strict=True):
        (plot,) = panel.plots
        page_reader.marks_lie_right(plot, case.log)
        for mark in plot.marks:
            number, point = re.match(r"round (\d+), ([^:]+): ", mark.words).groups()
            (label,) = case.labels(case.paths[0], {by: point.removesuffix(" %")})
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
            (label,) = case.labels(case.paths[0], {case.show["by"]: by.removesuffix(" %"), case.show["x"]: x})
            case.near(value(mark.words.rpartition(": ")[2].split(" ")[0]), case.number(label, word), mark.words, word)
            assert mark.x_px == plot.x_labels[x]
        assert len(plot.marks) == len(list_of(case))
        seen += len(plot.marks)
    return seen


def steady(case: Case) -> int:
    verdicts = [each for path in case.paths for each in case.found.verdicts if each.path == path]
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
        said = {row[0]: row for row in panel.tables[0]}
        scale = 1000 if " ms" in said["Average"][1] else 1
        assert scale * value(said["Average"][1].split(" ")[0]) == pytest.approx(wanted["average"], rel=DIGITS)
        assert value(said["Range"][1].split(" ")[0]) == pytest.approx(wanted["range"], abs=0.051)
        assert value(said["Slope, first to last"][1].split(" ")[0]) == pytest.approx(wanted["slope"], abs=0.051)
        base, sign, m = re.match(r"(.+) ([+−]) (.+) × n", said["Line"][1]).groups()
        assert scale * value(base) == pytest.approx(wanted["b"], rel=DIGITS)
        assert scale * value(m) * (1 if sign == "+" else -1) == pytest.approx(wanted["m"], rel=DIGITS)
        assert said["Steady state"][1] == "yes" and wanted["range"] <= 20 and wanted["slope"] <= 10
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
    for word, (heading, found) in zip(case.words, cards, strict=True):
        for name, cell in found.items():
            path, *points = name.split(", ")
            where = dict(map(_point, points))
            (label,) = case.labels(path, where)
            if word == "wa":
                continue  # of SMART: see below
            case.near(value(cell), case.number(label, word), heading, word)
            seen += 1
    return seen


def _point(words: str) -> tuple[str, str]:
    axes = {title: key for key, (title, _) in shown.AXES.items()}
    title = next(title for title in axes if words.startswith(title + " "))
    return axes[title], words[len(title) + 1 :].removesuffix(" %")


def by_second(put, word: str) -> list[float]:
    counts = [a + b for a, b in zip(put.reads, put.writes, strict=True)]
    each = {
        "iops": counts,
        "MB/s": [n * put.block / 1e6 for n in counts],
        "W": put.watts,
        "uJ/IO": [1e6 * w / n if n else float("nan") for n, w in zip(counts, put.watts, strict=True)],
        "lat_mean": [put.write_ns / 1000 if n else float("nan") for n in counts],
    }
    return each[word]


def series(case: Case) -> int:
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
                room = 2 * plot.y_of_px(case.log) * scale + 0.001 * number + step
                assert abs(scale * plot.y(y_px) - number) <= room, (panel.title, number)
            seen += len(points)
        if len(puts) == 1:
            assert [round(plot.x(x), 1) for x, _ in drawn[0]][:3] == pytest.approx([0.5, 1.5, 2.5], abs=0.2)
    return seen


def _pieces(plot, n: int) -> list:
    assert len(plot.lines) == n
    return plot.lines


def scatter(case: Case) -> int:
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
        for (x, y), share, ns in zip(line[1:], [s for s in slower if s], list(put.hist)[:-1], strict=True):
            assert plot.y(y, True) == pytest.approx(share, rel=0.05)
            assert plot.x(x, True) == pytest.approx(ns / 1e6, rel=0.03)
    return len(labels)


def demand(case: Case) -> int:
    seen = 0
    for word, panel in zip(("lat_mean", "W"), case.panels, strict=True):
        (plot,) = panel.plots
        page_reader.marks_lie_right(plot, word == "lat_mean")
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


def by_formula(case: Case) -> int:
    (figure,) = [cell[""] for cell in page_reader.bars(case.html).values()]
    after, before = (case.number(path, "MB/s") for path in ("after", "before"))
    assert value(figure) == pytest.approx(100 * after / before, rel=DIGITS)
    return 1


CHECKS = {
    "matrix": matrix,
    "heat": matrix,
    "rounds": rounds,
    "lines": lines,
    "steady": steady,
    "bars": bars,
    "series": series,
    "scatter": scatter,
    "histogram": histogram,
    "demand": demand,
    "figure": by_formula,
}


@pytest.mark.parametrize("name", pts_runs.ALL)
def test_every_number_on_the_page_is_the_one_put_in(runs, name):
    w, found = runs(name)
    seen = [CHECKS[show["view"]](Case(w, found, show)) for show in found.plan.shows]
    assert all(seen) and len(seen) == len(found.plan.shows) > 1


@pytest.mark.parametrize("name", pts_runs.ALL)
def test_every_row_of_the_json_has_the_numbers_put_in(runs, name):
    w, found = runs(name)
    rows = [row for row in found.as_json()["rows"] if row["do"] == "load"]
    assert len(rows) == len(w.put) and all(row["state"] == "done" for row in rows)
    for (row, (label, number)), put in zip(zip(rows, w.put, strict=True), w.put.values(), strict=True):
        assert (row["path"], row["round"]) == (w.acts[label].path, number) and row["point"] == w.acts[label].point
        if off := w.acts[label].keys.get("off"):  # without fio's first burst, which takes a pause and a burst
            cut = {key: getattr(put, key)[5 + round(off) :] for key in ("reads", "writes", "watts")}
            put = put._replace(**cut, hist={})
        figures = row["windows"]["all"]
        for word, wanted in pts_runs.figures([put]).items():
            got, power = figures[shows.VALUES[word][0]], word in ("W", "uJ/IO", "J/GB", "iops/W")
            room = 0.002 if power else 0.02 if word.startswith("lat_") and word != "lat_mean" else 1e-6
            assert got == (wanted and pytest.approx(wanted, rel=room)), (label, number, word)


def test_write_amplification_and_temperature_are_those_of_the_readings(runs):
    w, found = runs("pts-wsat")
    case = Case(w, found, next(show for show in found.plan.shows if "wa" in shows.listed(show.get("value"))))
    plots = {word: panel.plots[0] for word, panel in zip(case.words, case.panels, strict=True)}
    for word, at in (("wa", 1), ("C", 2)):
        marks = plots[word].marks[-len(w.polled) :]
        for mark, reading in zip(marks, w.polled, strict=True):
            second, number = re.search(r", (\S+) s: (\S+)", mark.words).groups()
            assert value(second) == pytest.approx(reading[0], abs=0.6) and value(number) == pytest.approx(reading[at])
            assert plots[word].y(mark.y_px) == pytest.approx(reading[at], rel=0.01)


def test_no_cell_of_a_swept_matrix_has_the_number_of_its_mirror(runs):
    """Threads and queue depth are not exchanged: not in the matrix, and not in what fio is asked for."""
    w, found = runs("pts-dirth")
    case = Case(w, found, next(show for show in found.plan.shows if show["view"] == "matrix"))
    head, *lines = case.panels[0].tables[0]
    assert head[1:] == ["32", "16", "2", "1"] and [line[0] for line in lines] == ["32", "8", "1"]
    cells = {(line[0], depth): cell for line in lines for depth, cell in zip(head[1:], line[1:], strict=True)}
    assert cells["32", "1"] != cells["1", "32"] and len(set(cells.values())) == len(cells)
    for threads, depth in (("32", "1"), ("8", "32"), ("8", "16")):
        act = w.acts[f"demand/point threads={threads} qd={depth}"]
        job = load.job(act, "/dev/null", 1, 1, "nvme")
        assert (job.threads, job.queue_depth) == (int(threads), int(depth))
        lines = fiojob.job_file(job).splitlines()
        assert f"numjobs={threads}" in lines and f"iodepth={depth}" in lines


@pytest.mark.parametrize("off", pts_runs.WAITS)
def test_the_last_60_of_360_cycles_stand_for_a_pause(off):
    """As the PTS counts them, behind fio's first burst, which takes a pause and a burst together."""
    plan = grammar.read(*grammar.find("pts-hir"))
    drive = synthetic_plan.DRIVE
    acts = {act.label: act for act in expand.expand(plan, drive, frozenset(grammar.CAPABILITIES))}
    keys = acts[f"wait-{off}"].keys
    period, cycles = 5 + off, 360
    lasted = (1 + cycles) * period
    assert load.longest_s(acts[f"wait-{off}"]) == lasted and keys["cycles"] == cycles
    begin = round(ends.begins_s(values.span(plan.params["last"]), lasted))
    assert bursts.whole(keys["on"], keys["off"], begin, lasted) == (lasted - 60 * period, lasted)
