"""How long a drive lives under a workload: its write amplification -> TBW and drive writes per day, against its maker's
rating. Pure; every assumption is reported.

    TBW = capacity x P/E cycles x WLE / WAF       (AnandTech 7947; Insignis, "NAND write endurance")
    DWPD = TBW / (capacity x 365 x years)

The capacity of the first is that of the NAND, over which a drive spreads its wear, if known, and otherwise the user
capacity, which is the safe side for a maker. WLE, the efficiency of wear levelling: mean / highest erase count."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssdrig.base import uncertain
from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import digits, size
from ssdrig.drive.wear import endurance, wa
from ssdrig.plan import shows
from ssdrig.plan.rules import steady
from ssdrig.reading.row import Row, Table

FEWEST_CYCLES = 20  # of the mean: below, one block erased once more than the others is a tenth of the efficiency
SOURCE = "AnandTech 7947; Insignis, NAND write endurance"


class Life(NamedTuple):
    """`waf` with its error bar (95 %) over `rounds` rounds; bytes of the host that the flash takes (`tbw_bytes`, with
    the range by the error of waf), `dwpd` over `years`; the maker's rating. `unknown` has the reason of each
    figure that is None. `formulas`: each with its figures put in; `assumed`: in words."""

    waf: float | None = None
    waf_error: float | None = None
    steady: bool = False
    rounds: tuple[int, ...] = ()
    energy_J_per_GB: float | None = None
    tbw_bytes: float | None = None
    tbw_low_bytes: float | None = None
    tbw_high_bytes: float | None = None
    dwpd: float | None = None
    years: float | None = None
    rated_bytes: float | None = None
    rated_dwpd: float | None = None
    of_rating_percent: float | None = None
    formulas: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def lives(table: "Table") -> list[tuple[str, Life]]:
    """The life under each step that the plan shows in a view `life`."""
    paths = [path for show in table.plan.shows if show["view"] == "life" for path in shows.listed(show.get("of"))]
    return [(path, of(table, path)) for path in paths]


def of(table: "Table", path: str) -> Life:
    """The life from the rounds of a load that its rule was evaluated on; without a rule, from the last five."""
    rows = [row for row in table.of(path) if row.round is not None]
    verdict = next((ending.verdict for ending in table.verdicts if path.startswith(ending.path)), {})
    rows = rows[-int(verdict.get("used") or steady.ROUNDS) :]
    snapshots = [snapshot for snapshot in table.data.snapshots if snapshot.get("pe_cycles_mean") is not None]
    return life(rows, bool(verdict.get("passed")), table.data.header["drive"], snapshots[-1] if snapshots else {})


def life(rows: "Sequence[Row]", is_steady: bool, drive: Mapping, counters: Mapping) -> Life:
    """`drive`: its part of run.json; `counters`: the last snapshot that has erase counts, or {}."""
    amplifications = [(row.value("wa"), (row.windows.get("all") or {}).get("wa_error")) for row in rows]
    known = [(value, error) for value, error in amplifications if value is not None and error is not None]
    if not rows or len(known) < len(rows):
        why = "no round was run" if not rows else rows[-1].why_not("wa")
        return Life(unknown=(f"write amplification: {why}",))
    values = np.array([value for value, _ in known])
    waf = float(values.mean())
    # the rounds share their readings: over all of them together the counters are off as in one
    error = sum(error for _, error in known) / len(known) ** 2
    if len(values) > 1:
        error += uncertain.t95(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    out = Life(
        waf=waf,
        waf_error=error,
        steady=is_steady,
        rounds=tuple(row.round or 0 for row in rows),
        energy_J_per_GB=_energy_J_per_GB(rows),
        years=drive.get("rated_years"),
        rated_bytes=drive.get("rated_write_bytes"),
    )
    return _rated(out, drive, counters)


def _energy_J_per_GB(rows: "Sequence[Row]") -> float | None:
    """Energy of all rounds together; None where the power of one is not known."""
    figures = [row.windows.get("all") or {} for row in rows]
    if any(f.get("energy_J") is None or not f.get("bw_mean_MBps") for f in figures):
        return None
    moved_GB = sum(f["bw_mean_MBps"] * (f["t1_s"] - f["t0_s"]) for f in figures) / 1000
    return sum(f["energy_J"] for f in figures) / moved_GB


def _rated(out: Life, drive: Mapping, counters: Mapping) -> Life:
    """`out` with TBW and DWPD, where the drive's figures are known."""
    assert out.waf is not None and out.waf_error is not None
    capacity, raw, cycles = drive["capacity_bytes"], drive.get("raw_nand_bytes"), drive.get("rated_pe_cycles")
    formulas, assumed, unknown = [], [], []
    wle, mean, highest = 1.0, counters.get("pe_cycles_mean"), counters.get("pe_cycles_max")
    if mean and highest and mean >= FEWEST_CYCLES:
        wle = mean / highest
    else:
        assumed.append(
            f"WLE = 1, all blocks wear alike: the drive does not report a mean erase count of at least {FEWEST_CYCLES}"
        )
    if not cycles:
        unknown.append("TBW: the rated P/E cycles of the flash are not known, add them to warranty.toml")
        return out._replace(assumed=tuple(assumed), unknown=tuple(unknown))
    if not raw:
        assumed.append("the capacity that wears is the user capacity: raw NAND is not known (--raw-nand)")
    elif drive.get("raw_nand_assumed"):
        assumed.append(f"{size(raw)} of raw NAND")
    nand = raw or capacity
    if vague := uncertain.vague(Uncertain(out.waf, out.waf_error), "write amplification"):
        return out._replace(assumed=tuple(assumed), unknown=(f"TBW: {vague.why}",))

    def tbw(waf: float) -> float:
        return endurance.tbw_of_cycles(nand, cycles, waf, wle) * endurance.TB

    value, low = tbw(out.waf), tbw(out.waf + out.waf_error)
    high = tbw(out.waf - out.waf_error)
    of_what = "raw NAND" if raw else "user capacity"
    formulas.append(
        f"TBW = {of_what} × P/E cycles × WLE / WAF ="
        f" {size(nand)} × {cycles:g} × {digits(wle, 3)} / {digits(out.waf, 3)}"
        f" = {size(value)} ({SOURCE})"
    )
    out = out._replace(tbw_bytes=value, tbw_low_bytes=low, tbw_high_bytes=high)
    if out.years:
        dwpd = endurance.dwpd_of_tbw(value / endurance.TB, capacity, out.years)
        out = out._replace(dwpd=dwpd)
        formulas.append(
            f"DWPD = TBW / (user capacity × 365 × years) = {size(value)} / ({size(capacity)} × 365 × {out.years:g})"
            f" = {digits(dwpd, 3)}"
        )
    else:
        unknown.append("DWPD: the years of the warranty are not known")
    if rated_bytes := out.rated_bytes:
        out = out._replace(of_rating_percent=100 * value / rated_bytes)
        if out.years:
            rated = endurance.dwpd_of_tbw(rated_bytes / endurance.TB, capacity, out.years)
            out = out._replace(rated_dwpd=rated)
    else:
        unknown.append("share of the rating: the TBW of this model is not known, add it to warranty.toml")
    return out._replace(formulas=tuple(formulas), assumed=tuple(assumed), unknown=tuple(unknown))


