"""Power of a run as .jls, which the Joulescope UI opens: current, voltage and power of each rail, at a steady rate,
with UTC. The energy of each sample is that of the run's own samples."""

import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base.errors import JournalError, ToolMissing
from ssdrig.base.utc import Utc
from ssdrig.meter import samples
from ssdrig.runs import journal, parts

AT_ONCE = 1 << 18
UTC_EVERY = 60  # seconds between two stamps of UTC
LEAST_V = 1e-3


class Exported(NamedTuple):
    """`samples`: written of each signal, by its name."""

    path: str
    samples: dict[str, int]


def export(run: Path, path: Path) -> Exported:
    """Write the power of a run to a new .jls.

    Raises ToolMissing without pyjls, RigError where the run has no power, JournalError where it cannot be written."""
    try:
        pyjls = importlib.import_module("pyjls")
    except ImportError as error:
        raise ToolMissing("pyjls, which writes .jls", "it is not installed", "pip install pyjls") from error
    part = parts.shown(run)[0]
    header = journal.run_header(part)
    utc = Utc(header["started"]["t_ns"], header["started"]["utc_ns"])
    for event in journal.events(part):
        if event["kind"] == "clock.anchor":
            utc.anchor(event["t_ns"], event["utc_ns"])
    powers = [power for power in samples.load_rails(part) if len(power.t_ns) > 1]
    written: dict[str, int] = {}
    try:
        with pyjls.Writer(str(path)) as writer:
            drive = header["drive"]
            writer.source_def(1, name=str(drive.get("model") or "drive"), vendor="ssdrig", serial_number=part.name)
            for number, power in enumerate(powers):
                named = f" {power.name}" if len(powers) > 1 else ""
                written |= _rail(pyjls, writer, 10 * number + 1, named, power, utc)
    except (OSError, RuntimeError) as error:
        raise JournalError(f"to write {path}", str(error), "name another file, or make room") from error
    return Exported(str(path), written)


def _rail(pyjls: Any, writer: Any, first_id: int, named: str, power: samples.Power, utc: Utc) -> dict[str, int]:
    rate = max(1, round(1e9 / power.facts["conversion_ns"]))
    count = int((power.t_ns[-1] - power.t_ns[0]) * rate // 10**9)
    signals = {"current": "A", "voltage": "V", "power": "W"}
    for signal, (name, unit) in enumerate(signals.items(), first_id):
        writer.signal_def(signal, source_id=1, sample_rate=rate, name=name + named, units=unit)
    begin = int(power.t_ns[0])
    for at in range(0, count, AT_ONCE):
        n = min(AT_ONCE, count - at)
        edges = begin + np.rint((at + np.arange(n + 1)) * (1e9 / rate)).astype(np.int64)
        watts = np.diff(power.integral_J(edges)) * rate
        volts = np.interp((edges[1:] - begin).astype(float), (power.t_ns - begin).astype(float), power.V)
        lit = np.abs(volts) >= LEAST_V
        amperes = np.where(lit, watts / np.where(lit, volts, 1.0), 0.0)
        for signal, values in enumerate((amperes, volts, watts), first_id):
            writer.fsr_f32(signal, at, values.astype(np.float32))
    for sample in sorted({*range(0, count, UTC_EVERY * rate), count - 1}):
        seconds = utc.at(begin + round(sample * 1e9 / rate)) / 1e9
        for signal in range(first_id, first_id + len(signals)):
            writer.utc(signal, sample, pyjls.utc_to_jls(seconds))
    return dict.fromkeys((name + named for name in signals), count)
