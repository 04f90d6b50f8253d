"""The verdict at the head of the report: two or three sentences made from the figures of one window. A difference is
claimed only where it is larger than both figures are uncertain by. Pure."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ssdrig.base.overprovisioning import whole_MiB
from ssdrig.base.uncertain import Uncertain, differ
from ssdrig.reading import errors, trust
from ssdrig.report import words
from ssdrig.report.words import LEAST_PERCENT, block
from ssdrig.views.terms import BY_KEY, number

AGAIN = {  # compared after the IOPS: choices of keys, its name, "less of it", "more of it"
    ("energy_uJ_per_io",): ("energy per write", "less energy per write", "more energy per write"),
    ("wa",): ("write amplification", "less write amplification", "more write amplification"),
    ("lat_p999_us", "clat_p999_us"): ("P99.9 latency", "lower P99.9 latency", "higher P99.9 latency"),
}


MOST_NAMES = 2  # in a sentence
NOT_COMPARED = "are not compared, their errors are not known"
_CLAIMED = {"iops_mean", "power_mean_W", *(key for choices in AGAIN for key in choices)}


class Run(NamedTuple):
    """A run as the verdict sees it: its short name, and the figures of the window (views.View)."""

    name: str
    figures: dict


def sentences(label: str, runs: Sequence[Run], apart: Sequence[str | None], review: int) -> list[str]:
    """`label`: of the window (views.View.label); `apart`: why a run is not comparable with the reviewed one. Nothing is
    claimed of a figure that depends on a bad item of its window's trust strip."""
    reviewed = runs[review]
    if reviewed.figures["iops_mean"] is None:
        return [f"No verdict: {reviewed.name} has no figures of this window."]
    if apart[review]:
        return [f"No verdict: {reviewed.name} was {apart[review]}, so no run is comparable with it."]
    doubts = [trust.why_not(run.figures.get("trust"), trust.OF_LOAD) for run in runs]
    if doubts[review]:
        return [f"No verdict: {reviewed.name} is not to be trusted here: {doubts[review]}."]
    apart = [why or doubt for why, doubt in zip(apart, doubts, strict=True)]
    left_out = [
        f"Power and energy of {run.name} are left out: {why}."
        for run, unlike in zip(runs, apart, strict=True)
        if not unlike and (why := trust.why_not(run.figures.get("trust"), trust.OF_POWER))
    ]
    runs = [Run(run.name, _trusted(run.figures)) for run in runs]
    reviewed = runs[review]
    ranked = [run for run, why in zip(runs, apart, strict=True) if not why and run.figures["iops_mean"] is not None]
    ranked.sort(key=lambda run: -run.figures["iops_mean"])
    when = _when(label)
    if len(ranked) == 1:
        out = _alone(when, reviewed)
    elif len(ranked) == 2:
        out = _pair(when, *ranked)
    else:
        out = _field(when, ranked, reviewed)
    left = len(runs) - len(ranked)
    if left:
        out.append(f"{left} of {len(runs)} runs {'is' if left == 1 else 'are'} not comparable and left out.")
    return out + left_out


def _trusted(figures: dict) -> dict:
    """The figures without those that depend on a bad item."""
    red = {item["id"] for item in trust.red(figures.get("trust"))}
    if not red:
        return figures
    return {key: None if red & {*trust.rests_on(key)} and key in _CLAIMED else value for key, value in figures.items()}


def _when(label: str) -> str:
    name, _, times = label.rpartition(", ")
    if name == "steady state":
        return f"In the steady state ({times})"
    return f"At {label} of the load" if label[:1].isdigit() else f"In the window {label}"


def _alone(when: str, run: Run) -> list[str]:
    f = run.figures
    out = [f"{when} the drive does {_value(f, 'iops_mean')} random writes per second"]
    if f["iops_sd"] is not None and f["iops_mean"]:
        out[0] += f", with a spread of {number(100 * f['iops_sd'] / f['iops_mean'], 1)} % from second to second"
    slowest = f["iops_min"]
    if slowest is not None:
        out[0] += f" and {number(slowest, 0)} in the slowest"
    out[0] += "."
    claims = [
        f"{what} {_value(f, key)}"
        for choices, what in (
            (("lat_p50_us", "clat_p50_us"), "Half of the writes complete within"),
            (("lat_p999_us", "clat_p999_us"), "99.9 % within"),
            (("energy_uJ_per_io",), "a write costs"),
            (("wa",), "write amplification is"),
        )
        if (key := _key(choices, [run])) and f[key] is not None
    ]
    if claims:
        text = "; ".join(claims)
        out.append(f"{text[:1].upper()}{text[1:]}.")
    return out


