"""Which build a board is: its board.json, checked before it is written, and put there by mpremote."""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from ssdrig.base import shipped
from ssdrig.base.errors import UsageError
from ssdrig.meter import chips, fast, fits
from ssdrig.meter.calibration import MOST_AMPLIFIER_nA
from ssdrig.rig import flash

BUILDS = shipped.path("hardware/builds")
FILE = "board.json"
RAIL = "rail name chip bus alert shunt_uOhm shunt_tolerance_ppm current_lsb_pA vbus_us vshunt_us nominal_mV lead_mOhm"
PLACE = {"I2C0": "address", "SPI0": "cs"}
GPIOS = range(29)
BUS_GPIOS = {"I2C0": (4, 5), "SPI0": (0, 2, 3)}  # MISO, SCK, MOSI; a chip select is a rail's own
SPI_CS = 1  # on the board
WIRED_GPIOS = 20, 21, 22  # TRIGGER, ACTIVITY, SYNC (hardware/pins.csv)
LOW = "shunt_uOhm", "shunt_tolerance_ppm", "feed_nA", "release", "state"  # of a rail's low range
LEAST_LOW, MOST_LOWS, MOST_AGED = 10, 2, 3  # firmware/bypass.py has a machine for two, alert_age.py for three
FAST_GPIO = 28  # ADC2
GATE_SUPPLY_V = 24  # hardware/values.csv: gate_supply
GATE_DIVIDER = 112 / 12  # 100 kOhm and 12 kOhm: 24 V are 2.57 V at the ADC
AMPLIFIER_nA = 100_000  # INA240: 90 uA typical at 12 V, +-10 %; less below (SBOS662C, input bias current)
PICO_Hz = 125_000_000  # of an RP2040; an RP2350 is faster
FAST_BESIDE = (
    4500  # samples/s of all sensors, up to which an RP2040 has time for the fast channel (test_emulated_fast.py)
)


def names() -> list[str]:
    """The builds that hardware/README.md describes."""
    return sorted(path.stem for path in BUILDS.glob("*.json"))


def read(wanted: str) -> dict:
    """A build by its name, or from a file. Raises UsageError."""
    path = BUILDS / f"{wanted}.json" if wanted in names() else Path(wanted)
    try:
        build = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"a build ({', '.join(names())}) or a file like one", str(error), "name one") from error
    wrong = complaint(build)
    if wrong:
        raise UsageError(f"a build in {path}", wrong, "compare it with hardware/builds/two_rails.json")
    return build


def complaint(build: object) -> str | None:
    """The first error of a build; None if it is valid."""
    if not isinstance(build, dict) or not isinstance(build.get("build"), str):
        return 'no object with "build", its name'
    if unknown := sorted(
        build.keys() - {"build", "revision", "rails", "switch", "sideband", "lock_outs", "scope", "fast", "gate_supply"}
    ):
        return f"{', '.join(unknown)}, which no build has"
    rows = {name: build.get(name) for name in ("rails", "switch", "scope")}
    for name, of in rows.items():
        if not isinstance(of, list) or not all(isinstance(row, dict) for row in of):
            return f'"{name}" is not a list of objects'
    rails = build["rails"]
    if not 1 <= len(rails) <= 4:
        return f"{len(rails)} rails, not 1 to 4"
    for row in rails:
        if error := _of_rail(row, len(rails)):
            return f"rail {row.get('rail')}: {error}"
    numbers = [row["rail"] for row in rails]
    if len(set(numbers)) < len(numbers):
        return f"a rail twice: {sorted(numbers)}"
    for name, keys in (("switch", ("gate", "discharge_mOhm")), ("scope", ("gpio", "nV_per_count"))):
        for row in build[name]:
            if row.get("rail") not in numbers or not all(_positive(row.get(key)) for key in keys):
                return f'"{name}" wants a rail of these and {" and ".join(keys)}: {row}'
    if error := _of_time(rails):
        return error
    if error := _of_fast(build):
        return f"fast: {error}"
    pins = [*WIRED_GPIOS, *(gpio for bus in sorted({row["bus"] for row in rails}) for gpio in BUS_GPIOS[bus])]
    pins += [row["alert"] for row in rails] + [row["cs"] for row in rails if row["bus"] == "SPI0"]
    lows = [row["low"] for row in rails if row.get("low")]
    if len(lows) > MOST_LOWS:
        return f"{len(lows)} rails with a low range; {MOST_LOWS} can have one"
    if any(row.get("low") for row in rails[MOST_AGED:]):
        return f"a low range of a rail that is not one of the first {MOST_AGED}, whose stamps go by the edge's age"
    pins += [low[name] for low in lows for name in LOW[3:]]
    if error := _of_gate_supply(build.get("gate_supply")):
        return f"gate_supply: {error}"
    if error := _of_lock_outs(build.get("lock_outs"), rails):
        return f"lock_outs: {error}"
    if error := _of_sideband(build.get("sideband")):
        return f"sideband: {error}"
    pins += [build["sideband"] + k for k in (0, 1)] if build.get("sideband") is not None else []
    pins += [build["lock_outs"]] if build.get("lock_outs") is not None else []
    pins_of_gate = [build["gate_supply"]["gpio"]] if build.get("gate_supply") else []
    fast_row = build.get("fast") or {}
    pins += [row["gpio"] for row in build["scope"]] + [fast_row[name] for name in ("gpio", "volts") if name in fast_row]
    pins += [fast_row["cs"] + k for k in (0, 1) if "cs" in fast_row] + pins_of_gate
    pins += [gate + k for row in build["switch"] for gate in [row["gate"]] for k in (0, 1)]
    addresses = [row["address"] for row in rails if row["bus"] == "I2C0"]
    for what, of in (("pin", pins), ("address", addresses)):
        if len(set(of)) < len(of):
            return f"the same {what} twice: {sorted(of)}"
    return None


