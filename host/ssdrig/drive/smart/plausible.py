"""What no drive can have done: bounds for the wear figures of a snapshot, of every interface. Pure.

A figure outside its bounds becomes None, with the reason in `unknown`. If two figures contradict each other, the less
certain one is dropped, or both."""

from ssdrig.base.words import digits, size

# bytes per second that the link carries at most: SATA 6 Gbit/s; SAS 24G, two ports; PCIe 6.0 x4
RATE = {"ATA": 600e6, "SCSI": 4.8e9, "NVMe": 32e9}
HOURS_MOST = 40 * 8766  # the oldest drives that speak SMART
LEAST_BYTES_PER_H, LEAST_AFTER_H = 10_000, 1000  # less than a sector in three minutes for six weeks: another unit
PE_MOST = 100_000  # SLC is rated for this
RATED_LEAST, RATED_MOST = 50, 200_000
WA_LEAST, WA_MOST = 0.3, 100.0  # over a drive's life; the lower one with compression
CAPACITY_SLACK = 2.0  # NAND of a drive to what it offers, at most
ENOUGH_BYTES = 10**10  # from here on a byte counter can prove or refute another figure
ENERGY_MOST_W = 100
CYCLES_MOST = 30 * 350_000  # one in two minutes for 40 years
SECONDARY = {  # what goes with a figure
    "host_written_bytes": ("host_written_unit_bytes", "host_written_source", "host_written_wrap_bytes"),
    "nand_written_bytes": ("nand_written_unit_bytes", "nand_written_source", "nand_written_wrap_bytes"),
    "available_spare_percent": ("available_spare_threshold_percent",),
    "host_program_pages": ("nand_program_pages",),
}
ERROR_COUNTERS = {  # what goes wrong in the flash, with its words
    "uncorrectable_reads": "uncorrectable reads",
    "soft_ecc_errors": "soft ECC errors",
    "xor_recoveries": "XOR recoveries",
    "refreshes": "refreshes",
    "read_disturbs": "read-disturb relocations",
    "program_fails": "program fails",
    "erase_fails": "erase fails",
    "reallocated": "reallocated",
    "bad_user_blocks": "bad user blocks",
}
WORDS = {
    "host_written_bytes": "host bytes written",
    "host_read_bytes": "host bytes read",
    "nand_written_bytes": "NAND bytes written",
    "nand_written_tlc_bytes": "NAND bytes written to TLC",
    "percentage_used": "percentage used",
    "available_spare_percent": "spare",
    "pe_cycles_mean": "mean P/E cycles",
    "pe_cycles_min": "lowest P/E cycles",
    "pe_cycles_max": "highest P/E cycles",
    "pe_cycles_rated": "rated P/E cycles",
    "host_program_pages": "NAND pages",
    "temperature_C": "temperature",
    "temperature_max_C": "highest temperature",
}
BOUNDS = {  # lowest and highest value
    "power_on_hours": (0, HOURS_MOST),
    "percentage_used": (0, 255),
    "available_spare_percent": (0, 100),
    "available_spare_threshold_percent": (0, 100),
    "free_blocks_percent": (0, 100),
    "capacitor_health_percent": (0, 1000),
    "incomplete_shutdowns": (0, CYCLES_MOST),
    "pe_cycles_mean": (0, PE_MOST),
    "pe_cycles_min": (0, PE_MOST),
    "pe_cycles_max": (0, PE_MOST),
    "pe_cycles_rated": (RATED_LEAST, RATED_MOST),
    "workload_wear_percent": (0, 1000),
    "workload_reads_percent": (0, 100),
    "temperature_C": (-60, 150),
    "temperature_max_C": (-60, 200),
    "power_cycles": (0, CYCLES_MOST),
    "unsafe_shutdowns": (0, CYCLES_MOST),
    "lifetime_energy_Wh": (0, ENERGY_MOST_W * HOURS_MOST),
    "interval_power_W": (0, ENERGY_MOST_W),
} | dict.fromkeys(("media_errors", "error_log_entries", *ERROR_COUNTERS), (0, 2**64 - 2))


