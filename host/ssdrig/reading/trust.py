"""The trust strip: what the claims about a window, or about a run, rest on. Pure.

Eight items, each "ok", "bad", "unknown" or "not applicable", with its value, its limit and a reason. `value` and
`limit` are in the unit that UNITS names. No verdict, star or comparison is made of a figure where an item that it rests
on (rests_on) is bad.

Limits. host: see plan/rules/limits.py. samples: 0.1 %, a tenth of the smallest difference that is claimed, and none at
the sensor's limit. time error: 1 % of the window, which changes a mean power by at most this share where the power
doubles, and at most 100 ms, a tenth of the grid of seconds. For a window of a few ms it is the 0.2 ms to which the
board's times are known on a host at rest, and the error that a meter states for its times comes on top, both up to a
tenth of the window: the time term of the uncertainty has it, and beyond that the power belongs to another stretch.
closure: 0.1 %; without faults it is 0.001 %. gaps: 0.5 % of the window, over which power is interpolated or not known.
A window shorter than 20 ms without an energy makes no claim: samples, time error and gaps do not apply to it."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.words import digits
from ssdrig.meter import calibration, pairing
from ssdrig.plan.rules import limits
from ssdrig.plan.rules import steady as rule
from ssdrig.runs import imported

if TYPE_CHECKING:
    from ssdrig.reading.rundata import RunData

OK, BAD, UNKNOWN, NOT_APPLICABLE = "ok", "bad", "unknown", "not applicable"
WORST = (NOT_APPLICABLE, OK, UNKNOWN, BAD)
SIGNS = {OK: "✓", BAD: "✕", UNKNOWN: "?", NOT_APPLICABLE: "–"}
WORDS = {OK: "ok", BAD: "BAD", UNKNOWN: "unknown", NOT_APPLICABLE: "n/a"}
CLASSES = {OK: "ok", BAD: "bad", UNKNOWN: "unknown", NOT_APPLICABLE: "none"}
NAMES = {
    "steady": "steady",
    "host": "host",
    "samples": "samples",
    "time_error": "time error",
    "closure": "closure",
    "calibration": "calibration",
    "gaps": "gaps",
    "pairing": "pairing",
}
UNITS = {
    "steady": "%",  # range of the five rounds
    "host": "%",
    "samples": "%",  # lost
    "time_error": "s",
    "closure": "%",
    "calibration": "days",  # age
    "gaps": "s",
    "pairing": "",
}
LOST_PERCENT = 0.1
TIME_SHARE, TIME_S = 0.01, 0.1
BOARD_S = 200e-6  # bound of the board's times on a host at rest
SHORT_S = BOARD_S / TIME_SHARE  # a shorter window often has no energy; a flush, a purge
STATED_SHARE = 0.1  # of a window: as much of what a meter states of its times is allowed
CLOSURE_PERCENT = 0.1
LEAST_PERCENT = 0.001  # printed; a smaller share is below what any claim rests on
CALIBRATED_DAYS = 365  # after which a calibration no longer vouches for the rig
GAPS_SHARE = 0.005
DAY_NS = 86_400 * 10**9
NO_RIG = "the run has no rig"
SAMPLED = ("samples", "time_error", "gaps")
OF_LOAD = ("steady", "host")  # what figures of I/O and wear rest on
OF_POWER = tuple(NAMES)  # what figures of power and energy rest on: all
POWER_KEYS = ("power_", "energy_", "idle_", "iops_per_W", "peak_", "own_power", "above_J", "floor_W", "pause_mean_W")


# facts about the measurement, which rest on nothing
OF_MEASUREMENT = {
    *("samples", "samples_lost", "samples_clipped", "filled_s", "filled_J", "clock_error_us", "closure_percent"),
    *("littles_qd", "littles_error_percent", "power_uncertainty_percent", "chip_clock_ppm", "chip_clock_error_ppm"),
}


class Item(NamedTuple):
    """`why`: the reason; None where the state is "ok" and nothing is to be added."""

    id: str
    state: str
    value: float | None = None
    limit: float | None = None
    why: str | None = None

    def as_json(self) -> dict:
        return self._asdict()


def rests_on(key: str) -> tuple[str, ...]:
    """The items that a figure of window_figures.py rests on."""
    if key in OF_MEASUREMENT:
        return ()
    return OF_POWER if key.startswith(POWER_KEYS) else OF_LOAD


def red(items: Iterable[Mapping] | None, ids: Iterable[str] = NAMES) -> list[Mapping]:
    """The items (as_json) of these ids that are bad."""
    wanted = set(ids)
    return [item for item in items or () if item["state"] == BAD and item["id"] in wanted]


def why_not(items: Iterable[Mapping] | None, ids: Iterable[str] = NAMES) -> str | None:
    """Why nothing is claimed of a window with these items (as_json): the reasons of those that are bad; None: it may
    be."""
    return "; ".join(f"{NAMES[item['id']]}: {item['why']}" for item in red(items, ids)) or None


def briefly(why: str) -> str:
    """The items of a why_not() without their reasons, which the page states once: "host, steady". Any other reason is
    returned as it is."""
    names = [part.partition(": ")[0] for part in why.removeprefix(f"{rule.NOT_CLAIMED}, ").split("; ")]
    return ", ".join(dict.fromkeys(name for name in names if name in NAMES.values())) or why


def of_window(
    data: "RunData", figures: Mapping, host: Item, of_run: Sequence[Item], steady: Item | None = None
) -> list[dict]:
    """The strip of a window as JSON. `figures`: of it (window_figures.py), of a whole act also "t0_s", "t1_s"; `host`:
    see host_of(); `of_run`: of_run() of its run; `steady`: where the plan asks for a steady state, not the window's own
    verdict."""
    lasts_s = (figures["t1_s"] - figures["t0_s"]) * data.k
    why = _why_without(data.header, of_run)
    if why is None:
        power = _of_power(figures, lasts_s, data.k, stated_s(_hello(data)))
    else:
        power = [Item(n, NOT_APPLICABLE, why=why) for n in SAMPLED]
    return _ordered([steady or steady_of(figures), host, *power, *of_run])


def _ordered(items: Iterable[Item]) -> list[dict]:
    by_id = {item.id: item for item in items}
    return [by_id[name].as_json() for name in NAMES]


def whole(strips: Iterable[tuple[str, Sequence[Mapping]]], of_what: str = "windows") -> list[dict]:
    """The strip of a run: of each item the worst of its windows (a name each), and in how many of them it is bad. Or of
    several runs, by the strip of each: of_what "runs"."""
    pairs = list(strips)
    out = []
    for at, name in enumerate(NAMES):
        of = [(where, items[at]) for where, items in pairs]
        if not of:
            out.append(Item(name, UNKNOWN, why="the run has no window with figures").as_json())
            continue
        where, worst = max(of, key=lambda one: _badness(one[1]))
        if worst["state"] == BAD and name not in ("closure", "calibration", "pairing"):
            bad = [item["why"] for _, item in of if item["state"] == BAD]
            more = f" ({len(bad)} of {len(of)} {of_what})" if len(of) > 1 else ""
            place = f"{where}: " if len(bad) < len(of) or len({*bad}) > 1 else ""
            worst = {**worst, "why": f"{place}{worst['why']}{more}"}
        out.append(dict(worst))
    return out


def _badness(item: Mapping) -> tuple[int, float]:
    value, limit = item["value"], item["limit"]
    return WORST.index(item["state"]), abs(value) / limit if value is not None and limit else 0.0


def steady_of(figures: Mapping) -> Item:
    """By the rule's verdict on a window; only one that claims a steady state has such an item."""
    if figures.get("name") not in (None, "steady"):
        return Item("steady", NOT_APPLICABLE, why="no steady state is claimed of this window")
    return steady_by([figures.get("steady_state")])