def _of_time(rails: list[dict]) -> str | None:
    """Whether a Pico reads all sensors in time, as its firmware asks (sampler.py, `plan`), I2C at its higher rate."""
    clock, claimed = fits.clock(fits.BUS_Hz[0], PICO_Hz), dict.fromkeys(PLACE, 0)
    for row in rails:
        i2c, chip = row["bus"] == "I2C0", chips.CHIPS[row["chip"]]
        conversion_us = chip.conversion_us(row)
        period_us = fits.shortest(conversion_us)
        sample_us = sum(fits.i2c_us(n, clock) if i2c else fits.spi_us(n) for n in chip.sample_bytes)
        soon_us = fits.I2C_SOON_clocks * clock >> 8 if i2c else fits.SPI_SOON_us
        begin_us = fits.I2C_BEGIN_us if i2c else fits.SPI_BEGIN_us
        beside = sum(other["bus"] == row["bus"] for other in rails)
        late_us = fits.delay_us(beside, len(rails) - beside)
        shunt_us = fits.shortest(row["vshunt_us"])
        if fits.late_us(period_us, shunt_us, sample_us, sample_us, soon_us, begin_us, late_us, late_us) is None:
            return (
                f"rail {row['rail']}: conversions of {conversion_us} us are too short on {row['bus']}, where with"
                f" {len(rails)} rails a stamp may be {late_us} us late: take longer ones"
            )
        claimed[row["bus"]] += fits.claimed(sample_us, period_us)
        if claimed[row["bus"]] > fits.MOST_CLAIMED:
            return f"the rails' samples want {claimed[row['bus']] / 10:.0f} % of {row['bus']}: take longer conversions"
    return None


def with_fast(build: dict, rail: int) -> dict:
    """The build with a fast current channel on that rail, wired as in hardware/README.md. Raises UsageError."""
    shunts = [row["shunt_uOhm"] for row in build["rails"] if row["rail"] == rail]
    wrong: str | None = f"rail {rail}, which it has not"
    if shunts:
        row = {"rail": rail, "gpio": FAST_GPIO, "nA_per_count": fast.nA_per_count(shunts[0])}
        rails = [{**of, "amplifier_nA": AMPLIFIER_nA} if of["rail"] == rail else of for of in build["rails"]]
        build = {**build, "rails": rails, "fast": row}
        wrong = _of_fast(build)
    if wrong:
        raise UsageError("--fast with a rail of the build that can have it", wrong, "see hardware/README.md")
    return build


def with_gate_supply(build: dict, where: str) -> dict:
    """The build with the gates' supply, divided, at an input of the ADC, as in hardware/README.md. where:
    GPIO[:V]. Raises UsageError."""
    gpio, _, volts = where.partition(":")
    wrong: str | None = f"{where!r}"
    if re.fullmatch(r"[0-9]{1,2}(:[0-9]{0,2}([.][0-9])?)?", where):
        row = {"gpio": int(gpio), "nV_per_count": round(1e9 * GATE_DIVIDER * fast.REFERENCE_V / fast.STEPS)}
        build = {**build, "gate_supply": {**row, "mV": round(1000 * float(volts or GATE_SUPPLY_V))}}
        wrong = complaint(build)
    if wrong:
        raise UsageError("--gate-supply GPIO[:V] with a free input of the ADC", wrong, "see hardware/README.md")
    return build