def drop(out: dict, name: str, why: str, unknown: list[str]) -> None:
    """Drop a figure of a snapshot and the figures that depend on it, and record why."""
    for figure in (name, *SECONDARY.get(name, ())):
        out[figure] = None
        out["sources"].pop(figure, None)
    unknown.append(f"{in_words(name)}: {why}")


def in_words(name: str) -> str:
    return WORDS.get(name) or name.replace("_", " ")


def bytes_most(hours: int | None, protocol: str | None) -> float:
    """Most bytes that the link can transfer in `hours` of power-on time; None: in the life of any drive."""
    return RATE.get(protocol or "NVMe", RATE["NVMe"]) * 3600 * (HOURS_MOST if hours is None else max(hours, 24) + 1)


def bytes_of_percent(used: float, capacity: int, compresses: bool = False) -> float:
    """Most host bytes that a drive can have accepted at `used` percent of its rated life: SLC cycles, twice the
    NAND."""
    return (used + 1) / 100 * PE_MOST * capacity * CAPACITY_SLACK / (WA_LEAST if compresses else 1.0)


def host_of_cycles(mean: float, capacity: int) -> tuple[float, float]:
    """(least, most) host bytes at `mean` P/E cycles."""
    return (mean - 1) * capacity / CAPACITY_SLACK / WA_MOST, (mean + 1) * capacity * CAPACITY_SLACK / WA_LEAST


def nand_fits(nand: float, mean: float, capacity: int) -> bool:
    """Whether NAND bytes and mean P/E cycles can be of one drive."""
    return (mean - 1) * capacity / CAPACITY_SLACK <= nand <= (mean + 1) * capacity * CAPACITY_SLACK


def bytes_fault(count: float, hours: int | None, protocol: str | None, low: bool = False) -> str | None:
    """Why a count of host bytes is impossible, or None. low: also check the lower bound, for ATA drives, whose unit
    depends on the maker."""
    link = {"ATA": "SATA", "SCSI": "SAS"}.get(protocol or "NVMe", "PCIe")
    if count > bytes_most(hours, protocol):
        time = "the life of a drive" if hours is None else f"{hours} power-on hours"
        return f"{size(count)}, more than {link} carries in {time}: another unit, or no count"
    if low and protocol == "ATA" and hours is not None and hours >= LEAST_AFTER_H:
        if count < LEAST_BYTES_PER_H * hours:
            return f"{size(count)} in {hours} power-on hours: too little, another unit or no count"
    return None


def check(out: dict, unknown: list[str], compresses: bool = False) -> None:
    """Apply all bounds to a snapshot with "sources", in place."""
    for name, (low, high) in BOUNDS.items():
        if out[name] is not None and not low <= out[name] <= high:
            ones = out[name] in (2**64 - 1, 2**128 - 1)
            why = "all ones, not a count" if ones else f"{out[name]:g} is out of its bounds, {low:g} to {high:g}"
            drop(out, name, why, unknown)
    hours, protocol = out["power_on_hours"], out["protocol"]
    for name in ("host_written_bytes", "host_read_bytes"):
        why = out[name] is not None and bytes_fault(out[name], hours, protocol, name == "host_written_bytes")
        if why:
            drop(out, name, f"{_source(out, name)} gives {why}", unknown)
    for name in ("nand_written_bytes", "nand_written_tlc_bytes"):
        if out[name] is not None and out[name] > WA_MOST * bytes_most(hours, protocol):
            drop(out, name, f"{_source(out, name)} gives {size(out[name])}, more than a drive can write", unknown)
    _temperatures(out, unknown)
    _timers(out, hours, unknown)
    _cycles(out, unknown)
    _lifetime_wa(out, compresses, unknown)
    _cycles_against_bytes(out, compresses, unknown)
    _percentage_against_cycles(out, unknown)


