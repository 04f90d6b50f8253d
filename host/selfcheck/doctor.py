"""What `rig doctor` finds: SIMULATED rigs of which one part is broken, and sound ones whose parts are as their
tolerances allow, drawn at random. Each is a board of its own, with the firmware in MicroPython."""

import concurrent.futures
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

from selfcheck import Figure, at_least, exactly
from ssdrig.base import soft_start
from ssdrig.base.errors import RigError
from ssdrig.base.progress import Progress
from ssdrig.commands.rig_doctor import carried_out
from ssdrig.meter import chips
from ssdrig.rig import bring_up, builds
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

GOOD, AT_ONCE = 100, 4
# A rig that was looked at while the machine stood still is looked at anew: how long a person waits for a board's answer
# is real time
TRIES, STOOD_STILL_s = 3, 2.0
OHM = 10.0
# A board with nothing connected: some nF of the switch and the cable, and the scope's divider across them
BARE = {"bulk_uF": 0.005, "leak_mA": 0.0, "leak_ohm": 20_000.0, "uvlo_percent": 99.9, "noise": 1.0}
TWELVE = {
    **{"rail": 1, "name": "12V", "address": 0x41, "alert": 7, "nominal_mV": 12_000},
    "simulated": {
        **{"share": 0.0, "V": 12.0, "gate": 12, "scope": 27},
        **{"discharge_mOhm": 7_500.0, "leak_ohm": 18_300.0},
    },
}


def rig_with(first: dict | None = None, second: dict | None = None, **more) -> dict:
    """Settings of a board of two rails; first, second: what of their rows is "true"; more: as faults.py has it."""
    rail = {"nominal_mV": 5000, "true": first or {}}
    return {**BARE, "rail": rail, "rails": [{**TWELVE, "true": second or {}}], **more}


def twelve(**simulated) -> dict:
    """The row of 12 V, with another load."""
    return {**TWELVE, "simulated": {**TWELVE["simulated"], **simulated}}


def gate_supply(volts: float) -> dict:
    """The gates' supply at the third input of the ADC, as it is."""
    row = builds.with_gate_supply(builds.read("two_rails"), "28")["gate_supply"]
    return {**row, "true": {"mV": round(1000 * volts)}}


