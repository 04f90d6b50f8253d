"""Samples at the end of a sensor's range: counted, noted, and without an uncertainty."""

import json

import numpy as np
import pytest
import stream
import synthetic_run
from synthetic_run import IOPS, run_of

from ssdrig.meter import chips, samples, wire
from ssdrig.meter.power import clipped_samples
from ssdrig.reading import table
from ssdrig.runs import journal

FULL = 0x7FFFF
AT_LIMIT_W = FULL / synthetic_run.WATT  # the first rail's CURRENT then reads 7FFFFh


@pytest.mark.parametrize(
    "rail, current, vbus",
    [
        ({"chip": "INA228", "shunt_cal": 4096}, 0x7FFFE, 0x7FFFF),
        ({"chip": "INA229", "shunt_cal": 1000}, 0x7FFFE, 0x7FFFF),
        # the shunt voltage ends first: CURRENT then stays at 7FFFFh x 4096 / 16384
        ({"chip": "INA228", "shunt_cal": 16384}, 131070, 0x7FFFF),
        ({"chip": "INA226", "shunt_cal": 2560}, 0x7FFE, 0x7FFF),
        ({"chip": "INA226", "shunt_cal": 1024}, 16382, 0x7FFF),
        ({"chip": "INA228"}, 0x7FFFE, 0x7FFFF),
    ],
)
def test_where_a_register_ends(rail, current, vbus):
    assert chips.limits_raw(rail) == (current, vbus)


def test_each_end_counts_and_nothing_inside(tmp_path):
    tape = stream.started()
    values = [(25_600, 0), (25_600, FULL), (25_600, -FULL - 1), (25_600, -FULL), (25_600, FULL - 2), (FULL, 1), (0, 0)]
    t_us = tape.t_us + 1000 * np.arange(1, len(values) + 1)
    body = stream.samples(0, t_us, *zip(*values))
    tape.t_us = int(t_us[-1])
    tape.frame(wire.SAMPLES, body)
    tape.ping()
    power = samples.load(tape.run(tmp_path))
    assert power.clipped.tolist() == [1, 2, 3, 5]
    t = power.t_ns
    assert power.clipped_in(t[0], t[-1] + 1) == (4, 7)
    assert power.clipped_in(t[1], t[3]) == (2, 2) and power.clipped_in(t[1] + 1, t[3] + 1) == (2, 2)
    assert power.clipped_in(t[4], t[5]) == (0, 1)
    assert clipped_samples(body, json.loads(stream.hello())) == 4
    assert clipped_samples(body, None) == 0


def noted(figures) -> list[str]:
    return [note for note in figures["notes"] if "limit" in note]


def test_a_window_with_clipped_samples_has_no_uncertainty(tmp_path):
    """From 10 s to 12 s of the load's 31 s the rail draws more than the sensor shows."""
    _, f = run_of(tmp_path, watts=((-100, 2.0), (0, 2.5), (10, AT_LIMIT_W), (12, 2.5)))
    whole, fresh = f["windows"]["all"], f["windows"]["steady"]
    assert whole["power_uncertainty_percent"] is None and fresh["power_uncertainty_percent"] > 0
    assert whole["rails"][0]["power_uncertainty_percent"] is None
    assert whole["power_max_W"] == pytest.approx(AT_LIMIT_W, rel=1e-4)
    (note,) = [note for note in whole["notes"] if "limit" in note]
    clipped = int(note.split()[1])
    assert note == (
        f"power: {clipped} of {whole['samples']} samples of the window are at the sensor's limit: energy, mean and"
        " peaks there are lower bounds"
    )
    assert clipped == pytest.approx(2 / 31 * whole["samples"], abs=2)


def test_a_clipped_fill_leaves_the_load_alone(tmp_path):
    _, f = run_of(tmp_path, watts=((-100, AT_LIMIT_W), (0, 2.5)))
    assert f["windows"]["all"]["power_uncertainty_percent"] > 0
    (note,) = noted(f)
    assert "samples of the fill are at the sensor's limit" in note


def test_a_clipped_idle_step_has_no_uncertainty(tmp_path):
    """From 1 s to 2.5 s after the load; the rail draws too much from 1.4 s to 1.6 s."""
    end_s = len(IOPS)
    watts = ((-100, 2.0), (0, 2.5), (end_s + 1.4, AT_LIMIT_W), (end_s + 1.6, 2.5))
    run = synthetic_run.write(tmp_path, IOPS, zoom_s=12, watts=watts)
    *events, end = journal.events(run)
    t_ns = next(e["t_ns"] for e in events if (e["kind"], e.get("step")) == ("step.end", "load"))
    for kind, after_ns in (("step.start", 10**9), ("step.end", 5 * 10**9 // 2)):
        events.append({"t_ns": t_ns + after_ns, "kind": kind, "step": "idle", "ok": True})
    synthetic_run.seal(run, [*events, end])
    f = table.in_full(run).figures
    assert f["idle_mean_W"] > 2.5 and f["idle_uncertainty_W"] is None
    (note,) = noted(f)
    assert "samples of the idle step are at the sensor's limit" in note


def test_one_of_two_rails(tmp_path):
    """The sum has no uncertainty, the other rail keeps its own."""
    _, f = run_of(tmp_path, more_rails=(("12V", ((-100, 1.0), (5, AT_LIMIT_W), (6, 1.0)), 1_000_000, None),))
    whole = f["windows"]["all"]
    assert whole["power_uncertainty_percent"] is None
    percents = [rail["power_uncertainty_percent"] for rail in whole["rails"]]
    assert percents[0] > 0 and percents[1] is None
    (note,) = [note for note in whole["notes"] if "limit" in note]
    assert "samples of the window, rail 1 (12V), are" in note


def test_an_unclipped_run_says_nothing(tmp_path):
    _, f = run_of(tmp_path)
    assert noted(f) == [] and all(w["power_uncertainty_percent"] > 0 for w in f["windows"].values() if w)


def test_an_unknown_chip_has_no_uncertainty(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, zoom_s=12)
    rig_bin = (run / "rig.bin").read_bytes()
    hello = rig_bin.index(b'"chip": "INA228"')
    record = rig_bin.rindex(b"SJR1", 0, hello)
    length = int.from_bytes(rig_bin[record + 8 : record + 12], "little")
    end = record + 24 + length
    payload = rig_bin[record + 24 : end].replace(b'"INA228"', b'"MAX999"')
    assert len(payload) == length
    t_ns = int.from_bytes(rig_bin[record + 12 : record + 20], "little")
    (run / "rig.bin").write_bytes(
        rig_bin[:record] + synthetic_run.record(rig_bin[record + 4], payload, t_ns) + rig_bin[end:]
    )
    f = table.in_full(run).figures
    whole = f["windows"]["all"]
    assert whole["energy_J"] == pytest.approx(2.5 * 31, rel=1e-6) and whole["power_uncertainty_percent"] is None
    assert "power_uncertainty_percent: the limits of chip MAX999 are not known" in f["notes"]
    assert not chips.is_zero({"chip": "MAX999", "shunt_uOhm": 8000}, 0.0)