def _of_gate_supply(row: object) -> str | None:
    """Whether the ADC can see the gates' supply as a build has it."""
    if row is None:
        return None
    if not isinstance(row, dict) or set(row) != {"gpio", "nV_per_count", "mV"}:
        return f"{row!r} is not a gpio, nV_per_count and mV"
    if row["gpio"] not in (26, 27, 28) or not all(_positive(row[name]) for name in ("nV_per_count", "mV")):
        return f"GPIO 26, 27 or 28, nV_per_count and mV above 0 were expected, not {row}"
    most_mV = row["nV_per_count"] * fast.STEPS // 10**6
    if row["mV"] > most_mV:
        return f"{row['mV']} mV, at a divider that takes {most_mV} mV to the {fast.REFERENCE_V} V of the ADC"
    return None


def _of_lock_outs(gpio: object, rails: list[dict]) -> str | None:
    """Whether the pin that trips the lock-outs is free."""
    if gpio is None:
        return None
    if type(gpio) is not int or gpio not in GPIOS:
        return f"{gpio!r} is not a GPIO"
    if gpio == SPI_CS and any(row["bus"] == "SPI0" for row in rails):
        return f"GPIO {gpio} is the SPI bus'"
    return None


def _of_sideband(gpio: object) -> str | None:
    """Whether PERST# and the rest of the side-band, the next pin, can be held."""
    if gpio is not None and (type(gpio) is not int or gpio not in GPIOS or gpio + 1 not in GPIOS):
        return f"{gpio!r} and the next one are not GPIOs"
    return None


def _of_fast(build: dict) -> str | None:
    """Whether the board can carry the fast current channel that a build asks for."""
    row = build.get("fast")
    if row is None:
        return None
    pair = isinstance(row, dict) and "volts" in row
    own = {"adc", "volts", "cs", "nV_per_count"} if pair else set()
    if not isinstance(row, dict) or set(row) != {"rail", "gpio", "nA_per_count"} | own:
        return f"{row!r} is not a rail, gpio and nA_per_count"
    if pair:
        return _of_pair(row, build)
    of = [other for other in build["rails"] if other["rail"] == row["rail"]]
    if not of or not _positive(row["nA_per_count"]) or row["gpio"] not in (26, 27, 28):
        return f"a rail of these, GPIO 26, 27 or 28, and nA_per_count above 0 were expected, not {row}"
    if row["gpio"] in [pin["gpio"] for pin in build["scope"]]:
        return f"GPIO {row['gpio']} is the scope's"
    if not chips.CHIPS[of[0]["chip"]].charge:
        return f"an {of[0]['chip']} keeps no charge, by which the channel is corrected"
    if not of[0].get("amplifier_nA"):
        return f"rail {row['rail']} lacks amplifier_nA, the amplifier's current through the shunt"
    rate = sum(1e6 / chips.CHIPS[other["chip"]].conversion_us(other) for other in build["rails"])
    if rate > FAST_BESIDE:
        return f"the board has no time for it at {rate:.0f} samples/s; the most is {FAST_BESIDE}"
    return None


def _of_pair(row: dict, build: dict) -> str | None:
    """The same of a channel with two converters."""
    of = [other for other in build["rails"] if other["rail"] == row["rail"]]
    if not of or not all(_positive(row[name]) for name in ("nA_per_count", "nV_per_count")):
        return f"a rail of these, nA_per_count and nV_per_count above 0 were expected, not {row}"
    if row["adc"] not in fast.CONVERTERS:
        return f"adc {row['adc']!r}, not one of {', '.join(fast.CONVERTERS)}"
    if any(type(row[name]) is not int or row[name] not in GPIOS for name in ("gpio", "volts", "cs")):
        return f"gpio, volts and cs are GPIOs 0 to 28, not {row}"
    if not chips.CHIPS[of[0]["chip"]].charge:
        return f"an {of[0]['chip']} keeps no charge, by which the channel is corrected"
    return None


def _of_rail(row: dict, rails: int) -> str | None:
    for name in RAIL.split():
        if name not in row:
            return f"no {name}"
    for name in ("name", "chip", "bus"):
        if not isinstance(row[name], str):
            return f"{name} {row[name]!r} is not a text"
    if row["chip"] not in chips.CHIPS:
        return f"chip {row['chip']}, not one of {', '.join(chips.CHIPS)}"
    place = PLACE.get(row["bus"])
    if place is None or not isinstance(row.get(place), int):
        return f"bus {row['bus']} with {place or 'which'}: I2C0 with its address, or SPI0 with its cs"
    for name in ("shunt_uOhm", "shunt_tolerance_ppm", "current_lsb_pA", "vbus_us", "vshunt_us", "nominal_mV"):
        if not _positive(row[name]):
            return f"{name} {row[name]!r} is not a whole number above 0"
    if "shunt_emf_nV_per_C" in row and not _positive(row["shunt_emf_nV_per_C"]):
        return f"shunt_emf_nV_per_C {row['shunt_emf_nV_per_C']!r} is not a whole number above 0"
    if "amplifier_nA" in row and not (_positive(row["amplifier_nA"]) and row["amplifier_nA"] <= MOST_AMPLIFIER_nA):
        return f"amplifier_nA {row['amplifier_nA']!r} is not a whole number of 1 to {MOST_AMPLIFIER_nA}"
    if not isinstance(row["rail"], int) or not isinstance(row["alert"], int) or row["alert"] not in GPIOS:
        return "rail is a number, and alert a GPIO"
    if not isinstance(row["lead_mOhm"], int) or not 0 <= row["lead_mOhm"] <= 1000:
        return f"lead_mOhm {row['lead_mOhm']!r} is not 0 to 1000"
    if error := _of_low(row):
        return f"low: {error}"
    if error := _of_limits(row, rails):
        return error
    return _of_registers(row, chips.CHIPS[row["chip"]])


