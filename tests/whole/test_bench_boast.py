"""What an NVMe drive reports of its own power, in the first run with a rig: one that reports 10 % too little is found,
one that estimates honestly is not accused."""

import pytest

from ssdrig import cli
from ssdrig.reading import table
from ssdrig.virtual.flash.presets import PRESETS

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


@pytest.mark.parametrize("preset", ["nvme-tlc-boasts", "nvme-tlc-estimates"])
def test_a_drive_that_reports_too_little_is_found_in_one_run(tmp_path, preset):
    words = ["run", "consistency", "--duration", "20", "--virtual", preset, "--capacity", "512MiB", "--quiet"]
    assert cli.main([*words, "--runs", str(tmp_path / "runs")]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    window = table.in_full(run).figures["windows"]["all"]
    ratio, error, true = window["own_power_ratio"], window["own_power_ratio_error"], 1 / PRESETS[preset].energy_report
    if ratio is None and window["samples_lost"]:
        pytest.skip(f"too busy a host: {window['samples_lost']} samples lost")
    assert abs(ratio - true) <= error < 0.1, (ratio, error)
    assert (abs(ratio - 1) > error) == (true != 1)
    assert any(note.startswith("own_power_ratio:") for note in window["notes"]) == (true != 1)
