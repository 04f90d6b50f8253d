"""The manifest of a sealed drive: 4 KiB that describe terabytes, because run and seed determine each record. Pure.

Three copies are on the drive, each with its own SHA-256; the JSON is in the run folder, and one line of it on a label.
`chain` has a SHA-256 for each part, over the one before and the part, so no part of a manifest can be exchanged. Anyone
can make a chain, though. So witnesses other than the drive must agree, if there are any: the label,
and the journal of the run that sealed it; and no counter of the drive may be lower than at its seal."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ssdrig.base.errors import ManifestRefused, reason
from ssdrig.drive.wear import retention
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.retention.terms import UNITS

FOLDER = "retention"  # in the run folder
SCHEMA = 1
MAGIC = b"SSDRIG RETENTION\n"
PARTS = ("drive", "layout", "written", "baseline", "seal")  # in the order of the chain
SHOWN = 16  # digits of the last hash, on a label
LABEL = "SSDRIG RETENTION "
GROWING = (  # counters that never go back
    *("host_written_bytes", "nand_written_bytes", "media_errors", "percentage_used", "pe_cycles_mean"),
    *("power_on_hours", "power_cycles", "unsafe_shutdowns"),
)
HOUR_SLACK = 2.0  # of power-on hours, which are whole ones
_UTC = "%Y-%m-%dT%H:%M:%SZ"


class Witnesses(NamedTuple):
    """Whether other witnesses than the drive agree with its manifest; None: not checked."""

    label: bool | None
    run_folder: bool | None

    @property
    def words(self) -> str:
        """The proven facts, as a sentence."""
        who = [
            name for name, agrees in (("its label", self.label), ("the run that sealed it", self.run_folder)) if agrees
        ]
        if who:
            return f"The manifest agrees with {' and with '.join(who)}."
        return (
            "Nothing but the drive vouches for its manifest: compare the last digits of its label, or give --label"
            " or --manifest RUN/retention/manifest.json."
        )


class StoredManifest(NamedTuple):
    """The manifest of a drive, and the errors of its copies: {place: why}."""

    manifest: dict
    damaged: dict[str, str]


def utc_words(t_s: float | None = None) -> str:
    """ "2026-11-22T12:00:00Z"."""
    return (datetime.now(UTC) if t_s is None else datetime.fromtimestamp(t_s, UTC)).strftime(_UTC)


def utc_s(words: str) -> float:
    """Seconds since 1970 of utc_words(). Raises ValueError."""
    return datetime.strptime(words, _UTC).replace(tzinfo=UTC).timestamp()


def run_number(run: str, seed: int) -> int:
    """The 32 bits that the records of a test have as their run."""
    return zlib.crc32(f"{run} {seed}".encode())


def sealed(run: str, seed: int, parts: Mapping[str, Mapping]) -> dict:
    """The manifest of these PARTS with its chain."""
    manifest = {"retention": SCHEMA, "run": run, "seed": seed, **{name: parts[name] for name in PARTS}}
    return manifest | {"chain": _chain(manifest)}


def _chain(manifest: Mapping) -> list[str]:
    sums, last = [], f"{manifest['retention']} {manifest['run']} {manifest['seed']}"
    for name in PARTS:
        last = hashlib.sha256(f"{last}\n{name}\n{_canonical(manifest[name])}".encode()).hexdigest()
        sums.append(last)
    return sums


def _canonical(value) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(manifest: Mapping) -> str:
    """The end of its chain."""
    return manifest["chain"][-1]


def label(manifest: Mapping) -> str:
    """One line for a label on the drive."""
    drive, seal = manifest["drive"], manifest["seal"]
    wear = "not known" if drive["wear_percent"] is None else f"{drive['wear_percent']:g} %"
    return (
        f"{LABEL}{manifest['run']} seed {manifest['seed']} · {drive['model']} {drive['serial']} · wear {wear}"
        f" · sealed {seal['utc']} · {digest(manifest)[:SHOWN]}"
    )


def copy(manifest: Mapping) -> bytes:
    """The 1 MiB that is written to the drive. Raises ValueError for a manifest that does not fit."""
    text = _canonical(manifest).encode()
    head = MAGIC + f"{len(text)} {hashlib.sha256(text).hexdigest()}\n".encode()
    if len(head) + len(text) > layouts.COPY_BYTES:
        raise ValueError(f"a manifest of {len(text)} bytes")
    return (head + text).ljust(layouts.COPY_BYTES, b"\0")


def of_copy(data: bytes | None) -> dict:
    """The manifest of one copy. Raises ValueError with the defect."""
    if data is None:
        raise ValueError("the drive refuses to read it")
    if not data.startswith(MAGIC):
        raise ValueError("no manifest")
    head, _, rest = data[len(MAGIC) :].partition(b"\n")
    try:
        length, checksum = head.split()
        text = rest[: int(length)]
    except ValueError:
        raise ValueError("its header is damaged") from None
    if hashlib.sha256(text).hexdigest().encode() != checksum:
        raise ValueError("it is damaged: its SHA-256 does not match")
    return of_text(text)


def of_text(text: bytes) -> dict:
    """The manifest in a JSON text. Raises ValueError if it is invalid or its chain does not match."""
    try:
        manifest = json.loads(text, object_pairs_hook=_once)
        schema, chain = manifest["retention"], _chain(manifest)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no manifest of a retention test: {type(error).__name__}") from None
    if schema != SCHEMA:
        raise ValueError(f"a manifest of schema {schema}, this ssdrig reads {SCHEMA}")
    if manifest.get("chain") != chain or {*manifest} != {"retention", "run", "seed", "chain", *PARTS}:
        raise ValueError("it was altered: its chain of SHA-256 does not fit")
    try:
        _understood(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"it is invalid: {reason(error)}") from None
    return manifest


def _once(pairs: Sequence[tuple[str, Any]]) -> dict:
    """An object of JSON. Raises ValueError for a duplicate key, because a chain only covers the last one."""
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("a key twice")
    return unique


def _understood(manifest: Mapping) -> None:
    """Raises where a verify could not go by it: anyone can make a chain."""
    drive, seal, layout = manifest["drive"], manifest["seal"], layouts.of_json(manifest["layout"])
    if drive["capacity_bytes"] != layout.capacity_bytes:
        raise ValueError(f"a drive of {drive['capacity_bytes']} bytes, laid out for {layout.capacity_bytes}")
    block_bytes = _whole(drive["logical_block_bytes"])
    if block_bytes and layout.block_bytes % block_bytes:
        raise ValueError(f"blocks of {layout.block_bytes} bytes on a drive with {block_bytes}")
    for text in (manifest["run"], drive["model"], drive["serial"]):
        if not isinstance(text, str):
            raise TypeError(f"{text!r} as a name")
    if not isinstance(manifest["seed"], int) or not isinstance(drive["class"], str | None):
        raise TypeError("an invalid seed or class")
    numbers = [drive["wear_percent"], seal["idle_W"], *seal["smart"].values()]
    for number in [*numbers, *(manifest["baseline"][key] for key in UNITS)]:
        _whole(number)
    _agrees(manifest, layout)


def _agrees(manifest: Mapping, layout: layouts.Layout) -> None:
    """Raises ValueError where the parts of a manifest contradict each other."""
    drive, seal, written, base = (manifest[name] for name in ("drive", "seal", "written", "baseline"))
    bound = retention.bound(drive["class"], drive["wear_percent"], _off_C(drive["class"]))
    of_pieces = [row for row in base["each"] if row[1] is not None]
    facts = {
        "the wear": (drive["wear_percent"], seal["smart"].get("percentage_used")),
        "the hours of its class": (drive["bound_hours"], bound["hours"]),
        "the temperature of its class": (drive["bound_C"], bound["storage_C"]),
        "the pieces of the baseline": (base["pieces"], len(of_pieces)),
    }
    for key in ("MBps", "p50_us", "p99_us"):
        of = sorted(row[1 + UNITS.index(key)] for row in of_pieces)
        facts[f"{key} of the baseline"] = (base[key], round(_median(of), 2) if of else None)
    facts["max_us of the baseline"] = (base["max_us"], max((row[4] for row in of_pieces), default=None))
    for what, (one, other) in facts.items():
        if one != other:
            raise ValueError(f"{what} is {one!r} and {other!r}")
    if written["bytes"] > layouts.written_bytes(layout):
        raise ValueError(f"{written['bytes']} bytes written, of at most {layouts.written_bytes(layout)}")
    if utc_s(seal["utc"]) < utc_s(written["ended_utc"]):
        raise ValueError(f"sealed {seal['utc']}, before the end of writing {written['ended_utc']}")


def _off_C(drive_class: str | None) -> float:
    of = retention.REQUIREMENTS.get(drive_class or "")
    return of.off_C if of else 30.0


def _median(values: Sequence[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _whole(value: Any) -> Any:
    """A number or None. Raises TypeError, ValueError."""
    if value is not None and (not isinstance(value, int | float) or not abs(value) < 1e300):
        raise ValueError(f"{value!r} as a number")
    return value


def agreed(copies: Sequence[bytes | None], file: bytes | None = None) -> StoredManifest:
    """The manifest that the copies on a drive agree on. Raises ManifestRefused.

    file: the manifest of a run folder, used if no copy is left; otherwise it must be the same"""
    good: list[dict] = []
    damaged: dict[str, str] = {}
    for place, data in zip(layouts.PLACES, copies, strict=True):
        try:
            good.append(of_copy(data))
        except ValueError as error:
            damaged[place] = str(error)
    if file is not None:
        try:
            good.append(of_text(file))
        except ValueError as error:
            raise ManifestRefused("the manifest of a sealed drive in --manifest", str(error), _DO) from None
    if not good:
        if all(why == "no manifest" for why in damaged.values()):
            do = "write and seal it: ./ssdrig run retention write"
            raise ManifestRefused("a drive that a retention test has sealed", "no manifest on it", do)
        seen = "; ".join(f"{place}: {why}" for place, why in damaged.items())
        raise ManifestRefused("one whole copy of the manifest", seen, "give --manifest RUN/retention/manifest.json")
    if len({digest(manifest) for manifest in good}) > 1:
        seen = ", ".join(sorted({digest(manifest)[:SHOWN] for manifest in good}))
        raise ManifestRefused("copies of one manifest", f"different ones: {seen}", _DO)
    return StoredManifest(good[0], damaged)


def witnesses(manifest: Mapping, copies: int, label_line: str | None, sealed: Sequence[str] | None) -> Witnesses:
    """The witnesses that agree with a manifest. Raises ManifestRefused if one does not agree, or if no copy and no
    witness is left.

    copies: undamaged copies on the drive
    label_line: the line on its label, or the last digits of that; None: not given
    sealed: digests in the journal of its run; None: not given"""
    expected = "the manifest that sealed this drive"
    if label_line is not None:
        text = " ".join(label_line.split())
        whole = text.startswith(LABEL)
        if (text != label(manifest)) if whole else (text.lower() != digest(manifest)[:SHOWN]):
            seen = f"{digest(manifest)[:SHOWN]} in the manifest, {text[-SHOWN:]} on the label"
            raise ManifestRefused(expected, seen, _DO)
    if sealed is not None and digest(manifest) not in sealed:
        seen = f"{digest(manifest)[:SHOWN]} in the manifest, another one in the journal of its run"
        raise ManifestRefused(expected, seen, _DO)
    agreed = Witnesses(None if label_line is None else True, None if sealed is None else True)
    if not copies and not any(agreed):
        raise ManifestRefused(expected, "a file, and no whole copy on the drive", "give --label, the line on the drive")
    return agreed


def not_before(manifest: Mapping, counted: Mapping, now_s: float) -> None:
    """Raises ManifestRefused where the drive counts less than at the seal that the manifest has, or was on for longer
    since then than time has passed."""
    seal = manifest["seal"]
    for key in GROWING:
        was, now = seal["smart"].get(key), counted.get(key)
        if was is not None and now is not None and now < was:
            raise ManifestRefused("a drive that was sealed before", f"{key} {was:g} at its seal, {now:g} now", _DO)
    was, now = (of.get("power_on_hours") for of in (seal["smart"], counted))
    passed_h = (now_s - utc_s(seal["utc"])) / 3600
    if was is not None and now is not None and passed_h >= 0 and now - was > passed_h + HOUR_SLACK:
        seen = f"{now - was:g} hours of power since then, {passed_h:.1f} hours of time"
        raise ManifestRefused(f"a drive that was sealed {seal['utc']}", seen, _DO)


_DO = "compare with the label of the drive; data of unknown origin is not judged"


def same_drive(manifest: Mapping, drive: Mapping) -> None:
    """Raises ManifestRefused where it was made of another drive than this one (its part of run.json)."""
    of = manifest["drive"]
    if (drive.get("logical_block_bytes") or 0) > manifest["layout"]["block_bytes"]:
        seen = f"blocks of {manifest['layout']['block_bytes']} bytes, {drive['logical_block_bytes']} of the drive"
        raise ManifestRefused("the manifest of this drive", seen, "it was formatted: nothing is left of the data")
    for key, name in (("serial", "serial"), ("capacity_bytes", "capacity")):
        if of[key] != drive[key]:
            seen = f"{name} {of[key]} in the manifest, {drive[key]} of the drive"
            raise ManifestRefused("the manifest of this drive", seen, "a copied image shows nothing of the flash")
