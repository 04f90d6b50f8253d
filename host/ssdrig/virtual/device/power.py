"""The power states of the virtual drive as a host sets and reads them, over whatever transport.

Features 02h (Power Management), 0Ch (Autonomous Power State Transition) and 10h (Host Controlled Thermal Management) of
the NVM Express Base Specification 1.4, 25h (Power Measurement) of 2.3. They are the drive's, not a controller's; none
outlives a power cycle. An admin command does not wake the drive, a change of 02h or 0Ch does: it then begins the state
again.

The power measurement of the virtual drive (NVMe Base Specification 2.3): log 25h and feature 25h. An interval is a
tick of the device, about a second."""

import struct
from typing import Protocol

from ssdrig.virtual.device import thermal
from ssdrig.virtual.flash import power_states
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import Preset

STOP, START = 0, 1


class PowerMeasurement:
    """What the drive has measured of itself since a host started it; none of it outlives a power cycle."""

    def __init__(self) -> None:
        self.on, self.generation, self.count, self._sum_W, self.maximum_W = False, 0, 0, 0.0, 0.0

    @property
    def average_W(self) -> float:
        return self._sum_W / self.count if self.count else 0.0

    def interval(self, watts: float) -> None:
        """Take the mean power of an interval, where it is measured."""
        if self.on:
            self.count += 1
            self._sum_W += watts
            self.maximum_W = max(self.maximum_W, watts)

    def act(self, action: int) -> None:
        """Start from zero, or stop. Raises ValueError."""
        if action not in (STOP, START):
            raise ValueError("0 to stop or 1 to start")
        self.on = action == START
        if self.on:
            self.generation = (self.generation + 1) & 0xFF
            self.count, self._sum_W, self.maximum_W = 0, 0.0, 0.0


POWER, APST, HCTM, MEASUREMENT = 0x02, 0x0C, 0x10, 0x25
FEATURES = (POWER, APST, HCTM, MEASUREMENT)
APST_BYTES = 256
KELVIN = 273
ENTRIES = 32


class Powered(Protocol):
    """What the features need of the device: its model, its drive, and its two clocks, ns."""

    preset: Preset
    drive: VirtualDrive

    def model_ns(self, t_ns: int) -> int: ...

    def host_ns(self, model_ns: int) -> int: ...

    def keep_pace(self) -> None: ...


class PowerFeatures:
    def __init__(self, device: Powered):
        self.device = device
        self.states = power_states.states(device.preset)
        self.has_apst = bool(power_states.default_apst(device.preset))
        self.start()

    def start(self) -> None:
        """As after power-on; the drive itself begins in PS0 with its own transitions."""
        self.operational = 0  # the last such state that was set
        self._hint = 0  # workload hint, which means nothing here
        self._enabled = self.has_apst
        self._table = power_states.default_apst(self.device.preset)
        self._tmt_K = (0, 0)
        self.measurement = PowerMeasurement()

    @property
    def tmt_C(self) -> tuple[float | None, float | None]:
        """The host's two thresholds, None where it set none."""
        light, heavy = (kelvin - KELVIN if kelvin else None for kelvin in self._tmt_K)
        return light, heavy

    def speed(self) -> float:
        """Share of its NAND's speed that the power state allows."""
        return power_states.speed(self.device.preset, self.states[self.operational].max_mW)

    def has(self, fid: int) -> bool:
        absent = {APST: not self.has_apst, MEASUREMENT: not self.device.preset.power_log}
        return fid in FEATURES and not absent.get(fid)

    def data_bytes(self, fid: int) -> int:
        """Bytes that come with the feature, from and to the host."""
        return APST_BYTES if fid == APST and self.has_apst else 0

    def get(self, fid: int, now_ns: int) -> tuple[int, bytes | None]:
        """(result, data or None). 02h returns the drive's state."""
        if fid == POWER:
            device = self.device
            return device.drive.power_state(device.model_ns(now_ns)) | self._hint << 5, None
        if fid == MEASUREMENT:
            return int(self.measurement.on), None
        if fid == APST:
            return int(self._enabled), pack_apst(self._table)
        return self._tmt_K[0] << 16 | self._tmt_K[1], None

    def set(self, fid: int, value: int, data: bytes, now_ns: int) -> int:
        """Returns the host time when it is done. Raises ValueError, nothing changed."""
        if fid == HCTM:
            light, heavy = value >> 16, value & 0xFFFF
            allowed = range(thermal.LEAST_TMT_C + KELVIN, thermal.MOST_TMT_C + KELVIN + 1)
            if any(kelvin and kelvin not in allowed for kelvin in (light, heavy)) or (
                light and heavy and light >= heavy
            ):
                raise ValueError(f"two thresholds from {allowed[0]} K to {allowed[-1]} K, the lower one first, or 0")
            self._tmt_K = light, heavy
            return now_ns
        if fid == MEASUREMENT:
            self.measurement.act(value & 15)
            return now_ns
        state = self.operational
        if fid == POWER:
            state = value & 31
            if state >= len(self.states):
                raise ValueError(f"a power state from 0 to {len(self.states) - 1}")
            self._hint = value >> 5 & 7
            if self.states[state].operational:
                self.operational = state
        else:
            self._table, self._enabled = self._unpack_apst(data), bool(value & 1)
        device = self.device
        done_ns = device.host_ns(
            device.drive.follow(state, self._table if self._enabled else {}, device.model_ns(now_ns))
        )
        device.keep_pace()
        return max(now_ns, done_ns)

    def _unpack_apst(self, data: bytes) -> dict[int, tuple[int, int]]:
        if len(data) != APST_BYTES:
            raise ValueError(f"{APST_BYTES} bytes of transitions")
        table = {}
        for state, word in enumerate(struct.unpack("<32Q", data)):
            target, idle_ms = word >> 3 & 31, word >> 8 & 0xFFFFFF
            if not idle_ms:
                continue  # no transition from this state
            if target >= len(self.states) or self.states[target].operational or target <= state:
                raise ValueError(f"a lower, non-operational state to go to from state {state}")
            table[state] = (idle_ms, target)
        return table


def pack_apst(table: dict[int, tuple[int, int]]) -> bytes:
    """256 bytes: for each state an entry of 64 bits, the state to go to in 7:3, the ms of idleness in 31:8."""
    words = [table[i][0] << 8 | table[i][1] << 3 if i in table else 0 for i in range(ENTRIES)]
    return struct.pack(f"<{ENTRIES}Q", *words)