def steady_by(verdicts: Sequence[Mapping | None]) -> Item:
    """The worst of the rule's verdicts; none: nothing asks for a steady state."""
    items = [_steady(verdict) for verdict in verdicts if verdict]
    if not items:
        return Item("steady", NOT_APPLICABLE, why="no steady state is asked for")
    return max(items, key=lambda item: _badness(item.as_json()))


def _steady(verdict: Mapping) -> Item:
    spread, limit = verdict.get("range_percent"), verdict.get("range_limit_percent")
    if verdict.get("passed"):
        return Item("steady", OK, spread, limit)
    if verdict.get("passed") is None:
        return Item("steady", UNKNOWN, spread, limit, rule.why_unknown({"why": verdict.get("why")}))
    slope, slope_limit = verdict.get("slope_percent"), verdict.get("slope_limit_percent")
    if limit is not None and spread is not None and spread > limit:
        return Item("steady", BAD, spread, limit, f"the rounds vary by {spread:.1f} % (limit {limit:g} %)")
    if slope is not None and slope_limit is not None and slope > slope_limit:
        return Item("steady", BAD, slope, slope_limit, f"the rounds drift by {slope:.1f} % (limit {slope_limit:g} %)")
    return Item("steady", BAD, spread, limit, str(verdict.get("why") or "the rule does not hold"))


