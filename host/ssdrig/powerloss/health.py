"""What a cut did to the drive as a whole: identity, capacity, being there, being writable, time to be ready, counters,
spare, capacitors. Pure; the classes are in findings.OF_DRIVE.

Sources: NVM Express Base Specification 2.0, log 02h (bytes 0, 3, 32 to 175; "retained across power cycles", which ATA
states for no attribute); OCP Datacenter NVMe SSD Specification
2.0, log C0h (0 to 15, 112 to 115, 128 to 129)."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from ssdrig.base.words import digits
from ssdrig.plan.kinds.cuts import READY_S
from ssdrig.powerloss import boot
from ssdrig.powerloss.findings import BY_NAME, UNSURE

DEAD_CYCLES = 10  # power cycles without an answer that make a drive dead
SLOW = 10.0  # times the usual time to be ready
LEAST_STALL_S = 0.01  # that is worth a word
LEAST_USUAL = 3  # cuts that make a time usual
USUAL_OF = 10  # the first cuts that define the usual value: a time that grows must not make itself usual
FALLEN = 0.1  # of the recharge energy, to be a finding
LEAST = 9  # cuts that show it
SURE = 3.0  # standard errors of a fall
CAPACITOR_SLACK = 2  # percent by which a drive's own word on its capacitors may scatter
READ_ONLY_BIT = 3  # of the critical warning


class State(NamedTuple):
    """A drive's reports and state after a power-on; None: not known. ready_s None: it has not come back."""

    ready_s: float | None
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    capacity_bytes: int | None = None
    block_bytes: int | None = None
    writable: bool | None = None
    critical_warning: int | None = None
    power_cycles: int | None = None
    unsafe_shutdowns: int | None = None
    power_on_hours: int | None = None
    data_units_read: int | None = None
    data_units_written: int | None = None
    nand_write_bytes: int | None = None
    media_errors: int | None = None
    spare_percent: int | None = None
    incomplete_dumps: int | None = None
    capacitor_health: int | None = None
    protocol: str | None = None  # "NVMe", "ATA"
    # of nand_write_bytes, and of model, serial, firmware and capacity: values from another source are not compared
    nand_source: str | None = None
    identity_source: str | None = None


class Symptom(NamedTuple):
    """A finding on the drive: a name of findings.OF_DRIVE, and the observation."""

    name: str
    words: str

    @property
    def certain(self) -> bool:
        return BY_NAME[self.name].certain


def of_pages(
    ready_s: float | None, identity: dict[str, Any], log_02h: bytes | None = None, log_c0h: bytes | None = None
) -> State:
    """From the fields of State that the caller knows (`identity`) and the drive's health pages, 512 bytes each."""
    fields: dict[str, Any] = {}
    number = lambda page, at, n: int.from_bytes(page[at : at + n], "little")
    if log_02h:
        fields |= {"critical_warning": log_02h[0], "spare_percent": log_02h[3]}
        counters = {
            "data_units_read": 32,
            "data_units_written": 48,
            "power_cycles": 112,
            "power_on_hours": 128,
            "unsafe_shutdowns": 144,
            "media_errors": 160,
        }
        fields |= {name: number(log_02h, at, 16) for name, at in counters.items()}
    if log_c0h:
        fields |= {"nand_write_bytes": number(log_c0h, 0, 16), "incomplete_dumps": number(log_c0h, 112, 4)}
        fields["capacitor_health"] = number(log_c0h, 128, 2)
    return State(ready_s, **{**fields, **identity})


# where NVMe and OCP define a counter of NAND bytes, which is kept over power cycles; a maker's own page promises none
NAND_KEPT = ("log C0h", "log 09h")
# counters that only grow, and how far back each may go by the coarseness of its unit
GROWING = {
    "power_cycles": 0,
    "unsafe_shutdowns": 0,
    "power_on_hours": 1,
    "data_units_read": 1,
    "data_units_written": 1,
    "nand_write_bytes": 0,
    "media_errors": 0,
    "incomplete_dumps": 0,
}


def judge(
    before: State,
    after: State,
    unsafe: int = 1,
    cycles: int = 1,
    usual_s: float | None = None,
    limit_s: float | None = None,
    tries: int = 1,
    stalled_s: float = 0.0,
) -> list[Symptom]:
    """The findings on the drive `after`, compared with `before`, the last time that it was there. Meanwhile it lost
    its power `cycles` times, `unsafe` of them unannounced. `usual_s`: see usual_s(); `limit_s`: what the plan allows a
    drive to be ready, from power on to the first block read; `tries`: power cycles in which a missing drive was waited
    for; `stalled_s`: this part of after.ready_s may not be the drive's: see cycle.Lived."""
    if after.ready_s is None:
        return [Symptom("DEAD" if tries >= DEAD_CYCLES else "MISSING", f"no answer in {tries} power cycles")]
    out = _identity(before, after)
    if tries > 1:
        out.append(Symptom("MISSING", f"no answer within {READY_S:g} s of power, until power cycle {tries}"))
    if after.writable is False:
        out.append(Symptom("READ_ONLY", "it refuses writes"))
    elif after.critical_warning is not None and after.critical_warning >> READ_ONLY_BIT & 1:
        out.append(Symptom("READ_ONLY", "critical warning bit 3 is set"))
    own_s, words = after.ready_s - stalled_s, f"ready after {digits(after.ready_s, 3)} s"
    if stalled_s >= LEAST_STALL_S:
        words = (
            f"ready after {digits(own_s, 3)} to {digits(after.ready_s, 3)} s (this host may have taken the difference)"
        )
    if limit_s is not None and own_s > limit_s:
        out.append(Symptom("READY_TOO_LATE", f"{words}; the plan allows {digits(limit_s, 3)} s"))
        return out + _counters(before, after, unsafe, cycles)
    if limit_s is not None and after.ready_s > limit_s:
        out.append(Symptom(UNSURE, f"{words}; the plan allows {digits(limit_s, 3)} s"))
    if usual_s is not None and own_s > SLOW * usual_s:
        out.append(Symptom("SLOW_READY", f"{words}; usually {digits(usual_s, 3)} s"))
    return out + _counters(before, after, unsafe, cycles)