def _pair(when: str, best: Run, other: Run) -> list[str]:
    """The faster against the slower."""
    a, b = best.figures["iops_mean"], other.figures["iops_mean"]
    if not _differ("iops_mean", best, other):
        words = "do not differ beyond their errors" if _known("iops_mean", [best, other]) else NOT_COMPARED
        first = f"{when} {best.name} and {other.name} {words} ({_both('iops_mean', best, other)} IOPS)"
    else:
        first = f"{when} {best.name} does {_times(a / b)} the writes of {other.name}"
        first += f" ({_both('iops_mean', best, other)} IOPS)"
    better: list[str] = []
    worse: list[str] = []
    for choices, (_, less, more) in AGAIN.items():
        key = _key(choices, [best, other])
        if not key or not _differ(key, best, other):
            continue
        change = 100 * (best.figures[key] / other.figures[key] - 1)
        text = f"{_percent(change)} {less if change < 0 else more} ({_both(key, best, other)})"
        (better if change < 0 else worse).append(text)
    if better:
        first += f", with {_list(better)}"
    if _differ("power_mean_W", best, other):
        change = 100 * (best.figures["power_mean_W"] / other.figures["power_mean_W"] - 1)
        first += (
            f", at {_percent(change)} {'more' if change > 0 else 'less'} power ({_both('power_mean_W', best, other)})"
        )
    ours, theirs = _spread(best), _spread(other)
    if ours.value and theirs.value and ours.value - theirs.value >= 0.1 and differ(ours, theirs):
        worse.append(f"its seconds vary more ({number(ours.value, 1)} against {number(theirs.value, 1)} %)")
    out = [first + "."]
    out.append(f"Worse: {_list(worse)}." if worse else f"In no figure of the table {best.name} is clearly worse.")
    return out


def _field(when: str, ranked: Sequence[Run], reviewed: Run) -> list[str]:
    """Three runs and more: who leads, the place of the reviewed run, who leads in the other figures."""
    best, last, count = ranked[0], ranked[-1], len(ranked)
    level = [run for run in ranked if not _differ("iops_mean", best, run, count)]
    if not _known("iops_mean", level):
        without = _group([run for run in level if not _known("iops_mean", [run])])
        first = f"{when} none of {count} comparable runs is called the fastest, the error of {without} is not known"
    elif len(level) == count:
        first = f"{when} all {count} comparable runs do not differ beyond their errors"
        first += f" (about {_value(best.figures, 'iops_mean')} IOPS)"
    else:
        leads = f"{best.name} is" if len(level) == 1 else f"{_group(level)}, within their errors, are"
        first = f"{when} {leads} the fastest of {count} comparable runs: {_value(best.figures, 'iops_mean')} IOPS"
        if _differ("iops_mean", best, last, count):
            ratio = _times(best.figures["iops_mean"] / last.figures["iops_mean"])
            first += f", {ratio} the slowest ({last.name}, {_value(last.figures, 'iops_mean')})"
        if reviewed not in (*level, last):
            first += f"; {reviewed.name} is {_place(reviewed, ranked)} with {_value(reviewed.figures, 'iops_mean')}"
    lead = []
    for choices, (what, *_) in AGAIN.items():
        key = _key(choices, ranked)
        if key:
            order = sorted(ranked, key=functools.partial(_figure, key))
            level = [run for run in order if not _differ(key, order[0], run, count)]
            if len(level) < count and _known(key, level):
                who = level[0].name if len(level) == 1 else f"{_group(level)}, within their errors"
                lead.append(f"{what}: {who} ({_value(order[0].figures, key)})")
    return [first + ".", *([f"Lowest {'; lowest '.join(lead)}."] if lead else [])]


def _place(run: Run, ranked: Sequence[Run]) -> str:
    """The place of a run, or the first and the last that it may have within the errors."""
    at, count = ranked.index(run), len(ranked)
    first = 1 + sum(_differ("iops_mean", run, one, count) for one in ranked[:at])
    last = count - sum(_differ("iops_mean", run, one, count) for one in ranked[at + 1 :])
    return f"number {first}" if first == last else f"number {first} to {last}"