def host_of(loads: Sequence[limits.Load]) -> Item:
    """Whether the host could do what the load asked of it; `loads`: of rules.limits.loads()."""
    if not loads:
        return Item("host", UNKNOWN, why="not recorded by the run")
    worst = max(loads, key=lambda one: (one.beyond, one.value / one.limit))
    value, limit = round(worst.value, 1), worst.limit
    return Item("host", BAD if worst.beyond else OK, value, limit, worst.words if worst.beyond else None)


def _why_without(header: Mapping, of_run: Iterable[Item]) -> str | None:
    """Why this drive's power is missing; None: it was measured."""
    if header.get("rig") is None:
        return NO_RIG
    other = any(item.id == "pairing" and item.state == BAD for item in of_run)
    return "the rig was not seen to feed this drive" if other else None


def _of_power(figures: Mapping, lasts_s: float, k: int, of_meter_s: float = 0.0) -> list[Item]:
    """Samples, time error and gaps of a window that lasts `lasts_s` by the host's clock. `of_meter_s`: stated_s()."""
    samples = figures.get("samples")
    if lasts_s < SHORT_S and figures.get("energy_J") is None:
        why = f"it lasts {seconds(lasts_s)}, too short for its energy"
        return [Item(name, NOT_APPLICABLE, why=why) for name in SAMPLED]
    if not samples:
        return [
            Item("samples", BAD, why="no power samples"),
            Item("time_error", UNKNOWN, why="no power samples"),
            Item("gaps", BAD, lasts_s, GAPS_SHARE * lasts_s, "no power samples"),
        ]
    of_samples = _samples(samples, figures.get("samples_lost") or 0, figures.get("samples_clipped") or 0)
    return [of_samples, _time_error(figures.get("clock_error_us"), lasts_s, of_meter_s), _gaps(figures, lasts_s, k)]


def _samples(samples: int, lost: int, clipped: int) -> Item:
    percent = 100 * lost / (samples + lost)
    if clipped:
        why = f"{clipped} of {samples} samples are at the sensor's limit"
    elif percent > LOST_PERCENT:
        why = f"{lost} of {samples + lost} samples are lost ({digits(percent, 2)} %, limit {LOST_PERCENT:g} %)"
    else:
        return Item("samples", OK, percent, LOST_PERCENT)
    return Item("samples", BAD, percent, LOST_PERCENT, why)


def stated_s(hello: Mapping | None) -> float:
    """The error of a meter's times as it states it (s); of our board, which answers pings, that of a stamp.

    hello: its greeting, None without one."""
    stamp_ns = (hello or {}).get("stamp_ns")
    return stamp_ns / 1e9 if type(stamp_ns) is int else 0.0