def lines(result: Life) -> list[tuple[str, str]]:
    """(what, value in words) of all that is known, for people."""
    if result.waf is None or result.waf_error is None:
        return []
    state = "steady" if result.steady else "NOT STEADY"
    first, last = result.rounds[0], result.rounds[-1]
    out = [("WAF", f"{wa.figure(result.waf, result.waf_error)}, {state}, rounds {first} to {last}")]
    if result.energy_J_per_GB is not None:
        out.append(("Energy", f"{digits(result.energy_J_per_GB, 3)} J for each GB of the host"))
    if result.tbw_bytes is not None and result.tbw_low_bytes is not None and result.tbw_high_bytes is not None:
        span = f"{size(result.tbw_low_bytes)} to {size(result.tbw_high_bytes)} by the error of WAF"
        out.append(("TBW of this workload", f"{size(result.tbw_bytes)} ({span})"))
    if result.dwpd is not None:
        out.append(("DWPD of this workload", f"{digits(result.dwpd, 3)} over {result.years:g} years"))
    if result.rated_bytes:
        rated = f", {digits(result.rated_dwpd, 3)} DWPD" if result.rated_dwpd is not None else ""
        out.append(("Rated", f"{size(result.rated_bytes)}{rated}"))
    if result.of_rating_percent is not None:
        out.append(("Share of the rating", f"{digits(result.of_rating_percent, 3)} %"))
    return out
