"""What a campaign of power cuts came to, in sentences: on its page, on a terminal, at the end of its run."""

import math
from collections.abc import Mapping, Sequence

from ssdrig.base.words import size
from ssdrig.plan.rules import chance
from ssdrig.powerloss import above, exposure, tally
from ssdrig.powerloss.promise import ACK
from ssdrig.reading import cuts
from ssdrig.views.context import figure
from ssdrig.views.terms import number, with_error

MOST_NAMED = 12  # numbers of cuts in a row
MODES = {True: "all that was acknowledged", False: "what FLUSH or FUA covers"}


def numbers(of: Sequence[int]) -> str:
    """ "3, 17 and 5 more"."""
    shown = ", ".join(str(n) for n in of[:MOST_NAMED])
    return shown + (f" and {len(of) - MOST_NAMED} more" if len(of) > MOST_NAMED else "")


def count(n: int | None, word: str) -> str:
    return f"{number(n, 0)} {word}" + "s" * (n != 1)


def verdict(event: Mapping) -> str:
    """The sentence that a reader takes away."""
    judged, others = event["judged"], event["failing_others"]
    also = ""
    if others:
        also = f"A promise was broken in session {numbers(others)}, which is not a judged cut."
    if not judged:
        return also or "No cut was judged: no verdict on the drive."
    broke = f"{tally.of(event['failing'], event['failing_most'], judged)} broke a promise"
    named = f" (found after cut {_dated(event)})" if event["failing_cuts"] else ""
    out = f"{broke}{named}: chance per cut < {chance.percent(event['bound'])} for this mix of cuts (95 % confidence)."
    return f"{out} {also}" if also else out


def damage(event: Mapping) -> str:
    """The cuts and the sessions after which damage was found; "" without damage."""
    out = [f"Damage was found after cut {_dated(event)}."] if event["failing_cuts"] else []
    if event["failing_others"]:
        out.append(f"A promise was broken in session {numbers(event['failing_others'])}, which is not a judged cut.")
    return " ".join(out)


def _dated(event: Mapping) -> str:
    """ "3, 17 (done by one of the cuts 4 to 17) and 5 more"."""
    shown = []
    for cut in event["failing_cuts"][:MOST_NAMED]:
        first, last, _ = event["intervals"].get(str(cut)) or (cut, cut, cut)
        shown.append(f"{cut}" if first == last == cut else f"{cut} (done by one of the cuts {first} to {last})")
    left = len(event["failing_cuts"]) - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def covered(event: Mapping) -> str:
    """The blocks that were read after the cuts: the verdict covers these."""
    of = event["coverage"]
    if of["share"] is None or not event["judged"]:
        return ""
    if of["share"] == 1:
        return "All of the window was read after each cut."
    share = number(100 * of["share"], 1)
    out = f"{share} % of the window was read after a cut, in the mean: what the session had written"
    out += f", and all of it {count(len(of['whole']), 'time')}."
    if of["since"]:
        out += f" After the last {count(of['since'], 'cut')} only that: damage elsewhere is not known."
    return out


def exposed(event: Mapping) -> str:
    """Which faults the campaign would have found."""
    faults = [
        f"1 in {number(math.floor(1 / of['rate']), 0)} {exposure.KINDS[kind]} ({number(of['n'], 0)} tested)"
        for kind, of in event["exposed"].items()
        if of["rate"] <= 0.5
    ]
    bounds = "; or ".join(faults)
    return f"With 95 % probability these cuts catch a drive in which more than {bounds}." if faults else ""


def not_exposed(event: Mapping) -> str:
    """Which faults the campaign could not have found, by how it was set up; "" where that is not known."""
    begun = event["begun"] or {}
    lacks = [words for key, (enough, words) in exposure.NEEDS.items() if key in begun and (begun[key] or 0) < enough]
    return f"Not tested: {'; '.join(lacks)}." if lacks else ""


def strata(event: Mapping) -> str:
    """The bound of each group, groups of one size and bound together."""
    alike: dict[tuple[int, int, int, float], list[str]] = {}
    for stratum in event["strata"]:
        alike.setdefault((stratum["cuts"], stratum["failing"], stratum["most"], stratum["bound"]), []).append(
            f"{stratum['aim']} {stratum['shape']}"
        )
    bounds = []
    for (of, least, most, limit), names in alike.items():
        bound = chance.percent(limit)
        which = names[0] if len(names) == 1 else f"each of {len(names)} groups"
        bounds.append(f"< {bound} in {which} ({least if least == most else f'{least} to {most}'} of {of})")
    return f"By aim and shape: {', '.join(bounds)}." if len(event["strata"]) > 1 else ""


def aims(event: Mapping) -> list[str]:
    """Where the cuts of each aim came to lie."""
    out = []
    for name, of in event["aims"].items():
        span = f"{figure(of['least'])} to {figure(of['most'])} {of['unit']}"
        near = "" if of["near"] is None else f", {of['near']} within 25 % of their plan"
        out.append(f"Aim {name}: {span}; {of['within']} of {count(of['cuts'], 'cut')} within it{near}.")
    return out