def _hello(data: "RunData") -> Mapping | None:
    hello = next((event.get("hello") for event in reversed(data.events) if event.get("kind") == "rig.hello"), None)
    return hello if isinstance(hello, Mapping) else None


def _time_error(clock_error_us: float | None, lasts_s: float, of_meter_s: float = 0.0) -> Item:
    usual_s = max(min(TIME_SHARE * lasts_s, TIME_S), min(BOARD_S, STATED_SHARE * lasts_s))
    limit_s = max(usual_s, min(usual_s + of_meter_s, STATED_SHARE * lasts_s))
    if clock_error_us is None:
        return Item("time_error", UNKNOWN, None, limit_s, "it is not known")
    error_s = clock_error_us / 1e6
    if error_s <= limit_s:
        return Item("time_error", OK, error_s, limit_s)
    return Item("time_error", BAD, error_s, limit_s, f"up to {seconds(error_s)} (limit {seconds(limit_s)})")


def _gaps(figures: Mapping, lasts_s: float, k: int) -> Item:
    limit_s = GAPS_SHARE * lasts_s
    filled_s = (figures.get("filled_s") or 0.0) * k
    if figures.get("energy_J") is None:
        return Item("gaps", BAD, filled_s, limit_s, "power samples do not cover it")
    if filled_s <= limit_s:
        return Item("gaps", OK, filled_s, limit_s)
    joules = figures.get("filled_J")
    energy = f", {digits(joules, 3)} J interpolated" if joules else ""
    why = f"{seconds(filled_s)} without samples{energy} (limit {seconds(limit_s)})"
    return Item("gaps", BAD, filled_s, limit_s, why)