COLD_JOINT = [[0.5 + 0.4 * k, 20.0] for k in range(200)]  # seconds since boot, ms
RARELY_COLD = [[3.0 * k, 20.0] for k in range(1, 30)]
FAULTS = {
    "5 V: series switch open": rig_with({"switch": "series open"}),
    "5 V: series switch short": rig_with({"switch": "series short"}),
    "5 V: line to the gate open": rig_with({"switch": "gate line open"}),
    "5 V: crowbar's switch open, or its resistor or fuse": rig_with({"switch": "crowbar open"}),
    "5 V: crowbar's switch short": rig_with({"switch": "crowbar short"}),
    "12 V: series switch open": rig_with(None, {"switch": "series open"}),
    "12 V: series switch short": rig_with(None, {"switch": "series short"}),
    "12 V: line to the gate open": rig_with(None, {"switch": "gate line open"}),
    "12 V: crowbar's switch open, or its resistor or fuse": rig_with(None, {"switch": "crowbar open"}),
    "12 V: crowbar's switch short": rig_with(None, {"switch": "crowbar short"}),
    "5 V: crowbar's gate on OFF, past the interlock": rig_with({"switch": "crowbar with OFF"}),
    "5 V: no lock-out": rig_with({"switch": "no lock-out"}, lock_outs=0),
    "12 V: no lock-out": rig_with(None, {"switch": "no lock-out"}, lock_outs=0),
    "nothing trips the lock-outs": rig_with({"switch": "no lock-out"}, {"switch": "no lock-out"}, lock_outs=0),
    "5 V: gate capacitor missing, no soft start": rig_with(rise_ms=0.3),
    "12 V: gate capacitor missing, no soft start": rig_with(rails=[twelve(rise_ms=0.4)]),
    "5 V: gate capacitor or gate resistor of ten times": rig_with(rise_ms=40.0),
    "5 V: gate resistor of a tenth": rig_with(rise_ms=0.6),
    "gate supply dead": rig_with({"switch": "series open"}, {"switch": "series open"}),
    "gate supply at 20 V": rig_with(gate_supply=gate_supply(20.0)),
    "gates exchanged": rig_with(exchanged=["gates"]),
    "inputs of the scope exchanged": rig_with(exchanged=["scope"]),
    "sensors exchanged": rig_with({"address": 0x41}, {"address": 0x40}),
    "sensor absent": rig_with({"absent": True}),
    "second sensor absent": rig_with(None, {"absent": True}),
    "sensor at another address": rig_with({"address": 0x44}),
    "sensor is another chip": rig_with({"chip": next(name for name, chip in chips.CHIPS.items() if chip.inverse)}),
    "ALERT open": rig_with({"alert": "open"}),
    "second ALERT open": rig_with(None, {"alert": "open"}),
    "shunt 15 instead of 8 mOhm": rig_with({"shunt_uOhm": 15_000}),
    "shunt 10 instead of 8 mOhm": rig_with({"shunt_uOhm": 10_000}),
    "shunt 80 instead of 8 mOhm": rig_with({"shunt_uOhm": 80_000}),
    "shunt 0.8 instead of 8 mOhm": rig_with({"shunt_uOhm": 800}),
    "shunt short": rig_with({"shunt_uOhm": 0}),
    "shunt open": rig_with({"shunt": "open"}),
    "VBUS open": rig_with({"vbus": 0.0}),
    "12 V: VBUS open": rig_with(None, {"vbus": 0.0}),
    "scope's divider open above": rig_with({"scope": 0}),
    "scope's divider open below": rig_with({"scope": 1000}),
    "scope's divider of another rail": rig_with({"scope": 1.611 / 4.468}),
    "3.3 V is 3.0 V": rig_with(logic_V=3.0),
    "ground wire of 0.3 Ohm": rig_with({"ohm": 0.3}),
    "supply 4.6 V": rig_with(supply_V=4.6),
    "12 V on the 5 V rail": rig_with(supply_V=12.0),
    "sensor at 105 C": rig_with({"ambient_C": 105.0}),
    "sensor at -40 C": rig_with({"ambient_C": -40.0}),
    "offset of 20 uV": rig_with({"offset_uV": 20.0}),
    "5 mA leak behind the shunt": rig_with({"surges": [[0.0, 0.005, 0.0]]}),
    "five times the noise": rig_with({"noise": 5.0}),
    "oscillator 5 % off": rig_with(osc_ppm=50_000.0),
    "cold joint at SDA: 20 ms without an answer, each 0.4 s": rig_with(nacks=COLD_JOINT),
    "cold joint at SDA: 20 ms without an answer, each 3 s": rig_with(nacks=RARELY_COLD),
    "I2C bus bears 600 kHz": rig_with(bus_max_Hz=600_000),
}


def sound_rise_ms(dice: Random, mV: int) -> float:
    """From nothing to the full voltage, of a circuit for this voltage with parts as they may be."""
    circuit = dice.choice([circuit for circuit in bring_up.BOARDS.values() if mV in circuit.gate_kOhm])
    gates_V = circuit.gates_V * (1 + circuit.gates_part * dice.uniform(-1, 1))
    volts = mV / 1000 * (1 + soft_start.VOLTS_PART * dice.uniform(-1, 1))
    ramp_uF, threshold_V = dice.uniform(*soft_start.RAMP_uF), dice.uniform(*soft_start.THRESHOLD_V)
    return soft_start.rise_ms(circuit.gate_kOhm[mV], ramp_uF, gates_V, threshold_V, volts) / 0.8


def sound(dice: Random) -> dict:
    """A rig with parts as they may be."""
    more: dict[str, Any] = {
        "ppm": dice.uniform(-30, 30),
        "osc_ppm": dice.uniform(-8000, 8000),
        "gain_ppm": dice.uniform(-500, 500),
        "vbus_gain_ppm": dice.uniform(-500, 500),
        "offset_uV": dice.uniform(-1.0, 1.0),
        "noise": dice.uniform(0.7, 1.4),
        "source_mOhm": dice.uniform(8, 80),
        "logic_V": 3.3 * dice.uniform(0.98, 1.02),
        "gate_us": dice.uniform(2, 15),
        "rise_ms": sound_rise_ms(dice, 5000),
        "bulk_uF": dice.uniform(0.004, 0.010),
        "supply_V": 5.0 * dice.uniform(0.965, 1.045),
        "ohm": OHM * dice.uniform(0.96, 1.04),
        "lock_outs": 0,
        "gate_supply": gate_supply(24.0 * dice.uniform(0.97, 1.03)),
    }
    true = [
        {
            "shunt_uOhm": round(8000 * dice.uniform(0.99, 1.01)),
            "scope": dice.uniform(0.99, 1.01),
            "ambient_C": dice.uniform(10, 45),
        }
        for _ in range(2)
    ]
    settings = rig_with(*true, **more)
    row = settings["rails"][0]
    row["simulated"] = {**row["simulated"], "V": 12.0 * dice.uniform(0.965, 1.045)}
    row["simulated"]["rise_ms"] = sound_rise_ms(dice, 12_000)
    row["simulated"]["discharge_mOhm"] = 7_500 * dice.uniform(0.95, 1.05)
    return settings


