"""What a retention test came to, in sentences: on its page, on a terminal, at the end of its run."""

from collections.abc import Mapping

from ssdrig.base.words import size
from ssdrig.plan.rules import chance
from ssdrig.retention import terms
from ssdrig.retention.manifest import Witnesses
from ssdrig.views.context import figure
from ssdrig.views.cuts.sentences import numbers
from ssdrig.views.terms import number

COUNTERS = {
    "nand_written_bytes": "NAND bytes",
    "refreshes": "refreshes",
    "soft_ecc_errors": "soft ECC errors",
    "uncorrectable_reads": "uncorrectable reads",
    "xor_recoveries": "XOR recoveries",
    "media_errors": "media errors",
    "host_written_bytes": "host bytes written",
    "power_cycles": "power cycles",
    "unsafe_shutdowns": "unsafe shutdowns",
    "available_spare_percent": "spare, percent",
}


def verdict(event: Mapping) -> str:
    """The sentence that a reader takes away."""
    if event["phase"] == "write":
        return f"Sealed: {event['label']}" if event["digest"] else "The drive was not sealed."
    if not event["passes"]:
        return "Nothing was read: no verdict on the drive."
    reading = worst_pass(event)
    if not reading["bad"]:
        return f"All {number(reading['blocks'], 0)} blocks hold the sealed data."
    kinds = ", ".join(f"{number(n, 0)} {name}" for name, n in reading["classes"].items())
    later = "" if event["passes"][0]["bad"] else ", which the first pass read well"
    bad, blocks = (number(reading[key], 0) for key in ("bad", "blocks"))
    return f"{bad} of {blocks} blocks do not hold the sealed data ({kinds}){later}."


def worst_pass(event: Mapping) -> Mapping:
    """The first pass that found lost blocks, the first one without any."""
    return next((reading for reading in event["passes"] if reading["bad"]), event["passes"][0])


def lines(event: Mapping) -> list[str]:
    """All sentences, in the order of a terminal."""
    if event["phase"] == "write":
        return [verdict(event), *written(event)]
    out = [verdict(event)]
    for n, reading in enumerate(event["passes"], 1):
        out += of_pass(reading, n, len(event["passes"]))
    if event["witnesses"]:
        out.append(Witnesses(*(event["witnesses"].get(key) for key in Witnesses._fields)).words)
    out += [f"Copy of the manifest in the {place} is not used: {why}." for place, why in event["damaged"].items()]
    return [*out, *stored(event), *refresh(event), *bound(event), *(event["cannot"] or [])]


def written(event: Mapping) -> list[str]:
    """The amount written, and the seal."""
    manifest = event["manifest"]
    if not manifest:
        return []
    base, drive = manifest["baseline"], manifest["drive"]
    out = [f"{size(manifest['written']['bytes'])} were written in {figure(manifest['written']['seconds'])} s."]
    host, nand = (manifest["written"]["counted"].get(f"{of}_written_bytes") for of in ("host", "nand"))
    if host and nand is not None:
        out.append(f"NAND bytes {size(nand)} for {size(host)} of the host: at most {size(max(0, nand - host))} moved.")
    if base["pieces"]:
        out.append(
            f"Baseline, read once: {figure(base['MBps'])} MB/s, P50 {figure(base['p50_us'])} µs, P99"
            f" {figure(base['p99_us'])} µs in {base['pieces']} pieces."
        )
    else:
        out.append("Baseline: no piece could be read.")
    wear = "not known" if drive["wear_percent"] is None else f"{figure(drive['wear_percent'])} %"
    out.append(f"Wear {wear}, class {drive['class'] or 'not known'}.")
    begun_C, ended_C = manifest["written"]["begun_C"], manifest["written"]["ended_C"]
    if begun_C is not None and ended_C is not None:
        out.append(f"Written at {figure(begun_C)} to {figure(ended_C)} °C, by the drive's own sensor.")
    return [*out, *([event["off"]["words"] + "."] if event["off"] and event["off"]["words"] else [])]


def of_pass(reading: Mapping, n: int, of: int) -> list[str]:
    """One pass: bounds, speed."""
    name = f"Pass {n}: " if of > 1 else ""
    out = []
    if reading["share_most"] is not None:
        out.append(
            f"{name}{number(reading['bad'], 0)} bad blocks; chance per block <"
            f" {chance.percent(reading['share_most'])} (95 %, Clopper-Pearson); UBER < {reading['uber']['most']:.1e}"
            f" (60 %) from {size(reading['uber']['bits'] / 8)} read."
        )
    middle = reading["middle"]
    if reading["slowdown"] is not None:
        out.append(
            f"{name}{figure(reading['slowdown'])} times the time of the baseline; {figure(middle['MBps'])} MB/s, P99"
            f" {figure(middle['p99_us'])} µs, longest {figure(middle['max_us'])} µs."
        )
    if reading["slow"]:
        named = numbers(reading["slow"])
        pieces = f"{len(reading['slow'])} piece{'s have' if len(reading['slow']) > 1 else ' has'}"
        out.append(f"{name}{pieces} a P99 of {terms.SLOW:g} times the baseline's: {named}.")
    return out


def stored(event: Mapping) -> list[str]:
    of = event["storage"]
    if not of:
        return []
    return of["words"] or [f"Equivalent hours: {of['why']}."]


def refresh(event: Mapping) -> list[str]:
    """The drive's own activity."""
    moved = (event["since_power_on"] or {}).get("nand_written_bytes")
    nand = "NAND bytes are not counted" if moved is None else f"{size(moved)} written to NAND on its own"
    joules = event["refresh_J"]
    energy = f"{figure(joules)} J above rest" if joules is not None else f"energy: {event['refresh_why']}"
    out = [f"Since power-on: {nand}; {energy}."]
    for since, words in (("since_power_on", "power-on"), ("since_seal", "the seal")):
        moved_by = {COUNTERS[key]: (event[since] or {}).get(key) for key in COUNTERS if key != "nand_written_bytes"}
        changes = [f"{name} {value:+g}" for name, value in moved_by.items() if value]
        out += [f"Since {words}: {', '.join(changes)}."] if changes else []
    if len(event["passes"]) > 1:
        slow = [len(reading["slow"]) for reading in event["passes"]]
        out.append(f"Slow pieces from pass to pass: {', '.join(map(str, slow))}.")
    return out


def bound(event: Mapping) -> list[str]:
    of = event["bound"]
    return [of["words"], of["explanation"]] if of and of["explanation"] else [of["words"]] if of else []
