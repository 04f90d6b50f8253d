"""The plan `power-states` on the virtual bench, against what the drive was made to do: its preset."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from selfcheck import Figure, at_most
from ssdrig.base.errors import LoadError
from ssdrig.reading import table
from ssdrig.virtual.flash.presets import PRESETS, Preset

PRESET = "nvme-tlc"
WORDS = ["run", "power-states", "--virtual", PRESET, "--variant", "quick", "--quiet", "--json"]
MOST_MS = 5.0


def power_states() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-run-", dir="/var/tmp") as folder:
        argv = [sys.executable, "-P", "-m", "ssdrig", *WORDS, "--runs", folder]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise LoadError(f"`ssdrig {' '.join(WORDS)}` to end well", f"exit code {done.returncode}", "see its words")
        return against_preset(Path(json.loads(done.stdout)["run"]), PRESETS[PRESET])


def against_preset(run: Path, preset: Preset) -> list[Figure]:
    """How far each state is off: its power in units of its stated error, entry, exit, and the energy of a sleep."""
    rows = [row for row in table.load(run).rows if row.result.get("kind") == "power-state"]
    off_W, entry_ms, exit_ms, sleep = [], [], [], []
    for row in rows:
        number, result = row.act.point.get("power_state"), row.result
        if not number or result["mean_W"] is None:
            continue
        state = preset.power_states[number - 1]
        true_W = (preset.P_idle_mW if state.operational else state.max_mW) / 1000
        if row.act.path.endswith("/stay"):
            off_W.append(abs(result["mean_W"] - true_W) / result["uncertainty_W"])
        if state.operational or result["entry_ms"] is None or result["exit_ms"] is None:
            continue
        entry_ms.append(abs(result["entry_ms"] - state.enter_us / 1000))
        exit_ms.append(abs(result["exit_ms"] - state.exit_us / 1000))
        if result["wake_J"] is not None:
            work_W = (preset.P_idle_mW + preset.P_active_mW) / 1000
            true_J = (work_W - true_W) * (state.enter_us + state.exit_us) / 1e6
            sleep.append(1e3 * abs(result["wake_J"] - true_J))
    asleep = sum(not state.operational for state in preset.power_states)
    return [
        at_most("power of a state, off in units of its stated error", max(off_W, default=float("nan")), "", 1),
        at_most("entry, off from ENLAT", max(entry_ms, default=float("nan")), "ms", MOST_MS),
        at_most("exit, off from EXLAT", max(exit_ms, default=float("nan")), "ms", MOST_MS),
        Figure("energy of a sleep, off from its transitions", max(sleep, default=float("nan")), "mJ", "none", True),
        at_most("visits without power, entry or exit", _lacking(off_W, exit_ms, asleep, preset), "", 0),
    ]


def _lacking(off_W: list[float], exit_ms: list[float], asleep: int, preset: Preset) -> int:
    return len(preset.power_states) - len(off_W) + 3 * asleep - len(exit_ms)


WHAT = "power, entry and exit of each power state against the preset's, in the quick plan"
BENCHES = {"power-states": (WHAT, power_states)}