def _of_low(row: dict) -> str | None:
    """Whether the rail can have the low range that its row asks for."""
    low = row.get("low")
    if low is None:
        return None
    if not isinstance(low, dict) or set(low) != {*LOW}:
        return f"{low!r} is not {', '.join(LOW)}"
    if row["bus"] != "I2C0" or not chips.CHIPS[row["chip"]].charge:
        return f"an {row['chip']} on {row['bus']}: it wants an INA228 on I2C0"
    if not all(_positive(low[name]) for name in LOW[:3]) or low["shunt_uOhm"] < LEAST_LOW * row["shunt_uOhm"]:
        return f"{', '.join(LOW[:3])} above 0 were expected, the first {LEAST_LOW} times the shunt's, not {low}"
    if any(type(low[name]) is not int or low[name] not in GPIOS for name in LOW[3:]):
        return f"release and state are GPIOs 0 to 28, not {low}"
    return None


def _of_limits(row: dict, rails: int) -> str | None:
    """Whether the rail's limits can be kept: the sensor reads them, above the rail's voltage, slower than it looks."""
    limits = row.get("protect")
    if limits is None:
        return None
    if not isinstance(limits, dict) or set(limits) != {"A", "ms", "V"}:
        return f"protect {limits!r} must be an object of A, ms and V"
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and 0 < n < 1e6 for n in limits.values()):
        return f"every value of protect {limits} must be a number above 0"
    chip = chips.CHIPS[row["chip"]]
    ends = chips.limits_raw({"chip": row["chip"], "shunt_cal": chip.calibration(row)})
    full_A = (ends[0] if ends else 0) * row["current_lsb_pA"] * 1e-12
    if limits["A"] >= 0.99 * full_A:
        return f"protect asks for {limits['A']:g} A of a sensor that ends at {full_A:.2f}"
    if limits["V"] * 1000 < 1.05 * row["nominal_mV"]:
        return f"protect would open {row['nominal_mV'] / 1000:g} V at {limits['V']:g} V, below its +5 %"
    if limits["V"] * 1000 > 1.5 * row["nominal_mV"]:
        return f"protect lets {row['nominal_mV'] / 1000:g} V rise to {limits['V']:g} V"
    lost_us = 2 * chip.conversion_us(row) if row.get("low") else 0  # when it leaves the low range
    least_ms = (fits.trip_us(chip.conversion_us(row), rails) + lost_us) // 1000 + 1
    if limits["ms"] < least_ms:
        return (
            f"protect within {limits['ms']:g} ms: with these conversions and {rails} rails {least_ms} ms is the least"
        )
    return None


def _of_registers(row: dict, chip: chips.Limits) -> str | None:
    """Whether the conversions are the chip's, and shunt, range and the current's last digit fit each other."""
    for name in ("vbus_us", "vshunt_us", *(["temp_us"] if chip.die and row.get("temp_us") is not None else [])):
        if row.get(name) not in chip.conversions_us:
            return f"{name} {row.get(name)} is not one of {', '.join(map(str, chip.conversions_us))}"
    if not chip.inverse and abs(chip.calibration(row) - chip.unity) > 1:
        step_fV = round(chip.shunt_step_V * 1e15) * (1 if row.get("fine") else chip.coarse)
        fitting = 1000 * step_fV // row["shunt_uOhm"]
        return f"current_lsb_pA {row['current_lsb_pA']} with a shunt of {row['shunt_uOhm']} uOhm: {fitting} fits it"
    return None


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def put(port: str, build: dict, say: Callable[[str], None]) -> None:
    """Write it on the board and start that again. Raises RigError, ToolMissing."""
    flash.check(flash.look(port))
    with tempfile.TemporaryDirectory(prefix="ssdrig-") as folder:
        path = Path(folder) / FILE
        path.write_text(json.dumps(build, separators=(",", ":")), "utf-8")
        say(f"writing {FILE}: build {build['build']}, {len(build['rails'])} rails")
        flash.copy(port, {FILE: path})
    flash.start(port)
