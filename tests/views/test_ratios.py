"""Every quotient and every straight line that analysis and report make: which of them are figures with an error, fed
with noise of equal means here, and which need none. A new one fails until it has its place."""

import ast
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ssdrig
from ssdrig.base import uncertain
from ssdrig.base.uncertain import Uncertain, mean_error
from ssdrig.publish.verdicts import comparison
from ssdrig.reading import below_second, cache_recovery, errors, rest
from ssdrig.report import economy, price
from ssdrig.report.price import Price
from ssdrig.views.average_power import formula as average_power_formula
from ssdrig.views.load_line import html as load_line_fit
from ssdrig.views.power_states import figures as power_states_figures
from ssdrig.views.under import html as under_html
from ssdrig.views.wakes import html as wakes_html

DRAWS = 1000
ROOM = Path(ssdrig.__file__).parent

# a quotient of counts, times or bytes that are known exactly, or the same figure in another unit
EXACT = """
publish/verdicts/acceptance: _scale, judged
reading/below_second: parts_of, place
reading/bursts: of
reading/cuts: bound, coverage, folders, trend
reading/directions: figures
reading/filling: _amplified, _plateau, _rest_error_J, _speeds, last, put, read, thinned
reading/fio: load_step, loader
reading/gaps: of_rows
reading/host_power: of_event, power_W
reading/index: __init__, _made, _refreshed, folder
reading/latency: of
reading/library_file: _rounded
reading/little: of_load
reading/live_load: _latencies, _of_fio, _played
reading/one_run: _json
reading/own_report: _energy, _power, place
reading/own_work: of_run
reading/power: _energy, energy_of_act
reading/retention_rows: event_of, put
reading/review_folder: create
reading/row_figures: _foreign, _io, _wear, folder_of
reading/steady_state: judge, of
reading/table: together
reading/timeline: _job, _part
reading/trust: _badness, _samples, host_of
reading/wear_run: rates
reading/whole_run: over_provisioning
reading/window_figures: _drive_writes, _energy, _iops, _latency, _split, littles, own_power, percentiles, ratios
reading/witness: _host_iops, _in_window, _spins, _together, kernel
report/csv_files: write
report/economy: drive_writes
report/library: op_of
report/loads: rail_row
report/phases: rows
report/review_says: endurance
report/verdict: conditions
report/words: unit
views/average_power/formula: _power_W, average
views/cuts/sentences: exposed, smart
views/episodes/figures: _bursts, _mean, _of_smart
views/life/figures: _energy_J_per_GB, _rated, life
views/power_states/figures: _stay, _visit, _watts, entry_ns
views/recorded/html: foreign_lines, lines_of, of
views/retention/html: _bad
views/seconds/html: by_minute, over_written, seconds
views/table/html: recovered
views/thermal/figures: throttled
"""
# what makes an error, or decides by one
OF_ERRORS = """
meter/sync: _certain, _correlation, _edge, _noise_ns, _offset, _offset_slow, _template, find
publish/verdicts/comparison: _incomplete_beta, _joined, _percent, _within, compared, group
reading/directions: scattered
reading/errors: _of_power, _of_scatter, _part, of_apart_us, of_percentiles, of_window, part_of, rank_errors
reading/gaps: widen
reading/smart: _past, _shares, own_share, window_wa
reading/wear_run: amplification
reading/power: highest_of_100us
reading/window_figures: _mean, _uncertainty_percent
report/cards: spread
report/verdict: _alone, _field, _pair, _spread
views/episodes/figures: _gain, _noise_W, bursts, figures_of
views/thermal/figures: _model, fit
views/wakes/html: _scatter_W, above_mJ
"""
# places on a plot or a page
DRAWN = """
report/cards: _whisker, card
report/embed: style
report/pack: _codes, _sample_codes, _samples, _scale
report/page: html_page
report/plates: _iso, heat, histogram, seconds, slower
report/shown_parts: _labels
views/cuts/html: __call__, _load, _window, ages, all_cuts
views/episodes/figures: _curve
views/histogram/html: _over_time, _slower
views/points/html: _cell, bars
views/svg: all, short, ticks
"""


def listed(text: str) -> set[str]:
    lines = (line.partition(": ") for line in text.strip().splitlines())
    return {f"{module}.{name}" for module, _, names in lines for name in names.split(", ")}


