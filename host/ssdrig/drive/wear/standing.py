"""One reading of a drive, with those before it: where the drive stands against its limits. Pure."""

from datetime import UTC, date, datetime

from ssdrig.drive.smart import smart_answer
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.drive.wear import endurance, retention, wa

HARD_DISK = "A hard disk: wear of flash does not apply"
FROM_BIRTH = (  # 0 when the drive was new
    "host_written_bytes",
    "nand_written_bytes",
    "host_program_pages",
    "nand_program_pages",
    "nand_written_tlc_bytes",
    "fdp_host_written_bytes",
)


def report(
    snapshot: dict,
    document: dict,
    limits: endurance.Limits,
    history: list[dict],
    rate: endurance.Rate | None,
    storage_C: float,
) -> dict:
    """The snapshot with "limits", "projection", "retention", "wa", "messages" and "unknown" of it. history: earlier
    snapshots of the same drive, by utc_ns; it gives the rate and the write amplification of the workload where it
    can. Of a hard disk limits, projection and retention are empty."""
    today = datetime.fromtimestamp(snapshot["utc_ns"] / 1e9, UTC).date() if snapshot["utc_ns"] else date.today()
    out = dict(snapshot)
    out["messages"] = smart_answer.messages(document.get("smartctl"))
    flash = not snapshot["hard_disk"]
    lately = wa.between(history[0], snapshot) if history else None
    life = wa.between(snapshot | {name: 0 for name in FROM_BIRTH if snapshot[name] is not None}, snapshot)
    if flash:
        rate = (
            rate
            or endurance.rate_of_history([*history, snapshot])
            or endurance.rate_of_life(snapshot, limits.start, today)
        )
        if limits.pe_cycles is None and snapshot["pe_cycles_rated"] is not None:
            limits = limits._replace(pe_cycles=snapshot["pe_cycles_rated"])
    else:
        rate, limits = None, endurance.Limits(start=limits.start)
    projection = endurance.project(snapshot, limits, rate, lately, today)
    used = [
        projection[name]
        for name in ("percentage_used", "tbw_used_percent", "pe_mean_used_percent")
        if projection[name] is not None
    ]
    out["limits"] = limits._asdict() if limits != endurance.Limits() else None
    out["retention"] = retention.bound(limits.drive_class, max(used, default=None), storage_C)
    if not flash:
        out["retention"] |= {"state": "hard disk", "words": HARD_DISK}
    out["retention"]["unpowered_hours_at_most"] = (
        retention.unpowered_hours(history[0], snapshot) if history and flash else None
    )
    measured = lately if lately and (lately.value is not None or life.value is None) else life
    since = (
        str(datetime.fromtimestamp(history[0]["utc_ns"] / 1e9, UTC).date()) if history and measured is lately else None
    )
    out["wa"] = measured._asdict() | {"since": since, "words": wa.words(measured)}
    out["unknown"] = list(snapshot["unknown"])
    out["sources"] = dict(snapshot["sources"])
    if measured.value is not None:
        out["sources"]["wa"] = {"source": measured.source, "error": measured.error, "unit": "1"}
    if flash and answered(document):
        out["unknown"] += projection["unknown"]
        if measured.value is None and not any("NAND" in words for words in snapshot["unknown"]):
            out["unknown"].append(f"write amplification: {wa.words(measured).removeprefix('not known: ')}")
        elif lately and lately is not measured:
            out["unknown"].append(f"write amplification lately: {wa.words(lately).removeprefix('not known: ')}")
    del projection["unknown"]
    out["projection"] = projection
    return out
