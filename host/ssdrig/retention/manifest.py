"""What a sealed drive says of itself: 4 KiB that describe terabytes, for each record follows from run and seed. Pure.

Three copies lie on the drive, each with its own SHA-256; the JSON is in the run folder, and one line of it on a label.
`chain` has a SHA-256 for each part, over the one before and the part, so no part of a manifest can be exchanged."""

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ssdrig.errors import ManifestRefused
from ssdrig.retention import layout as layouts
from ssdrig.retention.terms import UNITS

FOLDER = "retention"  # in the run folder
SCHEMA = 1
MAGIC = b"SSDRIG RETENTION\n"
PARTS = ("drive", "layout", "written", "baseline", "seal")  # in the order of the chain
SHOWN = 16  # digits of the last hash, on a label
_UTC = "%Y-%m-%dT%H:%M:%SZ"


class Found(NamedTuple):
    """The manifest of a drive, and what is wrong with copies of it: {place: why}."""

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
    said = {"retention": SCHEMA, "run": run, "seed": seed, **{name: parts[name] for name in PARTS}}
    return said | {"chain": _chain(said)}


def _chain(said: Mapping) -> list[str]:
    found, last = [], f"{said['retention']} {said['run']} {said['seed']}"
    for name in PARTS:
        last = hashlib.sha256(f"{last}\n{name}\n{_canonical(said[name])}".encode()).hexdigest()
        found.append(last)
    return found


def _canonical(said) -> str:
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def digest(manifest: Mapping) -> str:
    """The end of its chain."""
    return manifest["chain"][-1]


def label(manifest: Mapping) -> str:
    """One line for a label on the drive."""
    drive, seal = manifest["drive"], manifest["seal"]
    wear = "not known" if drive["wear_percent"] is None else f"{drive['wear_percent']:g} %"
    return (
        f"SSDRIG RETENTION {manifest['run']} seed {manifest['seed']} · {drive['model']} {drive['serial']} · wear {wear}"
        f" · sealed {seal['utc']} · {digest(manifest)[:SHOWN]}"
    )


def copy(manifest: Mapping) -> bytes:
    """1 MiB as it lies on the drive. Raises ValueError for one that does not fit."""
    text = _canonical(manifest).encode()
    head = MAGIC + f"{len(text)} {hashlib.sha256(text).hexdigest()}\n".encode()
    if len(head) + len(text) > layouts.COPY_BYTES:
        raise ValueError(f"a manifest of {len(text)} bytes")
    return (head + text).ljust(layouts.COPY_BYTES, b"\0")


def of_copy(data: bytes | None) -> dict:
    """The manifest of one copy. Raises ValueError, which says what is wrong with it."""
    if data is None:
        raise ValueError("the drive refuses to read it")
    if not data.startswith(MAGIC):
        raise ValueError("no manifest")
    head, _, rest = data[len(MAGIC) :].partition(b"\n")
    try:
        length, said = head.split()
        text = rest[: int(length)]
    except ValueError:
        raise ValueError("its head is not what was written") from None
    if hashlib.sha256(text).hexdigest().encode() != said:
        raise ValueError("it is not what was written: its SHA-256 does not fit")
    return of_text(text)


def of_text(text: bytes) -> dict:
    """The manifest of JSON. Raises ValueError where it is none, or its chain does not fit."""
    try:
        found = json.loads(text)
        schema, chain = found["retention"], _chain(found)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no manifest of a retention test: {type(error).__name__}") from None
    if schema != SCHEMA:
        raise ValueError(f"a manifest of schema {schema}, this ssdrig reads {SCHEMA}")
    if found.get("chain") != chain:
        raise ValueError("it was altered: its chain of SHA-256 does not fit")
    try:
        _understood(found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it says what no manifest says: {error}") from None
    return found


def _understood(said: Mapping) -> None:
    """Raises where a verify could not go by it: anyone can make a chain."""
    drive, seal, layout = said["drive"], said["seal"], layouts.of_json(said["layout"])
    if drive["capacity_bytes"] != layout.capacity_bytes:
        raise ValueError(f"a drive of {drive['capacity_bytes']} bytes, laid out for {layout.capacity_bytes}")
    block_bytes = _whole(drive["logical_block_bytes"])
    if block_bytes and layout.block_bytes % block_bytes:
        raise ValueError(f"blocks of {layout.block_bytes} bytes on a drive with {block_bytes}")
    for text in (said["run"], drive["model"], drive["serial"]):
        if not isinstance(text, str):
            raise TypeError(f"{text!r} as a name")
    if not isinstance(said["seed"], int) or not isinstance(drive["class"], str | None):
        raise TypeError("a seed or a class that is none")
    numbers = [drive["wear_percent"], seal["idle_W"], *seal["smart"].values()]
    for each in [*numbers, *(said["baseline"][key] for key in UNITS)]:
        _whole(each)
    utc_s(seal["utc"])


def _whole(value: Any) -> Any:
    """A number or None. Raises TypeError, ValueError."""
    if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
        raise ValueError(f"{value!r} as a number")
    return value


def found(copies: Sequence[bytes | None], file: bytes | None = None) -> Found:
    """The manifest that the copies on a drive agree on; `file`: one of a run folder, which stands in where no copy is
    left, and otherwise must be the same. Raises ManifestRefused."""
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
    if len({digest(each) for each in good}) > 1:
        seen = ", ".join(sorted({digest(each)[:SHOWN] for each in good}))
        raise ManifestRefused("copies of one manifest", f"different ones: {seen}", _DO)
    return Found(good[0], damaged)


_DO = "compare with the label of the drive; nothing is said of data that nobody knows"


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