def _source(out: dict, name: str) -> str:
    return (out["sources"].get(name) or {}).get("source") or "the drive"


def _temperatures(out: dict, unknown: list[str]) -> None:
    if out["temperature_C"] == 0 and out["temperature_max_C"] in (None, 0):
        drop(out, "temperature_C", "0 °C everywhere, as of a drive without a sensor", unknown)
        out["temperature_max_C"] = None
        out["sources"].pop("temperature_max_C", None)
    if None not in (out["temperature_C"], out["temperature_max_C"]) and out["temperature_max_C"] < out["temperature_C"]:
        drop(out, "temperature_max_C", f"{out['temperature_max_C']:g} °C is below that of now", unknown)


def _timers(out: dict, hours: int | None, unknown: list[str]) -> None:
    if hours is None:
        hours = HOURS_MOST
    most_min = (hours + 1) * 60 + hours * 60 // 100
    for name in ("warning_temp_min", "critical_temp_min"):
        if out[name] is not None and out[name] > most_min:
            drop(out, name, f"{out[name]} minutes, longer than {hours} power-on hours", unknown)
    if out["workload_timer_min"] is not None and out["workload_timer_min"] > most_min:
        why = f"{out['workload_timer_min']} minutes, longer than {hours} power-on hours"
        drop(out, "workload_timer_min", why, unknown)
        for name in ("workload_wear_percent", "workload_reads_percent"):
            if out[name] is not None:
                drop(out, name, "its timer cannot be believed", unknown)
    if out["power_cycles"] == 0 and out["power_on_hours"] is not None and hours >= LEAST_AFTER_H:
        drop(out, "power_cycles", f"0 in {hours} power-on hours: the drive does not count them", unknown)
    if out["lifetime_energy_Wh"] is not None and out["lifetime_energy_Wh"] > ENERGY_MOST_W * (hours + 1):
        drop(out, "lifetime_energy_Wh", f"more than {ENERGY_MOST_W} W in {hours} power-on hours", unknown)


def _cycles(out: dict, unknown: list[str]) -> None:
    """Lowest <= mean <= highest; 0 next to a non-zero figure means not counted."""
    names = [f"pe_cycles_{end}" for end in ("min", "mean", "max")]
    known = {name: out[name] for name in names if out[name] is not None}
    if any(value > 1 for value in known.values()):
        for name in ("pe_cycles_mean", "pe_cycles_max"):
            if known.get(name) == 0:
                drop(out, name, f"0, although {_others(known, name)}: the drive does not count it", unknown)
                del known[name]
    ordered = [known[name] for name in names if name in known]
    if any(a > b + 1 for a, b in zip(ordered, ordered[1:])):
        why = f"{_others(known, None)} contradict each other, so none is used"
        for name in list(known):
            drop(out, name, why, unknown)
    if all(out[name] is None for name in names):
        out["pe_cycles_source"] = None


def _others(known: dict, but: str | None) -> str:
    return " and ".join(f"{in_words(name)} {value:g}" for name, value in known.items() if name != but)