def _group(runs: Sequence[Run]) -> str:
    """Their names, or how many they are."""
    return f"{len(runs)} runs" if len(runs) > MOST_NAMES else _list([run.name for run in runs])


def _known(key: str, runs: Sequence[Run]) -> bool:
    """Whether the errors of all are known."""
    return all(errors.of(key, run.figures).known for run in runs)


def _key(choices: Sequence[str], runs: Sequence[Run]) -> str | None:
    """The first of these figures that all the runs have, above 0."""
    return next((key for key in choices if all((run.figures[key] or 0) > 0 for run in runs)), None)


def _figure(key: str, run: Run) -> float:
    return run.figures[key]


def _differ(key: str, a: Run, b: Run, count: int = 2) -> bool:
    """Whether two runs of `count` differ in a figure by more than both are uncertain by; False where one does not have
    it."""
    return differ(errors.of(key, a.figures), errors.of(key, b.figures), count)


def _spread(run: Run) -> Uncertain:
    """Scatter of the seconds about their mean, in percent of it."""
    sd, mean = run.figures["iops_sd"], run.figures["iops_mean"]
    if sd is None or not mean:
        return Uncertain(None)
    return errors.of("iops_sd", run.figures).scaled(100 / mean)


def _text(key: str, values: Sequence[float]) -> tuple[Callable[[float], str], str]:
    unit = words.unit(BY_KEY[key], values)
    return unit.text, unit.name


def _value(figures: dict, key: str) -> str:
    text, unit = _text(key, [figures[key]])
    return f"{text(figures[key])} {unit}".strip()


def _both(key: str, a: Run, b: Run) -> str:
    """ "69.1 against 142.1 µJ"."""
    values = [run.figures[key] for run in (a, b)]
    text, unit = _text(key, values)
    return f"{text(values[0])} against {text(values[1])} {unit}".strip()


def _times(ratio: float) -> str:
    return f"{number(ratio, 1 if ratio >= 1.95 else 2)} ×"


def _percent(change: float) -> str:
    return f"{number(abs(change), 0)} %"


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


ENDED = {"failed": "failed", "interrupted": "interrupted", "died": "aborted", "running": "still running"}


def _seconds(duration_s: float | None) -> str:
    return "no length" if duration_s is None else f"{duration_s:g} s"


def conditions(data, figure: dict) -> dict:
    """What must be equal in two runs (analysis.RunData and its figures) that are ranked: name -> (value, words)."""
    method, drive = data.header["method"], data.header["drive"]
    op, raw = method.get("op_percent"), drive.get("raw_nand_bytes")
    tested, user = method.get("tested_bytes"), figure["op_user_percent"]
    whole = drive.get("capacity_bytes") if op is None else raw and whole_MiB(raw, 100 - op)
    if op is None and user is not None and user >= LEAST_PERCENT:
        whole = tested  # over-provisioning of the user capacity, printed on the label
    share = round(100 * tested / whole) if tested and whole else None
    return {
        "test": (method.get("name"), str(method.get("name"))),
        "load": (figure["duration_s"], _seconds(figure["duration_s"])),
        "window": (figure["zoom_s"], f"from {figure['zoom_s']} s"),
        "tested share": (share, f"{share} %"),
        "queue depth": (method.get("queue_depth"), str(method.get("queue_depth"))),
        "block size": (method.get("block_bytes"), block(method.get("block_bytes"))),
    }


def reason(data, figure: dict, other: dict) -> str | None:
    """Why a run cannot be ranked with one under the conditions `other`; None if it can."""
    if figure["state"] != "complete":
        words = ENDED.get(figure["state"], figure["state"])
        whole_s = figure["duration_s"]
        of = "" if whole_s is None else f" of {_seconds(whole_s).removesuffix(' s')}"
        return f"{words} after {len(data.iops)}{of} s"
    own = conditions(data, figure)
    unlike = [
        f"{name} {own[name][1]}, reviewed run {words}"
        for name, (value, words) in other.items()
        if own[name][0] != value
    ]
    return "; ".join(unlike) or None


def reasons(runs: list, figures: list[dict]) -> list[list[str | None]]:
    """reasons[r][i]: why run i cannot be ranked when run r is reviewed; None if it can."""
    pairs = list(zip(runs, figures, strict=True))
    return [[reason(*pair, conditions(*reviewed)) for pair in pairs] for reviewed in pairs]