def constant(node: ast.AST) -> bool:
    """A number, a unit's name, a count of things or a path: no figure."""
    if isinstance(node, ast.BinOp):
        return constant(node.left) and constant(node.right)
    if isinstance(node, ast.UnaryOp):
        return constant(node.operand)
    if isinstance(node, ast.Attribute | ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        return name.isupper() or name in ("k", "itemsize")
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    return isinstance(node, ast.Constant)


def quotients() -> set[str]:
    """Each function of reading, views, report and verdicts that divides by what is no constant, or fits a line by
    itself."""
    functions = set()
    places = ("reading/*.py", "report/*.py", "views/**/*.py", "publish/verdicts/*.py", "meter/sync.py")
    for path in [path for place in places for path in ROOM.glob(place)]:
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not constant(node.right)
                fits = isinstance(node, ast.Attribute) and node.attr in ("polyfit", "true_divide", "divide")
                if divides or fits:
                    functions.add(f"{path.relative_to(ROOM).with_suffix('')}.{function.name}")
    return functions


def test_every_quotient_has_its_place():
    places = [listed(text) for text in (EXACT, OF_ERRORS, DRAWN)]
    assert sum(map(len, places)) == len(set().union(*places))
    made = quotients()
    assert made - set().union(*places) == set(), "a new quotient: make it by uncertain.py, or say why it needs no error"


CORE = ("ratio", "difference", "line", "propagated")
WHOLE = {f"uncertain.{name}" for name in CORE}


def makers() -> set[str]:
    """Each function, anywhere, that makes a ratio, a difference or a line of uncertain.py."""
    functions = set()
    for path in ROOM.rglob("*.py"):
        tree = ast.parse(path.read_text())
        froms = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "ssdrig.base.uncertain"
        ]
        ours = {alias.asname or alias.name for node in froms for alias in node.names if alias.name in CORE}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and path.name != "uncertain.py":
                calls = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
                if any(call in ours or call in WHOLE for call in calls):
                    functions.add(f"{path.relative_to(ROOM).with_suffix('')}.{function.name}")
    return functions


# ---- each maker, fed with noise of equal means: (value, error) or null, and the truth


def drawn(rng, mean=1000.0, sd=150.0, n=20) -> Uncertain:
    values = rng.normal(mean, sd, n)
    return Uncertain(float(values.mean()), mean_error(values))


def of_rest(rng):
    """Two rests that take as much, one of which wrote."""
    rows = []
    for nand in (0, 10**8):
        above = drawn(rng, 1.0, 0.1)
        result = {"kind": "quiet", "reached": True, "above_J": above.value, "above_error_J": above.error}
        rows.append(type("Row", (), {"state": "done", "result": result | {"nand_written_bytes": nand}}))
    rest.per_GB(rows, 512_000)
    result = rows[1].result
    return Uncertain(result["J_per_GB"], result["J_per_GB_error"], None if result["J_per_GB"] else "x"), 0.0


def of_break_even(rng):
    """A state whose power is that of the awake drive."""
    low, high = (drawn(rng, 0.5, 0.05) for _ in range(2))
    stays = [{"mean_W": one.value, "uncertainty_W": one.error} for one in (low, high)]
    slept = {"wake_J": 0.02, "entry_ms": 10.0, "exit_ms": 5.0}
    break_even = power_states_figures.break_even(stays[0], slept, stays[1])
    return Uncertain(break_even["break_even_s"], break_even["break_even_error_s"]), math.inf


def of_recovery_rate(rng):
    """Rests of any length after which as much came back: no rate, no energy of folding."""
    rests = [cache_recovery.Rest(t, float(rng.normal(1e9, 1e8)), 1.0 * t, 0.01) for t in (1, 2, 3, 5, 8, 13)]
    recovery = cache_recovery.of([*rests, cache_recovery.Rest(60, 4e9, 60.0, 0.01)])
    return Uncertain(recovery.rate_Bps, recovery.rate_error_Bps), 0.0


def of_folding_energy(rng):
    """Rests that take as much while the drive folds as later."""
    noise = lambda t: float(rng.normal(1.0 * t, 0.05))
    rests = [cache_recovery.Rest(t, 0.5e9 * t, noise(t), 0.1) for t in (1, 2, 3, 4, 5, 6)]
    more = [cache_recovery.Rest(t, 4e9, noise(t), 0.1) for t in (60, 80)]
    recovery = cache_recovery.of([*rests, *more])
    return Uncertain(recovery.energy_J_per_GB, recovery.energy_error_J_per_GB), 0.0


def of_load_line(rng):
    """Power that no I/O changes."""
    points = [load_line_fit.Point(rate, float(rng.normal(2.0, 0.05))) for rate in (0, 100, 500, 1000, 2000, 5000)]
    line = load_line_fit.fit(points)
    return Uncertain(line.e_uJ, line.e_error_uJ), 0.0


def of_average_power(rng):
    """A benchmark that draws what the drive draws at rest."""
    bench, idle = drawn(rng, 1.0, 0.1), drawn(rng, 1.0, 0.1)
    measured = average_power_formula.Measured(1000 * bench.value, 1000.0, 1e9, idle.value)
    errors = {"bench_J": 1000 * bench.error, "idle_W": idle.error}
    average = average_power_formula.average(measured, 1e9, errors=errors)
    return Uncertain(average.power_W, average.power_error_W), 1.0


class Row:
    data = None
    act = SimpleNamespace(keys={"every": 3.3})

    def __init__(self, whole):
        self.windows = {"all": whole}