def no_start(starts: Sequence[bool | None]) -> bool:
    """Whether a drive that stays away was seen to draw no start-up current, in every power cycle that was watched."""
    seen = [start for start in starts if start is not None]
    return bool(seen) and not any(seen)


def alive(starts: Sequence[bool | None]) -> str:
    """That a drive which the host does not find draws its start-up current, in words; "" where it does not."""
    drew = sum(start is True for start in starts)
    return f"alive by its current in {drew} of {len(starts)} power cycles, not found by the host" if drew else ""


def _identity(before: State, after: State) -> list[Symptom]:
    fields = {"IDENTITY": ("model", "serial", "firmware", "block_bytes"), "CAPACITY": ("capacity_bytes",)}
    out = []
    for name, of in fields.items():
        changed = [name for name in of if _differ(before, after, name)]
        words = [f"{name} {getattr(before, name)!r} is now {getattr(after, name)!r}" for name in changed]
        out += [Symptom(name, ", ".join(words))] if words else []
    return out


def _differ(before: State, after: State, field: str) -> bool:
    was, now = getattr(before, field), getattr(after, field)
    return before.identity_source == after.identity_source and None not in (was, now) and was != now


def _grown(before: State, after: State, field: str) -> int | None:
    """By how much a number has grown; None: not known."""
    was, now = getattr(before, field), getattr(after, field)
    if was is None or now is None or field == "nand_write_bytes" and before.nand_source != after.nand_source:
        return None
    return now - was


def _counters(before: State, after: State, unsafe: int, cycles: int) -> list[Symptom]:
    asked = {"power_cycles": cycles, "unsafe_shutdowns": unsafe}
    grown = {name: _grown(before, after, name) or 0 for name in (*GROWING, "spare_percent", "capacitor_health")}
    back = [name for name, slack in GROWING.items() if grown[name] < -slack]
    own_page = after.nand_source not in (None, *NAND_KEPT)
    unsaved = [name for name in back if after.protocol == "ATA" or name == "nand_write_bytes" and own_page]
    off = [name for name, n in asked.items() if name not in back and _grown(before, after, name) not in (None, n)]
    counts = {
        "SMART_REGRESS": [name for name in back if name not in unsaved],
        "SMART_UNSAVED": unsaved,
        "SMART_MISCOUNT": off,
        "SPARE_MEDIA": ["spare_percent"] * (grown["spare_percent"] < 0)
        + ["media_errors"] * (grown["media_errors"] > 0),
        "PLP_DEGRADED": ["capacitor_health"] * (grown["capacitor_health"] < -CAPACITOR_SLACK)
        + ["incomplete_dumps"] * (grown["incomplete_dumps"] > 0),
    }
    out = []
    for name, of in counts.items():
        words = [
            f"{counter} {getattr(before, counter)} is now {getattr(after, counter)}"
            + (f" after {asked[counter]}" if name == "SMART_MISCOUNT" else "")
            for counter in of
        ]
        out += [Symptom(name, ", ".join(words))] if words else []
    return out


def compared(before: State, after: State) -> State:
    """The reference for the next state: `after`, except the capacitors, whose fall may come in small steps: they
    are compared with the level that was reported last."""
    was, now = before.capacitor_health, after.capacitor_health
    if was is None or now is not None and not was - CAPACITOR_SLACK <= now <= was:
        return after
    return after._replace(capacitor_health=was)


def usual_s(ready_s: Sequence[float | None]) -> float | None:
    """The usual time to be ready of a campaign, from the times so far: the median of the first; None for fewer than
    LEAST_USUAL."""
    first = [seconds for seconds in ready_s if seconds is not None][:USUAL_OF]
    return statistics.median(first) if len(first) >= LEAST_USUAL else None


def slow_first(times: Sequence[tuple[int, float, float]]) -> list[int]:
    """Cuts that were slow by the usual time, and came before it was known. `times`: (cut, ready_s, of it the drive's
    own) of the first cuts that have them, oldest first."""
    usual = usual_s([ready_s for _, ready_s, _ in times])
    return [cut for cut, _, own_s in times[:LEAST_USUAL] if usual is not None and own_s > SLOW * usual]


def capacitors(numbers: Sequence[int], recharge_J: Sequence[float | None]) -> Symptom | None:
    """Whether the energy that recharges the capacitors, after each cut, has fallen over a campaign: by its line
    (boot.health), by more than FALLEN and by more than SURE standard errors. None where it has not, or with fewer than
    LEAST cuts that show it."""
    state = boot.health(numbers, recharge_J) if sum(energy_J is not None for energy_J in recharge_J) >= LEAST else None
    if state is None or 100 - state.percent[-1] <= max(100 * FALLEN, SURE * state.error_percent):
        return None
    words = f"by the energy that recharges them {state.percent[-1]:.0f} ± {max(0.1, state.error_percent):.1f} % is left"
    return Symptom("PLP_DEGRADED", words)