def certificate_of(settings: dict, folder: Path) -> dict:
    """Of a SIMULATED rig, its resistor connected when the doctor asks for it. The board keeps the host's time, by which
    its load comes and its crystal is judged; where the machine lets it wait, its results come later, unaltered. Where
    the doctor ends with an error, "passed" is None: nothing was found, and nothing was found sound."""
    settings = dict(settings)
    supply_V, ohm = settings.pop("supply_V", 5.0), settings.pop("ohm", OHM)
    path = folder / "feed"
    ring = feed.create(str(path), time.monotonic_ns(), rail_mV=round(supply_V * 1000), bins=1)
    cable.fill(ring, 0.0)
    argv = [sys.executable, "-P", "-m", "ssdrig.virtual.cable", "--feed", str(path), "--truth", str(folder / "truth")]
    argv += ["--die-with-parent", "--faults", json.dumps(settings)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout
    try:
        port = json.loads(process.stdout.readline())["port"]
        amperes = supply_V / (ohm + 0.055)
        return carried_out(port, (0, OHM), lambda _: cable.fill(ring, ohm * amperes**2), lambda check: None)
    except RigError as error:
        return {"passed": None, "failed": [str(error)], "checks": []}
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


class Awake:
    """For how long a thread of this process, at most, was not run when its time had come."""

    def __init__(self):
        self.longest_s, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._over.wait(0.2):
            now = time.monotonic()
            self.longest_s, before = max(self.longest_s, now - before - 0.2), now


def looked_at(settings: dict) -> dict:
    """The certificate of a SIMULATED rig, in a process of its own: what one leaves unknown refuses no other one."""
    made: dict = {}
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="ssdrig-doctor-") as folder, Awake() as awake:
            os.environ["XDG_STATE_HOME"] = folder
            made = certificate_of(settings, Path(folder))
        if awake.longest_s < STOOD_STILL_s:
            break
    return made


def _all(rigs: dict[str, dict]) -> dict[str, dict]:
    """Name -> certificate."""
    show, out = Progress(), {}
    with concurrent.futures.ProcessPoolExecutor(AT_ONCE, multiprocessing.get_context("spawn")) as pool:
        tasks = {pool.submit(looked_at, settings): name for name, settings in rigs.items()}
        for task in concurrent.futures.as_completed(tasks):
            out[tasks[task]] = task.result()
            show.show(f"doctor: {len(out)} of {len(rigs)} rigs")
    if show.live:
        show.show("")
    return out


def doctor() -> list[Figure]:
    dice = Random(14)
    broken = _all(FAULTS)
    missed = sorted(name for name, made in broken.items() if made["passed"] is not False)
    good = _all({f"sound rig {k}": sound(dice) for k in range(GOOD)})
    false = sorted(f"{name}: {', '.join(made['failed'])}" for name, made in good.items() if not made["passed"])
    for words in [f"not found: {name}" for name in missed] + [f"false: {words}" for words in false]:
        Progress().say(words)
    looked = min(sum(check["ok"] is True for check in made["checks"]) for made in good.values())
    return [
        at_least("injected faults found", 100 * (1 - len(missed) / len(FAULTS)), "%", 95),
        exactly(f"sound rigs of {GOOD} in which a fault was found", len(false), "", 0),
        at_least("checks carried out on each sound rig", looked, "", 25),
    ]


BENCHES = {
    "doctor": ("faults of a SIMULATED rig that its self-test finds, and sound rigs that it finds faults in", doctor)
}
