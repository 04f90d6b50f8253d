"""The sections of the report on what only this rig has: latency in full, and power below the second."""

from collections.abc import Sequence

from ssdrig.report import plates
from ssdrig.report.plates import Plate

NAMES = ("latency-cdf", "latency-heat", "energy-parts", "power-histogram", "power-iops")
SAMPLES = """<figure><figcaption><b>Power, sample by sample</b><span class="soft caption-samples"></span></figcaption>
<div class="moments" role="group" aria-label="Moments of the reviewed run"></div>
<div class="panel" data-panel="samples"></div></figure>"""


def found(runs: Sequence, shown: Sequence, names: Sequence, looks: Sequence[dict], review: int) -> list[Plate]:
    """All plates of the page, in its order."""
    out: list[Plate | None] = []
    of = runs, names, looks, review
    out += [plates.slower(runs, view, i, *of[1:]) for i, view in enumerate(shown)]
    span, last = plates.span_us(runs), max((len(data.iops) for data in runs), default=0)
    for i, data in enumerate(runs):
        marks = [(float(data.zoom_s), "window")] if 0 < data.zoom_s < len(data.iops) else []
        out.append(plates.heat(data, i, names[i][3] if len(runs) > 1 else names[i][2], span, last, marks))
    for i, view in enumerate(shown):
        if view.name in ("steady", "all"):
            out.append(plates.breakdown(runs, view, i, *of[1:]))
            out.append(plates.histogram(runs, view.name, view, i, *of[1:]))
        out.append(plates.scatter(runs, view, i, *of[1:]))
    return [plate for plate in out if plate]


def sections(every: Sequence[Plate], measured: bool) -> str:
    """The plates as two sections; `measured`: whether any run has power."""
    latency = [plate for plate in every if plate.name.startswith("latency")]
    power = [plate for plate in every if not plate.name.startswith("latency")]
    out = []
    if latency:
        about = (
            '<p class="soft">From the histograms that fio kept. The heat maps share one scale: the darker, the larger '
        )
        about += "the share of the I/O of that time.</p>"
        out.append(_section("latency", "Latency in full", about, latency))
    if measured:
        about = '<p class="soft">What the rig measured between the seconds.</p>'
        out.append(_section("depth", "Power below the second", about + SAMPLES + MARKERS, power))
    return "".join(out)


MARKERS = """<div class="markers"><span class="soft">Between two marks of the plots (keys a and b at the cursor):</span>
<button type="button" data-mark="a">A here</button> <button type="button" data-mark="b">B here</button>
<button type="button" data-mark="">Clear</button> <button type="button" id="copy-marks" hidden>Copy as text</button>
<div class="scroll" id="marks" aria-live="polite"></div></div>"""


def _section(name: str, title: str, about: str, every: Sequence[Plate]) -> str:
    figures = "".join(plates.figure(plate, plate.name == "energy-parts") for plate in every)
    return (
        f'<section aria-labelledby="{name}-h"><h2 id="{name}-h">{title}</h2>{about}'
        f'<div class="plots deep">{figures}</div></section>'
    )
