"""cuts: write, cut the drive's power, give it back, read and judge, again and again (powerloss/campaign.py).

One step, not several in a repeat: no other step can use the drive as a cut leaves it; an unjudged session is discarded
as a whole; and an interrupted run resumes with the session after the last judged one."""

import math

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan.kinds import cut_aims, cut_mixes, cut_schedule
from ssdrig.plan.kinds.keys import Key
from ssdrig.switch import profiles

KEYS = {
    "cuts": Key("count", required=True),
    "aims": Key("shares", {"random": 1}),
    "shapes": Key("shares", {profiles.DEFAULT: 1}),
    "streams": Key("shares", cut_mixes.SHARES),
    "mixes": Key("shares", {cut_mixes.USUAL: 1}),
    "queues": Key("count", 1),
    "precondition": Key("index", 0),
    "window": Key("bytes", "64 GiB"),
    "write": Key("time", "5 s"),
    "off_time": Key("time", "1 s"),
    "ready": Key("pause", "0 s"),
    "control": Key("percent", 5),
    "bound": Key("bound", "never"),
    "stop": Key("word", "last", words=("last", "first")),
    "only": Key("index", 0),
    "filesystems": Key("filesystems", "none"),
}
NEEDS = {"cut"}
READY_S = 130.0  # a drive that takes longer is missing; it gets more power cycles then (CAP.TO of NVMe: up to 127.5 s)
MOST_CUTS, MOST_QUEUES, MOST_TIMES = 1_000_000, 64, 100
MEAN_BYTES = 20_000  # of a write of the usual streams
BYTES_CV = 0.7  # standard deviation of what a session of an aim writes, of the mean session: 63 on the SIMULATED drive
# of each file system: what its clients make it write, and what mkfs does
FILESYSTEM_BPS, MADE_BYTES, CHECKED_S = (0.5e6, 60e6), 128 << 20, (0.5, 10.0)
BACK_S = (0.8, 20.0)  # from power to the verdict: the drive's start, reading back, judging


def sessions(keys) -> int:
    """How many there are, control sessions included."""
    return 1 if keys.get("only") else keys["cuts"] + cut_schedule.controls(keys["cuts"], keys["control"])


def mean_write_s(keys) -> float:
    """How long a session writes in the mean: the cut comes at any time of the phase."""
    return keys["write"] * 0.525


def bytes_spread(keys) -> float:
    """Share (k = 2) by which two campaigns differ in what their sessions write: a cut comes by seed and by drive."""
    return 2 * math.sqrt(2 / sessions(keys)) * BYTES_CV


def ahead(keys) -> str:
    """The campaign's cost to the drive besides its writes, and the strongest statement that it can make."""
    from ssdrig.plan.rules import chance

    if keys["only"]:
        return ""
    count, total = keys["cuts"], sum(keys["aims"].values())
    twice = sum(n for word, n in keys["aims"].items() if cut_aims.parse(word).name == "recovery")
    most = count + -(-count * twice // total) + cut_schedule.controls(count, keys["control"])
    own = max(1, count * min(keys["aims"].values()) // total)
    bounds = (chance.percent(chance.upper_bound(0, n)) for n in (count, own))
    summary = (
        "{} to {} power cycles; no failing cut bounds the chance per cut below {} (95 %), of the rarest aim below {}"
    )
    return "; ".join([summary.format(count, most, *bounds), *_workload(keys)])


def _workload(keys) -> list[str]:
    """The unusual shapes, queues and drive states of the campaign."""
    out, shapes = [], keys["shapes"]
    if len(shapes) > 1:
        total = sum(shapes.values())
        out.append("shapes " + ", ".join(f"{name} {100 * n / total:.0f} %" for name, n in shapes.items() if n))
    if dips := [name for name in shapes if profiles.PROFILES[name].back_by_itself]:
        out.append(f"a {' or '.join(dips)} counts as a cut only where the drive counts a power cycle")
    if keys["queues"] > 1:
        out.append(f"up to {keys['queues']} queues")
    if keys["precondition"]:
        out.append(f"first all of the drive is written in order, then {keys['precondition']} x its size at random")
    return out


def check(keys, where: str) -> None:
    """Raises UsageError for aims and shapes that there are not, and for a session that there is not."""
    for word in keys["aims"]:
        try:
            cut_aims.parse(word)
        except UsageError as error:
            raise UsageError(error.expected, f"{word} in aims of {where}", error.do) from None
    for key, known in (("shapes", profiles.PROFILES), ("streams", cut_mixes.SHARES), ("mixes", cut_mixes.MIXES)):
        for word in keys[key]:
            if word not in known:
                expected = f"each of {key} to be one of {', '.join(known)}"
                raise UsageError(expected, f"{word} in {where}", do_you_mean(word, known))
    if keys["cuts"] > MOST_CUTS:
        raise UsageError(
            f"at most {MOST_CUTS} cuts", f"{keys['cuts']} in {where}", "that is over a month: ask for fewer"
        )
    if keys["precondition"] > MOST_TIMES:
        value = f"{keys['precondition']} in {where}"
        raise UsageError(
            f"`precondition` of at most {MOST_TIMES} times the drive", value, "1 or 2 bring it to its steady state"
        )
    if keys["queues"] > MOST_QUEUES:
        value = f"{keys['queues']} in {where}"
        raise UsageError(f"at most {MOST_QUEUES} queues", value, "4 show a FLUSH that leaves out what others brought")
    if keys["ready"] > READY_S:
        expected = f"`ready` of at most {READY_S:g} s: a drive that takes longer is missing"
        raise UsageError(expected, f"{keys['ready']:g} s in {where}", 'write less, or "0 s" for no limit')
    of = sessions({**keys, "only": 0})
    if keys["only"] > of:
        raise UsageError(f"`only` to be one of the {of} sessions", f"{keys['only']} in {where}", "correct it")