def seconds(value_s: float) -> str:
    """ "5.18 s", "97 µs"."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if abs(value_s) * factor >= 0.995:
            return f"{digits(value_s * factor, 3)} {unit}"
    return f"{value_s * 1e6:.0f} µs"


def of_run(data: "RunData") -> list[Item]:
    """Closure, calibration and pairing, which belong to a run as a whole."""
    pairing_ = paired(data.header, data.events)
    return [_closure(data, _why_without(data.header, [pairing_])), _calibration(data), pairing_]


def _closure(data: "RunData", why_without: str | None) -> Item:
    if why_without:
        return Item("closure", NOT_APPLICABLE, why=why_without)
    if data.closure is None and any(rail.facts and "accuracy" in rail.facts for rail in data.rails):
        return Item("closure", NOT_APPLICABLE, why="the meter does not count energy itself")
    if data.closure is None:
        return Item("closure", UNKNOWN, None, CLOSURE_PERCENT, "the rig did not send its own energy count")
    off, open_ = data.closure.corrected_percent, data.closure.resolution_percent
    limit = max(CLOSURE_PERCENT, open_)
    if abs(off) <= limit:
        return Item("closure", OK, off, limit)
    return Item(
        "closure", BAD, off, limit, f"{off:+.3f} % against the sensor's own energy (limit {digits(limit, 3)} %)"
    )


def paired(header: Mapping, events: Sequence[Mapping]) -> Item:
    """Whether the rig was seen to feed the drive."""
    if header.get("rig") is None:
        return Item("pairing", NOT_APPLICABLE, why=NO_RIG)
    if made := imported.of(header):
        if made.get("correlation"):
            return Item("pairing", OK)
        return Item("pairing", UNKNOWN, why="the recording was not compared with the load (import without --sync)")
    event = next((event for event in reversed(events) if event.get("kind") == pairing.EVENT), None)
    if event is None:
        return Item("pairing", UNKNOWN, why="not checked by the run")
    verdict, why = event.get("verdict"), str(event.get("why") or "the signature did not show")
    if verdict == pairing.PAIRED:
        return Item("pairing", OK)
    if event.get("late"):
        return Item("pairing", UNKNOWN, why=why)
    known = "" if verdict == pairing.NOT_PAIRED else "not known whether the rig feeds this drive: "
    return Item("pairing", BAD, why=f"{known}{why}")


def _calibration(data: "RunData") -> Item:
    facts = [rail.facts for rail in data.rails if rail.facts]
    rails = (_hello(data) or {}).get("rails")
    facts = facts or [rail for rail in rails or () if isinstance(rail, Mapping)]
    return calibrated(data.header, data.events, facts)


def calibrated(header: Mapping, events: Sequence[Mapping], rails: Sequence[Mapping]) -> Item:
    """What vouches for the rig's figures: the calibration of its rails, and its last self-test."""
    if header.get("rig") is None:
        return Item("calibration", NOT_APPLICABLE, why=NO_RIG)
    if made := imported.of(header):
        why = "the limits are those that were stated for the recording (import --accuracy)"
        why = why if made.get("accuracy") else "the accuracy of the recording is not stated (import --accuracy)"
        return Item("calibration", UNKNOWN, None, CALIBRATED_DAYS, why)
    if why := _of_a_meter(rails):
        return Item("calibration", UNKNOWN, None, CALIBRATED_DAYS, why)
    test = next((event for event in reversed(events) if event.get("kind") == "rig.certificate"), {})
    if test.get("passed") is False:
        return Item("calibration", BAD, None, CALIBRATED_DAYS, "the rig failed its last self-test (rig doctor)")
    if differs := test.get("differs"):
        named = ", ".join(map(str, differs)) if isinstance(differs, list) else str(differs)
        why = f"the rig is not as it was at its last self-test: {named[:120]}"
        return Item("calibration", BAD, None, CALIBRATED_DAYS, why)
    stored = [(rail, _stored(rail)) for rail in rails]
    wrong = [str(rail.get("name") or rail.get("rail")) for rail, of in stored if rail.get("calibration") and not of]
    if wrong:
        return Item("calibration", BAD, None, CALIBRATED_DAYS, f"rail {', '.join(wrong)}: it cannot be applied")
    if not stored or not all({"V", "I"} <= {*of} for _, of in stored):
        if (header.get("rig") or {}).get("simulated"):
            return Item("calibration", NOT_APPLICABLE, why="a SIMULATED rig: its errors are those of the data sheet")
        why = "none: the limits of chip and shunt are those of their data sheets"
        return Item("calibration", UNKNOWN, None, CALIBRATED_DAYS, why)
    age_days = _age_days(header, [of[quantity] for _, of in stored for quantity in ("V", "I")])
    if age_days is None or age_days > CALIBRATED_DAYS:
        old = "of an unknown day" if age_days is None else f"{age_days:.0f} days old (limit {CALIBRATED_DAYS})"
        return Item("calibration", UNKNOWN, age_days, CALIBRATED_DAYS, old)
    return Item("calibration", OK, age_days, CALIBRATED_DAYS)


def _of_a_meter(rails: Sequence[Mapping]) -> str:
    """The stated accuracy in place of a calibration, for a meter other than our board; "" for the board."""
    stated = [rail["accuracy"] for rail in rails if isinstance(rail.get("accuracy"), Mapping)]
    if not stated:
        return ""
    unknown = [str(of["unknown"])[:120] for of in stated if of.get("unknown")]
    if not all(of.get("unknown") or of.get("V") or of.get("W") for of in stated):
        return "none: the limits of chip and shunt are those of their data sheets"
    return unknown[0] if unknown else "the limits are those that the meter's maker states"


LIVE = ("host", "pairing", "steady", "round", "rig.hello", "rig.certificate")  # events that a live strip is made of


