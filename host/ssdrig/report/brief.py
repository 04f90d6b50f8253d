"""What runs of the consistency test came to, in a few lines: the verdict, a row of figures for each run, the trust."""

from collections.abc import Iterable
from pathlib import Path

from ssdrig import report
from ssdrig.report import comparable, page, verdict, views
from ssdrig.views import trust_strip
from ssdrig.views.terms import number, with_error

FIGURES = (("iops_mean", 0, "IOPS"), ("power_mean_W", 2, "W"), ("energy_uJ_per_io", 1, "µJ per write"))


def lines(folders: Iterable[Path], review: int) -> list[str]:
    """For a terminal, of the window `steady` if there is one. review: the index of the run that the verdict judges."""
    runs, figures = zip(*report.read(list(folders)), strict=True)
    view = views.of(list(figures))[0]
    names = [short for *_, short in page.labels(list(figures))]
    of_runs = [verdict.Run(name, found) for name, found in zip(names, view.figures, strict=True)]
    apart = comparable.reasons(list(runs), list(figures))[review]
    width = max(map(len, names))
    trusts = [trust_strip.brief(trust_strip.states(run.figures.get("trust")) or {}) for run in of_runs]
    out = [verdict.sentences(view.label, of_runs, apart, review)[0]]
    for name, run in zip(names, of_runs, strict=True):
        cells = [f"{number(run.figures[key], places)} {unit}" for key, places, unit in FIGURES]
        wa = with_error(run.figures["wa"], run.figures.get("wa_error"), 3)
        out.append(f"  {name:{width}}  {'  '.join(cells)}  WA {wa}")
    alike = len(set(trusts)) == 1
    said = trusts[0] if alike else "; ".join(f"{name}: {text}" for name, text in zip(names, trusts, strict=True))
    return [*out, f"{said}  SIMULATED" if all(found["simulated"] for found in figures) else said]