def _lifetime_wa(out: dict, compresses: bool, unknown: list[str]) -> None:
    """NAND bytes, and pages, against the host's over the same time."""
    fdp = out["nand_written_source"] == "log 22h"
    host = out["fdp_host_written_bytes"] if fdp else out["host_written_bytes"]
    host_unit = 1 if fdp else out["host_written_unit_bytes"] or 0
    least = WA_LEAST if compresses else 1.0
    for name in ("nand_written_bytes", "nand_written_tlc_bytes"):
        nand, source = out[name], _source(out, name)
        if nand is None or host is None:
            continue
        nand_unit = out["nand_written_unit_bytes"] or (out["sources"].get(name) or {}).get("error") or 0
        if nand == 0 and host >= ENOUGH_BYTES:
            drop(out, name, f"{source} reports 0, the host wrote {size(host)}: the drive does not count", unknown)
        elif max(nand, host) >= ENOUGH_BYTES:
            # 1 % for counters that are not saved at the same time; TLC alone may be less: the cache held the rest
            low = (WA_LEAST if name.endswith("tlc_bytes") else least) * (host - host_unit) * 0.99
            if nand + nand_unit < low or nand - nand_unit > WA_MOST * (host + host_unit):
                ratio = digits(nand / host, 3) if host else "no"
                why = f"{source} gives {size(nand)} for {size(host)} of the host: a write amplification of {ratio}"
                drop(out, name, f"{why} over a whole life cannot be; another unit, or another count", unknown)
    pages, all_pages = out["host_program_pages"], out["nand_program_pages"]
    if pages is not None and all_pages is not None and pages > 10_000 and all_pages > WA_MOST * pages:
        drop(out, "host_program_pages", f"{all_pages} for {pages} of the host: no drive writes that much", unknown)


def _cycles_against_bytes(out: dict, compresses: bool, unknown: list[str]) -> None:
    """Mean P/E cycles x capacity is what the NAND took: 0.3 to 100 times the host's bytes."""
    mean, host, capacity = out["pe_cycles_mean"], out["host_written_bytes"], out["capacity_bytes"]
    if None in (mean, host, capacity) or not capacity:
        return
    if mean == 0 and host > 10 * capacity:
        drop(out, "pe_cycles_mean", f"0, although the host wrote {size(host)}: the drive does not count", unknown)
        return
    least, most = host_of_cycles(mean, capacity)
    if least <= host + (out["host_written_unit_bytes"] or 0) and host <= most:
        return
    why = (
        f"{mean:g} P/E cycles ({_source(out, 'pe_cycles_mean')}) of {size(capacity)} and {size(host)} of the host"
        f" ({_source(out, 'host_written_bytes')}) contradict each other"
    )
    if _own_word(out, "host_written_bytes"):
        drop(out, "pe_cycles_mean", why, unknown)
    else:
        for name in ("host_written_bytes", "pe_cycles_mean"):
            drop(out, name, f"{why}, so neither is used", unknown)
        if out["host_read_bytes"] is not None and not _own_word(out, "host_read_bytes"):
            drop(out, "host_read_bytes", f"counted in the unit of the writes: {why}", unknown)
        if out["nand_written_bytes"] is not None and not nand_fits(out["nand_written_bytes"], mean, capacity):
            drop(out, "nand_written_bytes", why, unknown)


def _percentage_against_cycles(out: dict, unknown: list[str]) -> None:
    """The rating that percentage used and mean P/E cycles imply together must be one of a flash."""
    used, mean, rated = out["percentage_used"], out["pe_cycles_mean"], out["pe_cycles_rated"]
    if used is None or mean is None:
        return
    by_cycles = 100 * mean / rated if rated else None
    if used >= 5 and 100 * (mean + 1) / (used - 1) < RATED_LEAST:
        why = f"{used:g} % ({_source(out, 'percentage_used')}) at {mean:g} P/E cycles: no flash is rated so low"
        drop(
            out, "pe_cycles_mean" if mean == 0 or _own_word(out, "percentage_used") else "percentage_used", why, unknown
        )
    elif used == 0 and by_cycles is not None and by_cycles >= 10 and not _own_word(out, "percentage_used"):
        of = f"{mean:g} of {rated:g} P/E cycles"
        why = f"{_source(out, 'percentage_used')} still reports 0 %, {of} are {by_cycles:.0f} %"
        drop(out, "percentage_used", f"{why}; neither is used as it", unknown)


def _own_word(out: dict, name: str) -> bool:
    """Whether a standard defines the figure, not the table of a maker's attributes."""
    return not _source(out, name).startswith(("attribute", "smartctl"))
