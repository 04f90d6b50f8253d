"""Nothing that the rig of an unpaired run measured leaves it: two runs that differ in nothing but what the rig saw of
the other drive are, on every way out, one and the same."""

import argparse
import contextlib
import io
import json
import re
from pathlib import Path

import pytest
import synthetic_cuts
import synthetic_plan
import synthetic_run
import test_review_page
from lake_runs import asked, lake_of

from ssdrig import report
from ssdrig.commands import runs as runs_command
from ssdrig.meter import pairing
from ssdrig.meter.pairing import EVENT, NOT_PAIRED, PAIRED, UNKNOWN
from ssdrig.powerloss import sessions
from ssdrig.publish.influx import points
from ssdrig.publish.influx.points import Emitter
from ssdrig.reading.index import Index
from ssdrig.report import plates
from ssdrig.runs import journal
from ssdrig.serve import app, rigs
from ssdrig.serve.tail import Place, Tail

WHY = "bursts of 1.2 GB/s on the drive do not show on the rig's rails"
OF_VERDICTS = re.compile(r"(verdict\.json[^\[]{1,9}\[)[^\]]*")  # sums of files that have the record, too
MEASURED = ("_W", "_J", "_A", "_uV")  # how the keys of an event end that the rig measured


def consistency(runs: Path) -> Path:
    rails = [("12V", [(-100.0, 1.0)], 20 * synthetic_run.CONVERSION_NS, None)]
    how = {"zoom_s": 3, "smart_every_s": 3, "idle_s": 3, "more_rails": rails, "fast": {"bursts": []}}
    return synthetic_run.write(runs, [3000] * 3 + [1000, 3000] * 2, name="made", **how)


def plan(runs: Path) -> Path:
    return synthetic_plan.steps(runs, name="made")


def cuts(runs: Path) -> Path:
    return synthetic_cuts.write(runs, 6, name="made")


MAKERS = [consistency, plan, cuts]


def changed(value, factor: float, measured: bool = False):
    """What an event has of the rig's measuring, times the factor."""
    if isinstance(value, dict):
        return {key: changed(item, factor, measured or key.endswith(MEASURED)) for key, item in value.items()}
    if isinstance(value, list):
        return [changed(item, factor, measured) for item in value]
    return value * factor if measured and isinstance(value, int | float) and not isinstance(value, bool) else value


def made(runs: Path, maker, factor: float, verdict: str, monkeypatch) -> Path:
    """A run whose rig saw so many times the power."""
    with monkeypatch.context() as patch:
        patch.setattr(synthetic_run, "WATT", round(synthetic_run.WATT * factor))
        run = maker(runs)
    judge(run, verdict, factor)
    return run


def judge(run: Path, verdict: str, factor: float = 1.0) -> None:
    """Add the event of the signature; what events have of the rig is that of so many times the power."""
    events = [changed(event, factor) for event in bare(run)]
    for path in run.glob("powerloss/*/verdict.json"):
        document = sessions.unsealed(path)
        path.write_bytes(sessions.sealed({**document, "record": changed(document["record"], factor)}))
    event = {"t_ns": events[0]["t_ns"] + 1, "kind": EVENT, "verdict": verdict, "why": WHY, "looks": []}
    synthetic_run.seal(run, [events[0], event, *events[1:]])


def bare(run: Path) -> list[dict]:
    """Events as seal() takes them."""
    return [{key: value for key, value in event.items() if key not in ("line", "crc")} for event in journal.events(run)]


def printed(function, *words) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        assert not function(*words)
    return out.getvalue()


def reported(*words) -> str:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return printed(report.command, parser.parse_args([str(word) for word in words]))


def ways(run: Path, tmp: Path) -> dict[str, str]:
    """Everything that leaves a run folder: {way: content}."""
    out: dict[str, str] = {}
    csv = tmp / "csv"
    csv.mkdir(parents=True)
    out["terminal"] = reported(run, "--out", tmp / "page.html", "--json", "--csv", csv)
    out["page"] = (tmp / "page.html").read_text()
    out["figures.json"] = (run / "figures.json").read_text()
    out |= {f"csv {path.name}": path.read_text() for path in sorted(csv.iterdir())}
    if not report.of_plan(run):
        for panel in plates.PANELS:
            with contextlib.suppress(report.UsageError):
                reported(run, "--out", tmp / "embed.svg", "--embed", panel)
                out[f"embed {panel}"] = (tmp / "embed.svg").read_text()
    with Emitter(run) as emitter:
        emitter.step(final=True)
    for line in (run / "points.lp").read_text().splitlines():
        name = f"influx {line.split(',')[0]}"
        out[name] = out.get(name, "") + line + "\n"
    lake = lake_of(tmp / "lake", run)
    for kind in ["run", *lake.files]:
        rows = asked(
            lake, f'SELECT * EXCLUDE ({"export, files" if kind == "run" else "export"}) FROM "{kind}" ORDER BY ALL'
        )
        out[f"lake {kind}"] = json.dumps(rows, default=str)
    index = Index(run.parent)
    try:
        index.refresh()
        (of_run,) = index.find()
        out["runs"] = "\n".join(
            [json.dumps(runs_command.as_json(run.parent, of_run)), *runs_command.lines(run.parent, of_run)]
        )
        out["serve runs"] = json.dumps(app._row(of_run))
        out["serve rigs"] = json.dumps(rigs.listed(index.find(), index.folder))
    finally:
        index.close()
    tail = Tail(run)
    tail.step()
    at, tenths, newest = Place(), 0, 0
    out["serve live"] = json.dumps(tail.facts())
    while (message := tail.since(at, tenths, newest))[0]:
        seconds, at, tenths, newest = message
        out["serve live"] += json.dumps(seconds)
    return {
        way: OF_VERDICTS.sub(r"\1", text.replace(str(run.parent), "RUNS").replace(str(tmp), "TMP"))
        for way, text in out.items()
    }