def of_wake(rng):
    """I/Os that take nothing beside the rest."""
    watts, floor = drawn(rng, 0.05, 0.005), drawn(rng, 0.05, 0.005)
    percent = 100 * watts.error / watts.value
    whole = {"ios": 30, "energy_J": 100 * watts.value, "t0_s": 0.0, "t1_s": 100.0, "power_uncertainty_percent": percent}
    row = Row(whole)
    row.data = SimpleNamespace(power_mean_W=np.full(100, watts.value))
    return wakes_html.above_mJ(row, floor), 0.0


def of_share(rng):
    """Writes beside reads as fast as alone."""
    beside, alone = drawn(rng), drawn(rng)
    row = Row({"write_iops": beside.value, "errors": {"write_iops": beside.error}})
    return under_html.share_percent(row, alone), 100.0


def of_energy_above_idle(rng):
    """A load that draws what the drive draws when idle."""
    watts, idle = drawn(rng, 1.0, 0.1), drawn(rng, 1.0, 0.1)
    data = type("Data", (), {"idle_mean_W": idle.value, "idle_uncertainty_W": idle.error})
    figures = {"power_mean_W": watts.value, "power_uncertainty_percent": 100 * watts.error / watts.value}
    return errors.above_idle_W(data, figures), 0.0


def of_energy_after(rng):
    """A drive that is idle at once behind the load."""
    watts, idle = drawn(rng, 1.0, 0.1), drawn(rng, 1.0, 0.1)
    data = type("Data", (), {"idle_mean_W": idle.value, "idle_uncertainty_W": idle.error, "after_s": 10.0})
    data.after_J = 10 * watts.value
    return below_second.after_above(data, {"power_uncertainty_percent": 100 * watts.error / watts.value}), 0.0


def of_compared_groups(rng):
    """Two groups of runs of one drive."""
    a, b = ([drawn(rng, n=8) for _ in range(3)] for _ in range(2))
    difference = comparison.compared("iops_mean", a, b, 0.95)
    return Uncertain(difference.percent, difference.percent_error), 0.0


def of_quotient(maker, arguments, truth=1.0):
    """Two figures of equal means."""
    return lambda rng: (maker(*arguments(drawn(rng), drawn(rng))), truth)


MAKERS = {
    "publish/verdicts/comparison._percent": of_compared_groups,
    "reading/below_second.after_above": of_energy_after,
    "reading/errors.above_idle_W": of_energy_above_idle,
    "reading/rest.per_GB": of_rest,
    "report/economy.share": of_quotient(economy.share, lambda a, b: (a, b)),
    "report/price.of_unit": of_quotient(price.of_unit, lambda a, b: (Price(a, "EUR"), b, "EUR")),
    "report/price.per_unit": of_quotient(price.per_unit, lambda a, b: (a, Price(b, "EUR"), "EUR")),
    "views/power_states/figures.break_even": of_break_even,
    "reading/cache_recovery.of": of_recovery_rate,
    "reading/cache_recovery._after_folding": of_folding_energy,
    "reading/cache_recovery._energy": of_folding_energy,
    "reading/cache_recovery._watts": of_folding_energy,
    "views/load_line/html.fit": of_load_line,
    "views/average_power/formula.average": of_average_power,
    "views/wakes/html.above_mJ": of_wake,
    "views/under/html.share_percent": of_share,
}
ELSEWHERE = {"plan/formula._of"}  # test_uncertain.py: each formula of each plan


def test_every_maker_is_fed():
    assert makers() == set(MAKERS) | ELSEWHERE


@pytest.mark.parametrize("name", MAKERS)
def test_a_maker_fed_with_noise_of_equal_means(name):
    rng, right = np.random.default_rng(sum(map(ord, name))), 0
    for _ in range(DRAWS):
        value, truth = MAKERS[name](rng)
        if value.value is not None:
            assert value.error is not None
        right += value.value is None or abs(value.value - truth) <= value.error
    assert right / DRAWS >= 0.95


def test_a_line_holds_the_truth():
    rng, right, zero = np.random.default_rng(3), 0, 0
    for _ in range(DRAWS):
        x = np.array([1.0, 2.0, 3.0, 5.0, 8.0])
        made = uncertain.line(x, 4 * x - 6 + rng.normal(0, 0.5, 5))
        right += abs(made.slope.value - 4) <= made.slope.error
        zero += made.zero.value is None or abs(made.zero.value - 1.5) <= made.zero.error
    assert right / DRAWS >= 0.94 and zero / DRAWS >= 0.94
    two = uncertain.line([1.0, 3.0], [2.0, 6.0], [0.1, 0.1])
    assert two.slope.value == 2 and two.slope.error == pytest.approx(math.hypot(0.1, 0.1) / 2)
    assert uncertain.line([1.0, 3.0], [2.0, 6.0]).slope.reason == uncertain.NO_ERROR
    assert uncertain.line([1.0, 1.0], [2.0, 6.0]).slope.value is None
