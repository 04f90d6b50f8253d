"""Writing and sealing a drive: the step `retain`."""

import json
import time

from ssdrig.base.errors import DriveError, RigError
from ssdrig.base.words import size
from ssdrig.drive.wear import retention
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.plan.kinds.retention_words import RATED
from ssdrig.powerloss.boardclock import BoardClock
from ssdrig.powerloss.supply import RigSupply, no_cut
from ssdrig.retention import manifest as manifests
from ssdrig.retention import passes, reading, writing
from ssdrig.retention.at_work import AtWork, at_work, deltas
from ssdrig.retention.manifest import FOLDER, utc_words


def carry_out(act, stage) -> dict:
    """{"bytes"}. Raises DriveError, RigError."""
    return at_work(act, stage, _seal)


def _seal(one: AtWork) -> dict:
    stage, drive = one.stage, one.stage.bench.drive
    at = layouts.of_drive(drive, one.act.range_bytes)
    run = manifests.run_number(one.run_name, stage.seed)
    one.tell("retention.begin", phase="write", run=run, seed=stage.seed, layout=layouts.as_json(at))
    before, began = one.counted(), time.monotonic()
    total = layouts.written_bytes(at)
    link = one.there()
    done = writing.write(link, at, run, stage.seed, lambda b: one.show(b / total, f"writing, {size(b)}", b))
    written = one.counted()
    facts = {"bytes": done, "seconds": round(time.monotonic() - began, 1), "counted": deltas(before, written)}
    facts |= {"begun_C": before["temperature_C"], "ended_C": written["temperature_C"], "ended_utc": utc_words()}
    one.tell("retention.written", **facts)
    idle_W = one.rest("idle", one.keys["rest"])  # what its cache still holds may be folded meanwhile: read later
    pieces, bad = one.read(at, run, (layouts.BASELINE,), "baseline")
    if bad:
        where = f"block {bad[0][0]}: {bad[0][2]}"
        raise DriveError(
            "to read back the data just written", where, "this drive does not store data; it cannot be sealed"
        )
    middle = passes.middle(pieces)
    one.tell("retention.baseline", **middle)
    after = one.counted()
    manifest = manifests.sealed(
        one.run_name,
        stage.seed,
        {
            "drive": _drive(drive, after, one.keys["class"]),
            "layout": layouts.as_json(at),
            "written": facts,
            "baseline": middle | {"each": [[p[key] for key in ("piece", *passes.UNITS)] for p in pieces]},
            "seal": {"utc": utc_words(), "smart": after, "idle_W": idle_W, "simulated": bool(stage.bench.simulated)},
        },
    )
    writing.put_copies(link, at, manifests.copy(manifest))
    _readable(link, manifest)
    one.book.put(f"{FOLDER}/manifest.json", json.dumps(manifest, indent=1).encode())
    one.leave()
    off = _off(one)
    one.tell("retention.sealed", digest=manifests.digest(manifest), label=manifests.label(manifest), **off)
    stage.progress.warn(f"for the label on the drive: {manifests.label(manifest)}\n{off['words']}")
    return {"bytes": done + len(layouts.PLACES) * layouts.COPY_BYTES}


def _drive(drive: dict, counted: dict, wanted: str) -> dict:
    """The part `drive` of the manifest."""
    wear = counted["percentage_used"]
    of = drive.get("rated_class") if wanted == RATED else wanted
    bound = retention.bound(of, wear, retention.REQUIREMENTS[of].off_C if of in retention.REQUIREMENTS else 30.0)
    facts = {key: drive.get(key) for key in ("model", "serial", "firmware", "capacity_bytes", "logical_block_bytes")}
    return facts | {"wear_percent": wear, "class": of, "bound_hours": bound["hours"], "bound_C": bound["storage_C"]}


def _readable(link, manifest: dict) -> None:
    """Raises DriveError where the copies are not on the drive."""
    copies = reading.copies(link, manifest["drive"]["capacity_bytes"])
    there = manifests.agreed(copies)
    if there.damaged or manifests.digest(there.manifest) != manifests.digest(manifest):
        raise DriveError(
            "three whole copies of the manifest", "damaged or different ones", "this drive does not store data"
        )


def _off(one: AtWork) -> dict:
    """Switch the power off by the rig, announced if the drive supports that: {"off_ns", "off_utc", "announced",
    "words"}."""
    rig, target = one.stage.rig, one.target
    if rig is None:
        words = "no rig takes its power: switch it off now, and note when"
        return {"off_ns": None, "off_utc": None, "announced": False, "words": words}
    if target.announce is not None:
        target.announce()
    target.away()
    try:
        report = RigSupply(rig, one.book.path).off()
    except RigError as error:  # the drive is sealed all the same
        words = f"the rig has not taken its power ({error}): switch it off now, and note when"
        return {"off_ns": None, "off_utc": None, "announced": False, "words": words}
    one.stage.off.set()  # the teardown gives no power back
    off_ns = int(BoardClock(one.book.path).now().t_ns(report["fired_us"]))
    at = utc_words(time.time() - (time.monotonic_ns() - off_ns) / 1e9)
    notice = "announced to the drive" if target.announce else "not announced to the drive; its cache was flushed"
    words = no_cut(report) or f"its power is off since {at} ({notice})"
    return {"off_ns": off_ns, "off_utc": at, "announced": target.announce is not None, "words": words}
