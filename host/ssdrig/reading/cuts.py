"""The sessions of a power-loss campaign -> their results: strata with their bounds, classes, ages, recovery.

Everything is counted in cuts. A stratum is an aim with a shape; control sessions, and sessions without a cut, are in no
stratum. Records are those of the event `session.judged` (schemas/journal.md); of two with the same number the last
one counts.

How long a drive keeps acknowledged writes in its volatile cache: from the age of each at the cut, and whether it was
lost. A drive that writes its cache out after a rest loses younger data and keeps older data."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.drive.smart import nvme_pages
from ssdrig.meter import rails
from ssdrig.meter.reduced import Asked as Edges
from ssdrig.plan.kinds import cut_aims
from ssdrig.plan.rules import chance
from ssdrig.powerloss import above, boot, exposure, findings, health, picture, tally
from ssdrig.powerloss import aim as aims
from ssdrig.powerloss.sessions import BEGIN, JUDGED, content, doubts, proofs_of, record_of, unsealed
from ssdrig.reading.row import Row, Table
from ssdrig.reading.rundata import RunData
from ssdrig.runs import integrity, journal, parts


class Window(NamedTuple):
    """`window_ms`: the age that parts lost writes from kept ones with the fewest exceptions; `wrong`: their share.
    `longest_ms`: age of the oldest write that was lost. None where nothing was lost, or nothing kept; `why`."""

    window_ms: float | None
    longest_ms: float | None
    wrong: float | None
    writes: int
    why: str = ""


def cut_window(age_ms, lost) -> Window:
    """age_ms: of acknowledged writes without FUA that no FLUSH covered, at their cut; lost: which are gone."""
    age_ms, lost = np.asarray(age_ms, float), np.asarray(lost, bool)
    if not lost.any():
        return Window(None, None, None, len(lost), "no acknowledged write was lost")
    longest = float(age_ms[lost].max())
    if lost.all():
        return Window(None, longest, None, len(lost), "no write was old enough to be kept")
    order = np.argsort(age_ms, kind="stable")
    ages, gone = age_ms[order], lost[order]
    # with the first k called lost: those of them that were kept, and of the others that were lost
    wrong = np.concatenate([[0], np.cumsum(~gone)]) + np.concatenate([np.cumsum(gone[::-1])[::-1], [0]])
    best = np.flatnonzero(wrong == wrong.min())
    k = int(best[len(best) // 2])
    low, high = ages[max(0, k - 1)], ages[min(k, len(ages) - 1)]
    return Window(float(low + high) / 2, longest, float(wrong.min()) / len(lost), len(lost))


IN_DETAIL_FAILING, IN_DETAIL_CLEAN = 12, 4  # cuts that a page shows one by one
MOST_WAVEFORM_BYTES = 16 << 20  # of one fall; the rig's scope has 30 kB
POWER_NS = 5_000_000  # of the power around such a cut
BIN_MS, FARTHEST_MS = 0.2, 5.0  # of the distance from a FLUSH to the cut
LEAST_TREND = 8  # values for a trend
LEAST_START_S = 0.02  # of a start: shorter ones have no usable energy
ANNOUNCED = "announced"  # control sessions whose drive was warned of the cut
SLOW = 3.0  # times the median, and a recovery is named
SUMMED = {  # figures of a cut: the way to them in its record
    "ready_s": ("ready_s",),
    "off_s": ("off_s",),
    "t90_10_us": ("fall", "t90_10_us"),
    "holdup_us": ("fall", "holdup_us"),
    "knee_uV": ("fall", "knee_uV"),
    "residual_uV": ("fall", "residual_uV"),
    "boot_J": ("boot_J",),
    "recharge_J": ("recharge_J",),
}


class Stratum(NamedTuple):
    """The judged cuts of an aim with a shape. Damage that one of several cuts did may belong to a cut of any stratum:
    it counts in `most` and in the bound of each."""

    aim: str
    shape: str
    cuts: int
    failing: int  # cuts that certainly broke a promise
    most: int  # cuts that may have
    bound: float  # the chance per cut is below it, one-sided, 95 %
    numbers: tuple[int, ...]  # of the cuts after which damage was found


def records(events: Iterable[Mapping], path: str) -> list[dict]:
    """The sessions that came to their verdict, by number."""
    last = {
        event["cut"]: record_of(event)
        for event in events
        if event.get("kind") == JUDGED and event.get("step") == path and isinstance(event.get("cut"), int)
    }
    return [last[number] for number in sorted(last)]


def of_drive(sessions: Sequence[Mapping]) -> list[Mapping]:
    """The judged cuts: no control sessions."""
    return [session for session in sessions if tally.is_cut(session)]


def stops(begun: Mapping | None) -> tuple[int, ...]:
    """The numbers of cuts after which the campaign of this event could end (chance.looks()); empty without `until`."""
    limit = (begun or {}).get("bound")
    known = isinstance(limit, int | float) and 0 < limit < 1
    return chance.looks(float(limit)) if known else ()


def bound(failing: int, cuts: int, of: int, others: int, stops: Sequence[int]) -> float:
    """The bound of `failing` failing cuts among `cuts` of a campaign of `of`, whose other cuts have `others`. The stops
    have looked at a group of cuts at its share of all."""
    share = cuts / of if of else 0.0
    return chance.bound_at_end(failing, cuts, tuple(math.floor(share * n) for n in stops[others:] if n <= of))


def strata(sessions: Sequence[Mapping], stops: Sequence[int] = ()) -> list[Stratum]:
    judged, failing = of_drive(sessions), tally.failing(sessions).most
    groups: dict[tuple[str, str], list[int]] = {}
    for session in judged:
        groups.setdefault((aimed(session), str(session.get("shape"))), []).append(session["cut"])
    return [stratum(*key, groups[key], sessions, len(judged), failing, stops) for key in sorted(groups)]


def aimed(record: Mapping) -> str:
    """The aim of a cut, with "(missed)" where the cut fell elsewhere: it is no evidence on that aim."""
    text = str(record.get("aim"))
    reached = _achieved(text, record)
    return text if reached is None or aims.hit(cut_aims.parse(text), *reached) else f"{text} (missed)"


def _achieved(text: str, record: Mapping) -> tuple[float, float] | None:
    try:
        return aims.achieved(cut_aims.parse(text), record)
    except UsageError:  # not an aim that this ssdrig knows
        return None


def achieved(sessions: Sequence[Mapping]) -> dict[str, dict]:
    """Results of the cuts of each aim with a range: {aim: {"cuts", "within", "near", "least", "most", "unit"}}; only
    where it is known. "near": for bytes, those that came near their own plan; otherwise None."""
    out: dict[str, dict] = {}
    for session in of_drive(sessions):
        text = str(session.get("aim"))
        if (reached := _achieved(text, session)) is None:
            continue
        value, unit = reached[0], cut_aims.RANGES[cut_aims.parse(text).name][0]
        of = out.setdefault(text, {"cuts": 0, "within": 0, "near": None, "least": value, "most": value, "unit": unit})
        of["cuts"], of["within"] = of["cuts"] + 1, of["within"] + aims.hit(cut_aims.parse(text), *reached)
        if (near := aims.near(session)) is not None:
            of["near"] = (of["near"] or 0) + near
        of["least"], of["most"] = min(of["least"], value), max(of["most"], value)
    return out


def stratum(
    aim: str, shape: str, cuts: Sequence[int], sessions: Sequence[Mapping], of: int, failing: int, stops: Sequence[int]
) -> Stratum:
    """The stratum of these cuts among all sessions, with `of` judged cuts and at most `failing` failing ones."""
    own = set(cuts)
    tallied = tally.failing(sessions, own)
    numbers = tuple(session["cut"] for session in sessions if session["cut"] in own and session.get("failed"))
    limit = bound(tallied.most, len(cuts), of, max(0, failing - tallied.most), stops)
    return Stratum(aim, shape, len(cuts), tallied.least, tallied.most, limit, numbers)


def classes(sessions: Sequence[Mapping]) -> dict[str, dict[str, list[int]]]:
    """{class: {"aim shape": numbers of the sessions that show it}}, the certain ones first. Sessions without a
    judged cut count only if they accuse the drive."""
    of_class: dict[str, dict[str, list[int]]] = {}
    for session in sessions:
        if not tally.is_cut(session) and not session.get("failed"):
            continue
        for name in session.get("findings") or {}:
            of_class.setdefault(name, {}).setdefault(f"{aimed(session)} {session.get('shape')}", []).append(
                session["cut"]
            )
    order = {name: (not is_certain(name), i) for i, name in enumerate(findings.BY_NAME)}
    return {name: of_class[name] for name in sorted(of_class, key=lambda name: order.get(name, (True, len(order))))}


def standing_of(name: str) -> str:
    """The class of a finding: "FAIL", "suspected", or "cannot tell"."""
    return "cannot tell" if name == findings.UNSURE else "FAIL" if is_certain(name) else "suspected"


def is_certain(name: str) -> bool:
    known = findings.BY_NAME.get(name)
    return known.certain if known else False


def words_of(name: str) -> str:
    known = findings.BY_NAME.get(name)
    return known.words if known else "not a class that this ssdrig knows"


def detection(sessions: Sequence[Mapping]) -> list[dict]:
    """Cuts by the time from the submission of the nearest FLUSH to the cut: {"from_ms", "cuts", "failing"} of bins of
    BIN_MS, the empty ones between two others too. Negative: the FLUSH came after the cut."""
    near = [session for session in of_drive(sessions) if abs(_number(session, "delta_flush_us")) <= FARTHEST_MS * 1e3]
    at = [int(np.floor(_number(one, "delta_flush_us") / 1e3 / BIN_MS)) for one in near]
    if not at:
        return []
    out = [{"from_ms": round(i * BIN_MS, 3), "cuts": 0, "failing": 0} for i in range(min(at), max(at) + 1)]
    for i, cut in zip(at, near, strict=True):
        out[i - min(at)]["cuts"] += 1
        out[i - min(at)]["failing"] += bool(cut.get("failed"))
    return out


def _number(record: Mapping, key: str) -> float:
    value = record.get(key)
    return float(value) if isinstance(value, int | float) else np.nan


def values(sessions: Sequence[Mapping], *keys: str) -> tuple[np.ndarray, np.ndarray]:
    """(numbers of the cuts, value) where it is known; keys: the way to it in a record."""
    out = []
    for session in of_drive(sessions):
        value: object = session
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and np.isfinite(value):
            out.append((session["cut"], float(value)))
    return np.array([n for n, _ in out]), np.array([v for _, v in out])


def trend(at: np.ndarray, value: np.ndarray) -> dict | None:
    """A straight line by least squares: {"n", "mean", "sd", "per_100": slope per hundred cuts, "error": its standard
    error}; None of fewer than LEAST_TREND values."""
    if len(value) < LEAST_TREND or np.ptp(at) == 0:
        return None
    x = at - at.mean()
    slope = float((x * value).sum() / (x * x).sum())
    rest = value - value.mean() - slope * x
    error = float(np.sqrt((rest * rest).sum() / (len(value) - 2) / (x * x).sum()))
    spread = float(value.std(ddof=1))
    return {"n": len(value), "mean": float(value.mean()), "sd": spread, "per_100": 100 * slope, "error": 100 * error}


def summary_of(at: np.ndarray, value: np.ndarray) -> dict | None:
    """{"n", "median", "least", "most", "trend"}; None without values."""
    if not len(value):
        return None
    low, middle, high = float(value.min()), float(np.median(value)), float(value.max())
    return {"n": len(value), "median": middle, "least": low, "most": high, "trend": trend(at, value)}


def volatile(pictures: Iterable[Mapping]) -> dict | None:
    """How old acknowledged writes were that the drive lost, as it may: {"kept", "lost": counts by picture.AGES_MS,
    "window_ms": the age that parts lost from kept ones, good to a bin, "oldest_ms": from and to of the oldest lost one,
    "wrong", "why": as window.Window has them, "newer", "suffix_lost", "lost_bytes_most"}; None where no picture has any
    such write."""
    surviving, lost = np.zeros(len(picture.AGES_MS), np.int64), np.zeros(len(picture.AGES_MS), np.int64)
    newer = suffix = most = 0
    for image in pictures:
        surviving += np.array(image["ages"]["kept"])
        lost += np.array(image["ages"]["lost"])
        most = max(most, image["lost_bytes"])
        if image["suffix"]:
            newer, suffix = newer + image["suffix"]["newer"], suffix + image["suffix"]["lost"]
    if not (surviving.any() or lost.any()):
        return None
    edges = np.array([*picture.AGES_MS, 2 * picture.AGES_MS[-1]], float)
    ages = np.repeat(np.tile((edges[:-1] + edges[1:]) / 2, 2), np.concatenate([surviving, lost]))
    losses = cut_window(ages, np.arange(len(ages)) >= surviving.sum())
    hit = np.flatnonzero(lost)
    return {
        "kept": surviving.tolist(),
        "lost": lost.tolist(),
        "window_ms": losses.window_ms,
        "wrong": losses.wrong,
        "why": losses.why,
        "oldest_ms": list(picture.AGES_MS[hit[-1] : hit[-1] + 2]) if len(hit) else None,
        "newer": newer,
        "suffix_lost": suffix,
        "lost_bytes_most": most,
    }


def with_energies(sessions: Sequence[dict], start_J: Mapping[str, float]) -> list[dict]:
    """The records with the energy of the start, and that of charging capacitors (boot.recharge), where they have
    none; start_J: by the session's number, all over equal times."""
    announced = [start_J[str(e["cut"])] for e in sessions if e.get("control") == ANNOUNCED and str(e["cut"]) in start_J]
    out = []
    for session in sessions:
        more = {"boot_J": start_J.get(str(session["cut"]))} if session.get("boot_J") is None else {}
        if session.get("recharge_J") is None and not session.get("control"):
            more["recharge_J"] = boot.recharge(more.get("boot_J", session.get("boot_J")), announced).energy_J
        out.append({**session, **more})
    return out


