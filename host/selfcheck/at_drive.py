"""Power at the drive behind leads that are not what the board says of them: the SIMULATED board, a drive that draws
3 A, first as built, then calibrated as `rig calibrate` does it by what a meter at the drive's connector would show."""

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selfcheck import Figure, at_most
from ssdrig.base.errors import RigError
from ssdrig.meter.pico.session import session
from ssdrig.rig import calibrate
from ssdrig.rig.info import info
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed
from ssdrig.virtual.rig_faults import BOARD

SUPPLY_V, SOURCE_OHM, SHUNT_OHM = 5.0, 0.015, 0.008  # of the SIMULATED supply: feed.create, faults.BOARD, board.py
SAID_mOhm, TRUE_mOhm = 24, 31.0
LOAD_W, IDLE_W, SECONDS = 14.5, 0.05, 2.0
METER = {"name": "Meter 1", "percent": 0.02, "fixed": 0.0002, "digit": 0.0001}


def at_the_drive(watts: float) -> tuple[float, float]:
    """(V, A) that a drive gets and draws which takes so much."""
    ohm = SOURCE_OHM + SHUNT_OHM + TRUE_mOhm * 1e-3
    volts = (SUPPLY_V + math.sqrt(SUPPLY_V**2 - 4 * ohm * watts)) / 2
    return volts, watts / volts


def figures(port: str, ring) -> list[Figure]:
    """What the rig says of the load before and after its calibration."""

    def now(watts: float):
        cable.fill(ring, watts)
        time.sleep(0.3)
        with session(port) as rig_session:
            report = info(rig_session, SECONDS)
            return report["rails"][0], rig_session.readings([0], SECONDS)[0]

    as_built, loaded = now(LOAD_W)
    _, idle = now(IDLE_W)
    (volts, amperes), (idle_V, idle_A) = at_the_drive(LOAD_W), at_the_drive(IDLE_W)
    sensed_V = [v + a * TRUE_mOhm * 1e-3 for v, a in ((idle_V, idle_A), (volts, amperes))]
    points = {"V": sensed_V, "I": [idle_A, amperes], "lead": [idle_V, volts]}
    read = {"V": [float(r.raw_V.mean()) for r in (idle, loaded)], "I": [float(r.raw_A.mean()) for r in (idle, loaded)]}
    # the line of V wants another voltage too: 1 V, as this SIMULATED chip reads it
    gain_ppm = BOARD["vbus_gain_ppm"]
    assert isinstance(gain_ppm, float)
    read["V"][0], points["V"][0] = 1 + gain_ppm * 1e-6, 1.0
    taken = {
        name: [{"rig": r, "rig_u": 1e-5, "meter": m} for r, m in zip(read[name], points[name], strict=True)]
        for name in ("V", "I")
    }
    at_shunt = [float(r.raw_V.mean()) for r in (idle, loaded)]
    taken["lead"] = [
        {"rig": v, "rig_u": 1e-5, "meter": m, "A": a}
        for v, m, a in zip(at_shunt, points["lead"], read["I"], strict=True)
    ]
    asked = {name: {"meter": METER, "points": rows} for name, rows in taken.items()}
    with session(port, stream=False) as rig_session:
        calibration = calibrate.from_figures(
            asked, rig_session.rail(0), rig_session.hello.get("serial", ""), lambda words: None
        )
        rig_session.store_calibration(0, calibration)
    calibrated, _ = now(LOAD_W)
    off = [abs(row["P_mean_W"] / LOAD_W - 1) * 100 for row in (as_built, calibrated)]
    stated = [row["P_uncertainty_W"] / LOAD_W * 100 for row in (as_built, calibrated)]
    return [
        at_most(f"power at the drive, {amperes:.1f} A, calibrated", off[1], "%", 0.5),
        at_most("  the same in units of its stated error", off[1] / stated[1], "", 1),
        at_most("as built, in units of its stated error", off[0] / stated[0], "", 1),
        Figure("  the same", off[0], "%", "none", True),
    ]


def at_drive() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-drive-", dir="/var/tmp") as name:
        folder = Path(name)
        ring = feed.create(str(folder / "feed"), 0, bins=1)
        cable.fill(ring, LOAD_W)
        words = ["--feed", str(folder / "feed"), "--truth", str(folder / "truth.json"), "--die-with-parent"]
        faults = {"rail": {"lead_mOhm": SAID_mOhm, "true_lead_mOhm": TRUE_mOhm}}
        argv = [sys.executable, "-P", "-m", "ssdrig.virtual.cable", *words, "--faults", json.dumps(faults)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as board:
            try:
                assert board.stdout
                line = board.stdout.readline()
                if not line:
                    raise RigError("a SIMULATED board", "none", "see its words above")
                return figures(json.loads(line)["port"], ring)
            finally:
                board.terminate()


BENCHES = {"at-drive": ("power at the drive behind leads that are not what the board says, before and after", at_drive)}