def tested(event: Mapping) -> str:
    """How much was judged, by which promise."""
    out = f"{count(event['commands'], 'command')} judged"
    if event["durable"] is not None:
        out += f", {number(event['durable'], 0)} of them had to survive"
    promise = (event["begun"] or {}).get("promise") or {}
    if not promise:
        return out + "; the promise that was tested is not in the journal."
    parts = [MODES[promise.get("mode") == ACK]]
    atomic = promise.get("atomic_blocks") or 1
    parts += [f"writes of up to {atomic} blocks as a whole"] if atomic > 1 else []
    parts += [f"trimmed blocks read as {promise['after_trim']}"] if promise.get("after_trim") else []
    own = "" if promise.get("own", True) else ", claimed by the user, not by the drive"
    return f"{out}; promise tested: {', '.join(parts)}{own} ({promise.get('why', '')})."


def lines(event: Mapping) -> list[str]:
    """All sentences, in the order of a terminal."""
    return [verdict(event), *results(event), *method(event)]


def method(event: Mapping) -> list[str]:
    """The promise tested, and how the cuts met their aims."""
    out = [strata(event), *aims(event), tested(event), event["no_samples"]]
    return [line for line in out if line]


def results(event: Mapping) -> list[str]:
    """Findings, the end of the campaign, coverage."""
    out = []
    for name, groups in event["classes"].items():
        of = sorted({n for those in groups.values() for n in those})
        out.append(
            f"{cuts.standing_of(name)} {name} after {count(len(of), 'cut')} ({numbers(of)}): {cuts.words_of(name)}"
        )
    out += [*ended(event), covered(event), exposed(event), not_exposed(event)]
    out += [above.words(row) for row in event.get("filesystems") or []]
    return [line for line in out if line]


def ended(event: Mapping) -> list[str]:
    """The reason of the end, the cuts left out, and the result of the control sessions."""
    out = []
    if event["stop"]:
        out.append(f"The campaign ended because {event['stop']}.")
        if event["stop"].startswith("the chance"):
            out.append(
                "That bound allows for the look after each cut; the others assume a number of cuts set beforehand."
            )
    elif not event["ended"]:
        out.append("The campaign did not finish: the bound covers the cuts so far.")
    if event["suspicious_cuts"]:
        out.append(f"Suspicious, but no failure: cut {numbers(event['suspicious_cuts'])}.")
    if (event["capacitors"] or {}).get("finding"):
        out.append(f"Suspected PLP_DEGRADED: the capacitors have aged, {event['capacitors']['finding']}.")
    if event["excluded"]:
        reasons: dict[str, list[int]] = {}
        for cut in event["excluded"]:
            reasons.setdefault(cut["why"], []).append(cut["cut"])
        groups = "; ".join(f"{numbers(of)}: {why}" for why, of in reasons.items())
        out.append(f"{count(len(event['excluded']), 'cut')} left out ({groups}).")
    bad = [control for control in event["controls"] if control["harness"]]
    if bad:
        why = "; ".join(f"{control['cut']}: {control['harness']}" for control in bad[:MOST_NAMED])
        proven = "the proven failures remain proven" if event["failing_cuts"] else "nothing is proven of the drive"
        out.append(f"CONTROL FAILED in {count(len(bad), 'session')} ({why}): the harness is suspected; {proven}.")
    elif event["controls"] and all(control["ok"] for control in event["controls"]):
        out.append(f"Control sessions: {len(event['controls'])}, all clean.")
    return out


def summed(event: Mapping, key: str, unit: str, scale: float = 1.0) -> str:
    """ "median 1.21 s, 1.10 to 3.02 s in 57 cuts; −0.30 ± 0.20 s per 100 cuts"."""
    of = event[key]
    if of is None:
        return ""
    middle, low, high = (figure(of[name] * scale) for name in ("median", "least", "most"))
    out = f"median {middle} {unit}, {low} to {high} {unit} in {count(of['n'], 'cut')}"
    if of["trend"] and low != high:
        slope = with_error(of["trend"]["per_100"] * scale, of["trend"]["error"] * scale, 3)
        out += f"; {slope} {unit} per 100 cuts"
    return out


def smart(event: Mapping) -> list[tuple[str, str, str, str]]:
    """(what, first, last, by how much it changed in 100 cuts) of what the drive counts."""
    out = []
    for key, label in cuts.WORDS.items():
        if key in event["smart"]:
            first, last = event["smart"][key]
            per = number(100 * (last - first) / event["judged"], 2) if event["judged"] else "–"
            out.append((label, f"{first:g}", f"{last:g}", per))
    return out


def written(event: Mapping) -> str:
    return "not known" if event["written_bytes"] is None else size(event["written_bytes"])