def capacitors(sessions: Sequence[Mapping]) -> dict | None:
    """The capacitors' health at the last cut, in % of that at the first: {"percent", "error_percent", "finding": the
    words of PLP_DEGRADED, None where they have not aged}."""
    at, value = values(sessions, "recharge_J")
    state = boot.health(at.tolist(), value.tolist())
    aged = health.capacitors(at.tolist(), value.tolist())
    words = aged.words if aged else None
    if state is None:
        return None
    return {"percent": state.percent[-1], "error_percent": state.error_percent, "finding": words}


def campaign(
    events: Sequence[Mapping],
    path: str,
    run: Path,
    snapshots: Sequence[Mapping],
    start_J: Mapping[str, float] = MappingProxyType({}),
) -> dict:
    """All that a step `cuts` has found, JSON-able; `events` and `snapshots` of all parts, oldest first. `cuts`: the
    records; `judged`, `failing`, `failing_most`, `bound`, `wald`: of all judged cuts together, whatever their aim and
    shape; `failing_cuts`: the judged cuts after which damage was found; `failing_others`: other sessions after which
    damage was found, or an announced loss of power broke a promise; `coverage`: see coverage(); `exposed`: see
    exposure.total(); `filesystems`: see above.totals()."""
    sessions = tally.in_hindsight(with_energies(records(events, path), start_J))
    own = [event for event in events if event.get("step") == path]
    begun = [event for event in own if event.get("kind") == BEGIN]
    ends = [event for event in own if event.get("kind") == "powerloss.end"]
    cut, numbers = of_drive(sessions), [session["cut"] for session in sessions]
    failing = [session["cut"] for session in cut if session.get("failed")]
    others = [session["cut"] for session in sessions if session.get("failed") and not tally.is_cut(session)]
    count, ends_after = tally.failing(sessions), stops(begun[-1] if begun else None)
    where = folders(run, numbers)
    read = {number: evidence(folder).picture for number, folder in where.items()}
    pictures = [image for number in (session["cut"] for session in cut) if (image := read.get(number)) is not None]
    controls = [session for session in sessions if session.get("control")]
    bounds_ns = [float(session["bound_ns"]) for session in sessions if isinstance(session.get("bound_ns"), int | float)]
    return {
        "kind": "cuts",
        "begun": record_of(begun[-1]) if begun else None,
        "stop": ends[-1].get("stop") if ends else None,
        "ended": bool(ends),
        "judged": len(cut),
        "failing": count.least,
        "failing_most": count.most,
        "failing_cuts": failing,
        "failing_others": others,
        "intervals": {str(session["cut"]): span for session in sessions if (span := tally.interval_of(session))},
        "coverage": coverage(sessions, begun[-1] if begun else {}),
        "exposed": exposure.total(sessions),
        "filesystems": above.totals(event for event in own if event.get("kind") == above.JUDGED),
        "suspicious_cuts": [session["cut"] for session in cut if session.get("suspicion")],
        "bound": bound(count.most, len(cut), len(cut), 0, ends_after),
        "wald": chance.Wald().ruling(count.most, len(cut)),
        "aims": achieved(sessions),
        "strata": [entry._asdict() for entry in strata(sessions, ends_after)],
        "classes": classes(sessions),
        "commands": _total(cut, "commands"),
        "durable": _total(cut, "durable"),
        "blocks_read": _total(cut, "blocks_read"),
        "written_bytes": _total(sessions, "written_bytes"),
        "lost_volatile": _total(cut, "lost_volatile"),
        "window": volatile(pictures),
        "pictures": len(pictures),
        "detection": detection(sessions),
        **{name: summary_of(*values(sessions, *keys)) for name, keys in SUMMED.items()},
        "capacitors": capacitors(sessions),
        "smart": counted(snapshots, run),
        "unsafe_shutdowns": _total(cut, "unsafe_shutdowns"),
        "bound_ns": {"median": float(np.median(bounds_ns)), "most": max(bounds_ns)} if bounds_ns else None,
        "excluded": [
            {"cut": session["cut"], "why": session.get("why_not") or "no reason recorded"}
            for session in sessions
            if not session.get("judged") and not session.get("control")
        ],
        "controls": [
            {
                "cut": session["cut"],
                "control": session["control"],
                "ok": bool(session.get("judged")) and not session.get("failed"),
            }
            | {"why": session.get("why_not") or None, "harness": session.get("harness") or None}
            for session in controls
        ],
        "no_samples": chance.NO_SAMPLES,
        "cuts": sessions,
    }


