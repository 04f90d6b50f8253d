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


def verdict(found: Mapping) -> str:
    """The sentence that a reader takes away."""
    if found["phase"] == "write":
        return f"Sealed: {found['label']}" if found["digest"] else "The drive was not sealed."
    if not found["passes"]:
        return "Nothing was read: nothing is said of the drive."
    first = found["passes"][0]
    if not first["bad"]:
        return f"All {number(first['blocks'], 0)} blocks hold what was sealed."
    kinds = ", ".join(f"{number(n, 0)} {name}" for name, n in first["classes"].items())
    return f"{number(first['bad'], 0)} of {number(first['blocks'], 0)} blocks do not hold what was sealed ({kinds})."


def lines(found: Mapping) -> list[str]:
    """All of it, for a terminal."""
    if found["phase"] == "write":
        return [verdict(found), *written(found)]
    out = [verdict(found)]
    for n, each in enumerate(found["passes"], 1):
        out += of_pass(each, n, len(found["passes"]))
    if found["witnesses"]:
        out.append(Witnesses(*(found["witnesses"].get(key) for key in Witnesses._fields)).words)
    out += [f"Copy of the manifest in the {place} is not used: {why}." for place, why in found["damaged"].items()]
    return [*out, *stored(found), *refresh(found), *bound(found), *(found["cannot"] or [])]


def written(found: Mapping) -> list[str]:
    """What was written and sealed."""
    said = found["manifest"]
    if not said:
        return []
    base, drive = said["baseline"], said["drive"]
    out = [f"{size(said['written']['bytes'])} were written in {figure(said['written']['seconds'])} s."]
    host, nand = (said["written"]["counted"].get(f"{of}_written_bytes") for of in ("host", "nand"))
    if host and nand is not None:
        out.append(f"NAND bytes {size(nand)} for {size(host)} of the host: at most {size(max(0, nand - host))} moved.")
    out.append(
        f"Baseline, read once: {figure(base['MBps'])} MB/s, P50 {figure(base['p50_us'])} µs, P99"
        f" {figure(base['p99_us'])} µs in {base['pieces']} pieces."
    )
    wear = "not known" if drive["wear_percent"] is None else f"{figure(drive['wear_percent'])} %"
    out.append(f"Wear {wear}, class {drive['class'] or 'not known'}.")
    begun_C, ended_C = said["written"]["begun_C"], said["written"]["ended_C"]
    if begun_C is not None and ended_C is not None:
        out.append(f"Written at {figure(begun_C)} to {figure(ended_C)} °C, by the drive's own sensor.")
    return [*out, *([found["off"]["words"] + "."] if found["off"] and found["off"]["words"] else [])]


def of_pass(each: Mapping, n: int, of: int) -> list[str]:
    """One pass: bounds, speed."""
    name = f"Pass {n}: " if of > 1 else ""
    out = []
    if each["share_most"] is not None:
        out.append(
            f"{name}{number(each['bad'], 0)} bad blocks; chance per block <"
            f" {chance.percent(each['share_most'])} (95 %, Clopper-Pearson); UBER < {each['uber']['most']:.1e}"
            f" (60 %) from {size(each['uber']['bits'] / 8)} read."
        )
    middle = each["middle"]
    if each["slowdown"] is not None:
        out.append(
            f"{name}{figure(each['slowdown'])} times the time of the baseline; {figure(middle['MBps'])} MB/s, P99"
            f" {figure(middle['p99_us'])} µs, longest {figure(middle['max_us'])} µs."
        )
    if each["slow"]:
        named = numbers(each["slow"])
        pieces = f"{len(each['slow'])} piece{'s have' if len(each['slow']) > 1 else ' has'}"
        out.append(f"{name}{pieces} a P99 of {terms.SLOW:g} times the baseline's: {named}.")
    return out


def stored(found: Mapping) -> list[str]:
    of = found["storage"]
    if not of:
        return []
    return of["words"] or [f"Equivalent hours: {of['why']}."]


def refresh(found: Mapping) -> list[str]:
    """What the drive did by itself."""
    moved = (found["since_power_on"] or {}).get("nand_written_bytes")
    bytes_said = "NAND bytes are not counted" if moved is None else f"{size(moved)} written to NAND by itself"
    joules = found["refresh_J"]
    energy = f"{figure(joules)} J above rest" if joules is not None else f"energy: {found['refresh_why']}"
    out = [f"Since power-on: {bytes_said}; {energy}."]
    for since, words in (("since_power_on", "power-on"), ("since_seal", "the seal")):
        moved_by = {COUNTERS[key]: (found[since] or {}).get(key) for key in COUNTERS if key != "nand_written_bytes"}
        said = [f"{name} {value:+g}" for name, value in moved_by.items() if value]
        out += [f"Since {words}: {', '.join(said)}."] if said else []
    if len(found["passes"]) > 1:
        slow = [len(each["slow"]) for each in found["passes"]]
        out.append(f"Slow pieces from pass to pass: {', '.join(map(str, slow))}.")
    return out


def bound(found: Mapping) -> list[str]:
    of = found["bound"]
    return [of["words"], of["explanation"]] if of and of["explanation"] else [of["words"]] if of else []