def both(tmp_path, maker, verdict, monkeypatch) -> tuple[dict[str, str], dict[str, str]]:
    """The ways out of two runs, of which the second rig saw more power."""
    both_ = []
    for name, factor in (("a", 1.0), ("b", 1.75)):
        run = made(tmp_path / name, maker, factor, verdict, monkeypatch)
        both_.append(ways(run, tmp_path / f"out-{name}"))
    return both_[0], both_[1]


def differing(a: dict[str, str], b: dict[str, str]) -> set[str]:
    return {way for way in {**a, **b} if a.get(way) != b.get(way)}


@pytest.mark.parametrize(
    ("maker", "verdict"), [*((maker, NOT_PAIRED) for maker in MAKERS), (consistency, UNKNOWN), (plan, UNKNOWN)]
)
def test_power_of_an_unpaired_run_leaves_on_no_way(tmp_path, monkeypatch, maker, verdict):
    a, b = both(tmp_path, maker, verdict, monkeypatch)
    assert not differing(a, b)
    assert not {"influx power", "influx drive_power"} & {*a} and not json.loads(a["lake sample"])
    for way in ("terminal", "page", "figures.json", "lake run", "influx rig_event", "serve live"):
        assert WHY in a[way] or WHY.replace("'", "&#x27;") in a[way], way
    assert "pairing" in a["runs"] and "pairing" in a["serve runs"]


def test_power_of_a_paired_run_leaves_on_each_way(tmp_path, monkeypatch):
    """The test above can fail."""
    differing_ = differing(*both(tmp_path, consistency, PAIRED, monkeypatch))
    known = {"terminal", "page", "figures.json", "runs", "serve runs", "serve live", "embed power"}
    known |= {"influx power", "influx drive_power", "influx load_second"}
    known |= {"influx run_result", "influx run_figure", "influx run_value"}
    assert known | {"lake run", "lake figure", "lake second", "lake sample"} <= differing_, known - differing_


@pytest.mark.slow
def test_power_of_unpaired_runs_leaves_on_no_page_of_a_review(tmp_path, monkeypatch):
    pages = {}
    for name, factor, verdict in (("a", 1.0, NOT_PAIRED), ("b", 1.75, NOT_PAIRED), ("c", 1.75, PAIRED)):
        with monkeypatch.context() as patch:
            patch.setattr(synthetic_run, "WATT", round(synthetic_run.WATT * factor))
            folder = test_review_page.review(tmp_path / name)
        for run in folder.glob("*/run.json"):
            judge(run.parent, verdict)
        reported(folder, "--out", tmp_path / "page.html")
        pages[name] = (tmp_path / "page.html").read_text()
    assert pages["a"] == pages["b"] and WHY.replace("'", "&#x27;") in pages["a"] and pages["c"] != pages["a"]


def test_verify_counts_no_power_of_an_unpaired_run(tmp_path, monkeypatch):
    run = made(tmp_path, plan, 1.0, NOT_PAIRED, monkeypatch)
    counts = points.counts(run)
    assert not counts["power"] and not counts["drive_power"] and counts["fio_interval"]


def test_power_waits_for_a_signature_after_the_last_step(tmp_path, monkeypatch):
    run = made(tmp_path, plan, 1.0, PAIRED, monkeypatch)
    events = bare(run)
    late = {"t_ns": events[0]["t_ns"] + 1, "kind": EVENT, "verdict": UNKNOWN, "why": "it is sealed", "late": True}
    quiet = {"t_ns": events[-3]["t_ns"], "kind": "quiet", "step": "rest", "reached": True, "floor_W": 0.5}
    synthetic_run.seal(run, [events[0], late, *events[2:-2], quiet])
    with Emitter(run) as emitter:
        emitter.step()
        sent = (run / "points.lp").read_text()
        assert "\npower," not in sent and "fio_interval," in sent and "floor_W: 0.5" not in sent
        emitter.step(final=True)
    assert "\npower," not in (run / "points.lp").read_text(), "the run ended before the signature"
    (run / "points.lp").unlink()
    event = {"t_ns": quiet["t_ns"] + 1, "kind": EVENT, "verdict": PAIRED, "why": None, "looks": []}
    synthetic_run.seal(run, [events[0], late, *events[2:-2], event])
    with Emitter(run) as emitter:
        emitter.step(final=True)
    assert "\npower," in (run / "points.lp").read_text()


@pytest.mark.parametrize(
    ("verdicts", "believed"),
    [([], True), ([PAIRED], True), ([UNKNOWN], False), ([UNKNOWN, PAIRED], True), ([NOT_PAIRED, PAIRED], False)],
)
def test_the_last_verdict_counts_and_another_drives_rig_is_never_believed(verdicts, believed):
    events = [{"kind": EVENT, "verdict": verdict, "why": "x"} for verdict in verdicts]
    assert (pairing.unpaired(events) == "") is believed
    late = [{"kind": EVENT, "verdict": UNKNOWN, "why": "x", "late": True}]
    assert pairing.unpaired(late) and not pairing.unpaired(late, so_far=True)