def coverage(sessions: Sequence[Mapping], begun: Mapping) -> dict:
    """How much of the window was read after the judged cuts: {"share": the mean, None where it is not known, "whole":
    sessions after which all of it was, "since": judged cuts after the last of these}. Damage in a block that was not
    read, or that a later write has replaced, is in no figure."""
    cut = of_drive(sessions)
    whole = [session["cut"] for session in sessions if session.get("whole")]
    window, block = begun.get("window_bytes"), (begun.get("promise") or {}).get("block_bytes")
    share = None
    if cut and isinstance(window, int) and isinstance(block, int) and window > 0 < block:
        shares = [1.0 if one.get("whole") else min(1.0, _number(one, "blocks_read") * block / window) for one in cut]
        share = float(np.mean(shares)) if np.isfinite(shares).all() else None
    return {"share": share, "whole": whole, "since": sum(one["cut"] > max(whole, default=0) for one in cut)}


def _total(sessions: Sequence[Mapping], key: str) -> int | None:
    known = [session[key] for session in sessions if isinstance(session.get(key), int)]
    return sum(known) if known else None


def with_cuts(table: "Table", tables: "Sequence[Table]") -> "Table":
    """The table with what its steps that cut the power have found in all parts of the run."""
    events = [event for run in tables for event in run.data.events]
    snapshots = [snapshot for run in tables for snapshot in run.data.snapshots]
    for row in table.rows:
        if row.act.do == "cuts" and row.state != "not run":
            mine = [own for run in tables for own in run.rows if own.act.path == row.act.path]
            of = {
                key: {n: v for own in mine for n, v in own.result.get(key, {}).items()}
                for key in ("power_W", "start_J")
            }
            result = campaign(events, row.act.path, parts.root(table.path), snapshots, of["start_J"])
            row.result = result | {"power_W": of["power_W"]}
    if any(row.act.do == "cuts" and row.state != "not run" for row in table.rows):
        lost, wrong = doubts(parts.own(parts.root(table.path)))
        table.data.notes += [*wrong, *(lost if table.data.state not in journal.END_STATES else ())]  # else by its sums
    return table


