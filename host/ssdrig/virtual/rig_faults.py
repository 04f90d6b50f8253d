"""Settings of the SIMULATED board and its cable, by name: `--faults JSON` changes the defaults here."""

from ssdrig.base import soft_start
from ssdrig.base.errors import UsageError

BOARD = {
    "ppm": 15.0,  # board's crystal: ticks run fast by this
    "start_ticks": (1 << 30) - 5_000_000,  # ticks_us at boot, 5 s before it wraps
    "osc_ppm": 5000.0,  # sensor chip's oscillator: conversions come fast by this
    "gain_ppm": 200.0,
    "vbus_gain_ppm": -100.0,
    "offset_uV": 0.5,
    "noise": 1.0,  # times the chip's noise; 0: none
    "source_mOhm": 15.0,  # of the supply with its leads, before the shunt
    "feed_delay_us": 2000.0,
    "stalls": [],  # [seconds since boot, ms]: the main loop is held up
    "brownouts": [],  # seconds since boot: the chip loses its supply for a moment
    "nacks": [],  # [seconds since boot, ms]: the chip does not answer
    # [seconds since boot, how many, us from one to the next, us]: this long something pulls ALERT of the first rail low
    "glitches": [],
    "lost_edges": [],  # [seconds since boot, how many]: edges of the first rail's ALERT without an interrupt
    "bulk_uF": 470.0,  # capacitance after the switch, the drive's own included
    "discharge_mOhm": 2200.0,
    "uvlo_percent": 80.0,  # of the supply's voltage: below it the drive has no power
    "leak_mA": 10.0,  # that it draws even so
    # of the rail when the switch closes, from 0 to full: by the rail's mV (the nearest counts), or one number
    "rise_ms": {str(mV): ms for mV, ms in soft_start.WHOLE_ms.items()},
    "gate_us": 10.0,  # from a gate's pin to the switch
    "leak_ohm": 0.0,  # and other loads across it: a divider of 20 kOhm without a drive; 0: nothing
    "side_V": 2.7,  # of the host's pull-ups on the side-band, a pad diode taken off,
    "side_ohm": 0.0,  # and all of them in parallel; 0: nothing feeds back
    "sideband": None,  # GPIO of PERST_LOW, if the board drives PERST# and the side-band
    "lock_outs": None,  # GPIO that trips the lock-outs, if the board has that
    "defects": [],  # seconds since boot: the firmware raises an exception
    "bootsel": False,  # the button is held at boot
    "edges": [],  # [seconds since boot, GPIO, level] of the board's inputs
    # Changes to the first row of the firmware's board.RAILS; "true": {..} (of more rows, too) is what of it is really
    # otherwise: of the sensor what wiring.py names, "switch": a fault of broken.py, "scope": a factor, "ohm": of a bad
    # wire, "surges": [[seconds since boot, A, V]] drawn and given on top from then on
    "rail": {},
    "logic_V": 3.3,  # the board's own supply, which is the scope's reference
    "exchanged": [],  # "gates", "scope", "supplies" of the first two rails
    "bus_max_Hz": 10_000_000,  # the I2C bus' reads are wrong above it
    # more rows for it, each with "simulated": {"A", "V"}, its constant load, or {"share", "V"}: what of the drive's
    # power
    "rails": [],
    # (0 to 1) does not come from the first rail but from this one; "absent": true, no sensor answers; with "gate"
    # (GPIO) too it has a switch, with "scope" (GPIO) an input of the ADC after the 12 V divider, and what of bulk_uF
    # to side_ohm is different there
    # {"rail", "gpio", "nA_per_count"}: "fast" of board.json, of a rail with a switch; with "true", the real
    # otherwise: "gain", a factor, "zero", counts of no current, "absent": no amplifier at the pin
    "fast": None,
    # {"gpio", "nV_per_count", "mV"}: "gate_supply" of board.json; with "true", {"mV"}, what it really is
    "gate_supply": None,
    "stuck_miso": [],  # [seconds since boot, ms, level]: MISO is stuck
    "stuck_sda": [],  # seconds since boot: the chip holds SDA low
    # folder that is the board's flash, firmware and all; None: this clone's firmware, and a folder that is
    "flash": None,
    # finally dropped in favour of the board's output
    "micropython": [1, 26, 0],  # version that the board reports it runs
}
TRANSPORT = {
    "loss": 0.0,  # probability of a byte on the way to the host to be lost,
    "corrupt": 0.0,  # changed,
    "duplicate": 0.0,  # doubled
    "command_loss": 0.0,  # the same on the way to the board
    "command_corrupt": 0.0,
    "command_duplicate": 0.0,
    "delay_us": 0.0,  # least time on the way, each way,
    "jitter_us": 0.0,  # mean of the exponentially distributed time on top,
    "outliers": 0.0,  # and the probability of a piece being held up
    "outlier_us": 5000.0,  # by this
    "pause_every_s": 0.0,  # mean time between pauses of the cable, 0: none
    "pause_ms": 0.0,
    "resets": [],  # seconds since start: the board is reset
    "seed": None,
}


def settings(faults: dict) -> tuple[dict, dict]:
    """Faults as given -> (board's, transport's) with the defaults filled in. UsageError for a name unknown."""
    unknown = sorted(faults.keys() - BOARD.keys() - TRANSPORT.keys())
    if unknown:
        raise UsageError(f"faults among {', '.join([*BOARD, *TRANSPORT])}", ", ".join(unknown), "correct the name")
    board, transport = ({**kind, **{k: v for k, v in faults.items() if k in kind}} for kind in (BOARD, TRANSPORT))
    return board, transport