def live(header: Mapping, last: Mapping[str, Mapping], power: Mapping) -> list[dict]:
    """The strip of a run in progress, from the events so far. `last`: the latest event of each kind of LIVE; `power` so
    far: "samples", "samples_lost", "clock_error_us" of late, and "breaks", how often the rig was lost or was reset."""
    counted = last.get("host") or {}
    items = [_steady_so_far(last), host_of(limits.loads(None, 1, None, None, counted)) if counted else _not_yet("host")]
    pairing_ = paired(header, [last["pairing"]] if "pairing" in last else [])
    hello = last.get("rig.hello", {}).get("hello")
    hello = hello if isinstance(hello, Mapping) else {}
    if why := _why_without(header, [pairing_]):
        items += [Item(n, NOT_APPLICABLE, why=why) for n in (*SAMPLED, "closure")]
    else:
        few = not power["samples"]
        items += [_not_yet("samples")] if few else [_samples(power["samples"], power["samples_lost"], 0)]
        items += [_not_yet("time_error")] if few else [_time_error(power["clock_error_us"], 60.0, stated_s(hello))]
        items.append(_not_yet("closure"))
        breaks = power["breaks"]
        why = f"the rig was lost or reset {breaks} time{'s' * (breaks > 1)}" if breaks else None
        items.append(Item("gaps", BAD if breaks else OK, why=why))
    rails = hello.get("rails")
    known = [rail for rail in rails if isinstance(rail, Mapping)] if isinstance(rails, list) else []
    tests = [last["rig.certificate"]] if "rig.certificate" in last else []
    return _ordered([*items, calibrated(header, tests, known), pairing_])


def _not_yet(name: str) -> Item:
    return Item(name, UNKNOWN, why="not known yet")


def _steady_so_far(last: Mapping[str, Mapping]) -> Item:
    """By the rule's latest verdict of the run that goes on."""
    tracked = last.get("round", {}).get("tracked")
    verdicts = (
        [verdict for verdict in tracked.values() if isinstance(verdict, Mapping)]
        if isinstance(tracked, Mapping)
        else []
    )
    if "steady" in last:
        verdicts.append(last["steady"])
    return steady_by(verdicts) if verdicts else _not_yet("steady")


def _stored(rail: Mapping) -> dict:
    try:
        stored = calibration.of_rail(dict(rail))
    except (AttributeError, ArithmeticError):  # nothing that a board of ours reports
        return {}
    return {key: one for key, one in stored.items() if isinstance(one, Mapping)}


def _age_days(header: Mapping, lines: Sequence[Mapping]) -> float | None:
    """Age of the oldest of these lines when the run began; None where a day is not known."""
    try:
        begun = datetime.datetime.fromtimestamp(header["started"]["utc_ns"] / 1e9, datetime.UTC).date()
        days = [(begun - datetime.date.fromisoformat(str(line["date"])[:10])).days for line in lines]
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
    return float(max(0, max(days)))


def in_words(items: Sequence[Mapping]) -> list[dict]:
    """Each item on a page: "id", "kind" (its class), "sign", "name", "state" in words, "text" (its value, or
    why it is bad or unknown) and "tip"."""
    out = []
    for item in items:
        state, why = item["state"], item["why"]
        text = why if state in (BAD, UNKNOWN) and why else _value_in_words(item)
        kind, words = {"kind": CLASSES[state], "sign": SIGNS[state]}, {"name": NAMES[item["id"]], "state": WORDS[state]}
        out.append({"id": item["id"], **kind, **words, "text": text, "tip": why or _limit_in_words(item)})
    return out


def _value_in_words(item: Mapping) -> str:
    """ "3.3 %", "< 0.001 %", "116 µs", "30 days"; "" if it is unknown or 0."""
    number, unit = item["value"], UNITS[item["id"]]
    if not number or item["state"] == NOT_APPLICABLE:
        return ""
    if unit == "%" and abs(number) < LEAST_PERCENT:
        return f"< {LEAST_PERCENT} %"
    return seconds(number) if unit == "s" else f"{digits(number, 3)} {unit}"


def _limit_in_words(item: Mapping) -> str:
    """ "limit 20 %"."""
    number, unit = item["limit"], UNITS[item["id"]]
    if number is None:
        return ""
    return f"limit {seconds(number) if unit == 's' else f'{digits(number, 3)} {unit}'}"
