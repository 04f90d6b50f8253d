"""Verifying a sealed drive: the step `recall`. Nothing is written."""

import json
import time
from pathlib import Path

from ssdrig.base.errors import DataLost, DriveError, UsageError
from ssdrig.drive.wear import retention
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.plan.kinds.retention_words import NONE, SEALED
from ssdrig.powerloss.cycle import USUAL
from ssdrig.powerloss.supply import RigSupply
from ssdrig.retention import manifest as manifests
from ssdrig.retention import passes, reading, storage
from ssdrig.retention.at_work import POLL_S, THERE_S, AtWork, at_work, deltas
from ssdrig.retention.manifest import FOLDER, utc_s
from ssdrig.runs import integrity, journal

OFF_S = 1.0  # of a drive whose power is given under the meter


def carry_out(act, stage) -> dict:
    """{"bad", "bytes"}. Raises ManifestRefused, DriveError, RigError, UsageError."""
    return at_work(act, stage, _verify)


def given_log(keys, off_hours: float | None) -> storage.Log | None:
    """The storage that the plan states, or None. Raises UsageError."""
    if keys["storage"] != NONE:
        try:
            text = integrity.content(keys["storage"]).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("a log of temperatures", f"{keys['storage']}: {error}", "correct --storage") from error
        return storage.parse(text, keys["storage"])
    if keys["celsius"] == NONE:
        return None
    hours = off_hours if keys["hours"] == NONE else float(keys["hours"])
    return None if hours is None else storage.constant(float(keys["celsius"]), hours)


def given_file(keys) -> bytes | None:
    """The manifest that the plan names. Raises UsageError."""
    if keys["manifest"] == NONE:
        return None
    try:
        return integrity.content(keys["manifest"])
    except OSError as error:
        raise UsageError("a manifest", f"{keys['manifest']}: {error.strerror}", "correct --manifest") from error


def sealed_digests(keys) -> list[str] | None:
    """The digests in the journal of the run that --manifest belongs to; None: it is not from a run folder."""
    if keys["manifest"] == NONE:
        return None
    run = Path(keys["manifest"]).resolve().parent.parent
    if not (run / "events.jsonl").is_file():
        return None
    return [str(event.get("digest")) for event in journal.events(run) if event["kind"] == "retention.sealed"]


def _verify(one: AtWork) -> dict:
    keys, file = one.keys, given_file(one.keys)
    given_log(keys, 1.0)  # report a wrong log before the drive is touched
    one.tell("retention.begin", phase="verify")
    _power_on(one)
    counts = [one.counted()]
    one.rest("rest", keys["rest"])
    if keys["rest"]:
        counts.append(one.counted())
    copies = _copies(one)
    copy = manifests.agreed(copies, file)
    manifest = copy.manifest
    manifests.same_drive(manifest, one.stage.bench.drive)
    label = None if keys["label"] == NONE else keys["label"]
    whole = len(layouts.PLACES) - len(copy.damaged)
    witnesses = manifests.witnesses(manifest, whole, label, sealed_digests(keys))
    manifests.not_before(manifest, counts[-1], time.time())
    one.stage.progress.say(witnesses.words)
    at = layouts.of_json(manifest["layout"])
    for place, why in copy.damaged.items():
        _say(one, f"the copy of the manifest in the {place} is not used: {why}")
    sealed_s, now_s = utc_s(manifest["seal"]["utc"]), time.time()
    off_hours = (now_s - sealed_s) / 3600 if now_s >= sealed_s else None
    if off_hours is None:
        _say(one, f"it was sealed at {manifest['seal']['utc']}, in this host's future; the storage time is unknown")
    log = storage.within(given_log(keys, off_hours), sealed_s, now_s)
    stored = storage.effect(log, off_hours)
    if log:
        one.book.put(f"{FOLDER}/storage.csv", storage.to_csv(log).encode())
    one.book.put(f"{FOLDER}/manifest.json", json.dumps(manifest, indent=1).encode())
    one.tell(
        "retention.found",
        digest=manifests.digest(manifest),
        damaged=copy.damaged,
        sealed_utc=manifest["seal"]["utc"],
        witnesses=witnesses._asdict(),
    )
    run = manifests.run_number(manifest["run"], manifest["seed"])
    bad = 0
    for number in range(1, keys["passes"] + 1):
        if number > 1:
            one.rest(f"pause {number}", keys["pause"])
            counts.append(one.counted())
            _copies(one)  # wakes the drive: else the first piece seems slow
        pieces, runs = one.read(at, run, layouts.KEPT, f"pass {number}")
        counts.append(one.counted())
        one.leave()
        one.rest(f"after {number}", keys["after"])
        if keys["after"]:
            counts.append(one.counted())
        judged = passes.judge(at, pieces, runs, manifest["baseline"])
        one.book.put(f"{FOLDER}/pass-{number}.json", json.dumps(judged).encode())
        few = ("blocks", "bad", "classes", "share_most", "uber", "slowdown")
        one.tell("retention.pass", number=number, slow=len(judged["slow"]), **{key: judged[key] for key in few})
        bad = bad or judged["bad"]
        one.stage.progress.say(f"pass {number}: {judged['bad']} bad of {judged['blocks']} blocks")
    since_seal = deltas(manifest["seal"]["smart"], counts[-1])
    one.tell(
        "retention.end",
        storage=stored,
        counts=counts,
        since_power_on=deltas(counts[0], counts[-1]),
        since_seal=since_seal,
        bound=_bound(manifest, keys["class"], stored),
        cannot=passes.cannot(layouts.judged_bytes(at) * 8),
    )
    if bad:
        seen = f"{bad} blocks of {layouts.judged_bytes(at) // at.block_bytes} do not"
        do = f"see {one.book.path / FOLDER}/pass-1.json, or ./ssdrig report"
        one.stage.outcome = DataLost("every block to hold the sealed content", seen, do)
    return {"bytes": 0, "bad": bad}


def _say(one: AtWork, words: str) -> None:
    one.stage.progress.warn(words)
    one.tell("note", text=words)


def _bound(manifest: dict, wanted: str, stored: dict) -> dict:
    """retention.bound() for the temperature of storage, or of the class where that is not known."""
    drive_class = manifest["drive"]["class"] if wanted == SEALED else wanted
    of = retention.REQUIREMENTS.get(drive_class or "")
    at_C = stored["effective_C"] if stored["effective_C"] is not None else of.off_C if of else 30.0
    return retention.bound(drive_class, manifest["drive"]["wear_percent"], at_C)


def _power_on(one: AtWork) -> None:
    """Switch off and on under the meter if the drive supports a notice: measures its activity after power-on."""
    rig, target = one.stage.rig, one.target
    if rig is None or target.announce is None or target.slot is not None:
        one.tell("retention.power", on_ns=None, why="the drive had power before the meter began")
        return
    target.announce()
    target.away()
    outcome = RigSupply(rig, one.book.path).cut(USUAL, None, OFF_S)
    one.tell("retention.power", on_ns=outcome.on_ns, off_s=outcome.off_s, why=outcome.why_not or None)
    deadline = time.monotonic() + THERE_S
    while True:
        try:
            one.stage.bench.poll(None)  # no I/O: only whether it is there
            return
        except DriveError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)


def _copies(one: AtWork) -> list[bytes | None]:
    return reading.copies(one.there(), one.stage.bench.drive["capacity_bytes"])