def in_detail(sessions: Sequence[Mapping]) -> list[int]:
    """The cuts that a page shows one by one: the first that break a promise, and some others from all of the rest."""
    cut = of_drive(sessions)
    failing = [session["cut"] for session in cut if session.get("failed")]
    clean = [session["cut"] for session in cut if not session.get("failed")]
    every = max(1, -(-len(clean) // IN_DETAIL_CLEAN))
    return sorted([*failing[:IN_DETAIL_FAILING], *clean[::every]])


class Asked(NamedTuple):
    """Energies of a session that are asked of the samples (table.read_finer)."""

    row: "Row"
    cut: int
    key: str  # of row.result
    edges_ns: np.ndarray

    @property
    def timed(self) -> Edges:
        return Edges.of(self.edges_ns if self.key == "start_J" else [])

    def put(self, _: RunData, powers: list) -> None:
        if not powers:
            return
        of = self.row.result.setdefault(self.key, {})
        if self.key == "power_W":
            watts = rails.steps_J(powers, self.edges_ns) / (POWER_NS / 1e9)
            of[str(self.cut)] = [round(float(value), 4) if np.isfinite(value) else None for value in watts]
        elif (timed := rails.timed_J(powers, *self.edges_ns.tolist())).why is None:
            of[str(self.cut)] = timed.J


def read_power(base: RunData, rows: "Sequence[Row]") -> list[Asked]:
    """The power around the cuts that are shown one by one, and the energy of each start, over the time that the fastest
    of them took."""
    out = []
    steps_ns = np.arange((picture.BEFORE_MS + picture.AFTER_MS) * 1_000_000 // POWER_NS + 1) * POWER_NS
    for row in rows:
        if row.act.do != "cuts":
            continue
        of = records(base.events, row.act.path)
        shown, begin_ns = set(in_detail(of)), -picture.BEFORE_MS * 1_000_000
        ready_s = [session["ready_s"] for session in of if (_number(session, "ready_s")) >= LEAST_START_S]
        for one in of:
            fired_ns, on_ns = one.get("fired_ns"), one.get("on_ns")
            if one["cut"] in shown and isinstance(fired_ns, int):
                out.append(Asked(row, one["cut"], "power_W", fired_ns + begin_ns + steps_ns))
            if ready_s and isinstance(on_ns, int):
                out.append(Asked(row, one["cut"], "start_J", np.array([on_ns, on_ns + round(min(ready_s) * 1e9)])))
    return out


class Evidence(NamedTuple):
    """The contents of a session's folder; a missing part is None or empty."""

    picture: dict | None
    proofs: list[dict]
    report: dict | None  # of the rig
    volts: np.ndarray | None  # float32, of the rail
    since_edge_us: np.ndarray | None  # time of each from the edge, µs


def evidence(folder: Path, fired_ns: int | None = None) -> Evidence:
    """The evidence in one session's folder (powerloss/0007). Never raises; a damaged part counts as missing."""
    verdict = unsealed(folder / "verdict.json") or {}
    volts = since_edge_us = None
    if fired_ns is not None:
        try:
            waveform = integrity.arrays(content(folder, verdict, "waveform.npz"), MOST_WAVEFORM_BYTES)
            volts = waveform["volts"].astype(np.float32)
            since_edge_us = (
                np.arange(len(volts)) * float(waveform["dt_ns"]) + float(waveform["t0_ns"]) - fired_ns
            ) / 1e3
        except (OSError, ValueError, KeyError, TypeError):
            volts = since_edge_us = None
    return Evidence(verdict.get("picture"), proofs_of(folder, verdict), verdict.get("report"), volts, since_edge_us)


def folders(run: Path, numbers: Iterable[int]) -> dict[int, Path]:
    """Where the files of these sessions lie: in the last part that has a verdict of them."""
    paths = {}
    for part in parts.own(run):
        for number in numbers:
            folder = part / "powerloss" / f"{number:04}"
            if (folder / "verdict.json").is_file():
                paths[number] = folder
    return paths


POLLED = {  # key of a snapshot, words
    "unsafe_shutdowns": "Unsafe shutdowns",
    "power_cycles": "Power cycles",
    "media_errors": "Media errors",
    "available_spare_percent": "Available spare, %",
    "percentage_used": "Percentage used, %",
    "bad_user_blocks": "Bad blocks",
    "program_fails": "Program failures",
    "erase_fails": "Erase failures",
}
OF_C0H = {  # field of OCP's log C0h, words
    "capacitor_health_percent": "Capacitor health by the drive, %",
    "plp_starts": "Starts of power-loss protection",
    "incomplete_shutdowns": "Incomplete shutdowns",
}
WORDS = POLLED | OF_C0H


def counted(snapshots: Sequence[Mapping], run: Path) -> dict[str, list]:
    """{key of WORDS: [first, last]}; snapshots of all parts, oldest first; run: its root folder."""
    out = {}
    for key in POLLED:
        known = [snapshot[key] for snapshot in snapshots if snapshot.get(key) is not None]
        if known:
            out[key] = [known[0], known[-1]]
    paths = [path for part in parts.own(run) for path in sorted((part / "smart").glob("*.json"))]
    first, last = _page(paths), _page(reversed(paths))
    for key in OF_C0H:
        if first.get(key) is not None and last.get(key) is not None:
            out[key] = [first[key], last[key]]
    return out


def _page(paths: Iterable[Path]) -> dict:
    """Log C0h of the first of these polls that has one; {} where none has."""
    for path in paths:
        try:
            text = integrity.document_of(path).get("log_c0h")
            if text:
                return nvme_pages.decode_c0h(bytes.fromhex(text))
        except (OSError, ValueError, AttributeError, TypeError, RecursionError, DriveError):
            continue
    return {}
