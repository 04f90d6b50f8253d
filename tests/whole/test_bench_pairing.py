"""The rig of one drive, the load on another, on the whole virtual bench: no figure of power, and no cut."""

import json

import pytest

from ssdrig import cli
from ssdrig.base.errors import NotPaired
from ssdrig.meter.pairing import EVENT, NOT_PAIRED, PAIRED, UNKNOWN, unpaired
from ssdrig.publish.influx.points import Emitter
from ssdrig.reading import table
from ssdrig.run import pairing
from ssdrig.runs import journal
from ssdrig.virtual import bench

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
WORDS = ["--virtual", "sata-tlc", "--capacity", "512MiB", "--quiet"]
CUTS = ["run", "powerloss", "--cuts", "3", "--set", "window=32 MiB", *WORDS]
LOAD = ["run", "consistency", "--duration", "6", *WORDS]
POWER = ("power_mean_W", "energy_J", "energy_uJ_per_io", "iops_per_W", "fill_energy_J", "samples", "closure_percent")


@pytest.fixture
def crossed(monkeypatch):
    """The board is that of a second drive, which is idle."""
    start = bench.start

    def two(preset, **how):
        other, ours = start(preset, **{**how, "data": "crc"}), start(preset, **{**how, "board": False})
        end, ours.port = ours.end, other.port

        def both(keep_truth_in=None):
            end(keep_truth_in=None)
            other.end()

        monkeypatch.setattr(ours, "end", both)
        return ours

    monkeypatch.setattr(bench, "start", two)


def made(tmp_path, *words):
    code = cli.main([*words, "--runs", str(tmp_path)])
    (run,) = tmp_path.iterdir()
    events = journal.events(run)
    return code, run, events, next(event for event in events if event["kind"] == EVENT)


def powers_of(run):
    with Emitter(run) as emitter:
        emitter.step(final=True)
    lines = (run / "points.lp").read_text().splitlines()
    return [line for line in lines if line.startswith(("power,", "drive_power,"))]


def test_rig_that_feeds_the_drive_is_paired(tmp_path):
    code, run, events, event = made(tmp_path, *LOAD)
    assert (
        code == 0
        and event["verdict"] == PAIRED
        and event["duration_s"] == pytest.approx(pairing.LASTS_S * len(event["looks"]))
    )
    first = next(event for event in events if event["kind"] == "step.start" and event["step"] != "check")
    assert max(look["end_ns"] for look in event["looks"]) < first["t_ns"]
    assert table.in_full(run).figures["energy_J"] > 0 and powers_of(run)


def test_power_of_a_rig_on_another_drive_is_null_with_the_reason(tmp_path, crossed):
    code, run, _, event = made(tmp_path, *LOAD)
    assert (
        code == 0
        and event["verdict"] == NOT_PAIRED
        and event["duration_s"] == pytest.approx(pairing.LASTS_S * len(event["looks"]))
    )
    figures = table.in_full(run).figures
    assert figures["iops_mean"] > 0 and all(figures[name] is None for name in POWER)
    assert any(note.startswith("power: not known") for note in figures["notes"])
    assert not powers_of(run)
    json.dumps(figures)


def test_no_cut_by_a_rig_on_another_drive(tmp_path, crossed):
    code, _, events, event = made(tmp_path, *CUTS)
    assert code == NotPaired.exit_code and event["verdict"] == NOT_PAIRED
    assert not any(event["kind"] in ("cut.plan", "cut.fired") for event in events)


def test_first_cut_that_the_drive_does_not_feel_ends_the_campaign(tmp_path, crossed, monkeypatch):
    unknown = lambda bench, book, *_: book.event(EVENT, verdict=UNKNOWN, why="not looked", looks=[])
    monkeypatch.setattr(pairing, "carry_out", unknown)
    code, _, events, _ = made(tmp_path, *CUTS, "--seed", "7")
    judged = [event for event in events if event["kind"] == "session.judged" and event["control"] is None]
    assert code == NotPaired.exit_code and len(judged) == 1
    assert not judged[0]["judged"] and not judged[0]["findings"] and judged[0]["why_not"]
    assert unpaired(events)


def test_cut_that_the_drive_feels_shows_which_drive_the_rig_feeds(tmp_path, monkeypatch):
    unknown = lambda bench, book, *_: book.event(EVENT, verdict=UNKNOWN, why="not looked", looks=[])
    monkeypatch.setattr(pairing, "carry_out", unknown)
    code, run, events, _ = made(tmp_path, *CUTS)
    assert code != NotPaired.exit_code
    assert not unpaired(events) and powers_of(run)
