"""The forecast before anything is touched: each step with its time and bytes written, as ranges."""

import textwrap
from collections.abc import Sequence

from ssdrig.base import words
from ssdrig.base.progress import Progress, columns
from ssdrig.base.terminal import printable, wrapped
from ssdrig.base.words import digits
from ssdrig.plan import cost, grammar, kinds
from ssdrig.plan.expand import Act
from ssdrig.run import pairing, prepare, sync_marks
from ssdrig.run.budget import Budget
from ssdrig.run.course import Course, range_words

LEAST_WHAT = 16  # columns
KIND = {"random": "RND", "sequential": "SEQ"}


def describe(
    args, prepared: prepare.Prepared, budget: Budget, show: Progress, rated_bytes: float | None = None
) -> None:
    """Warnings, then the table, on stderr; a dry run with --json prints it as an object on
    stdout (prepare.as_json)."""
    lines = [f"warning: {line}" for line in prepare.warnings(prepared.drive)]
    show.say("\n".join([*lines, *table(prepared, budget, rated_bytes, columns() if show.live else None)]))
    if args.dry_run and (args.json or args.jsonl):
        print(prepare.dumps(prepared), flush=True)


def table(
    prepared: prepare.Prepared, budget: Budget, rated_bytes: float | None = None, wide: int | None = None
) -> list[str]:
    """The lines of the table, in `wide` columns (None: unlimited)."""
    plan, drive = prepared.plan, prepared.drive
    k = drive["time_dilation"]
    named = " ".join(printable(word) for word in (drive["model"], drive["serial"]) if word)
    assumed = " (assumed)" if drive.get("raw_nand_assumed") else ""
    raw = f", {words.size(drive['raw_nand_bytes'])} raw NAND{assumed}" if drive["raw_nand_bytes"] else ""
    dilated = f", time-dilated {k} times" if k != 1 else ""
    rated = f", rated {digits(rated_bytes / 1e12, 4)} TBW" if rated_bytes else ""
    variant = f", variant {plan.variant}" if plan.variant else ""
    scaled = ", SCALED" if plan.scaled else ""
    rows = [("step", "what", "time", "writes")]
    lines = [
        f"{named}: {words.size(drive['capacity_bytes'])}{raw}{dilated}{rated}",
        f"{plan.name} ({plan.title}{variant}{scaled})",
    ]
    whys: dict[str, list[str]] = {}
    for act in prepared.acts:
        if act.not_run:
            whys.setdefault(f"{act.path}: {act.not_run}", []).append(
                " ".join(map(grammar.value_text, act.point.values()))
            )
    for path, acts in _groups(prepared.acts):
        total = cost.total(acts, drive, prepared.earlier)
        rounds = acts[0].repeat
        name = f"{path} {range_of(rounds.least, rounds.most)}" if rounds and rounds.most > 1 else path
        rows.append((name, _what(acts), times(total, k), written(total)))
    whole = prepared.cost
    share = ""
    if rated_bytes:
        percent = range_of(*(100 * size / rated_bytes for size in whole.written_bytes))
        share = f"{percent} % of {digits(rated_bytes / 1e12, 4)} TBW"
    logs = "…".join(dict.fromkeys(map(words.size, whole.log_bytes)))
    jobs = f"{range_of(*whole.jobs)} fio jobs, logs {logs}"
    rows.append(("in all", jobs, times(whole, k), written(whole)))
    lines += in_columns(rows, wide)
    lines += [f"  {'':{max(len(row[0]) for row in rows)}} {share}"] if share else []
    for why, points in whys.items():
        some = f" ({', '.join(points[:3])}{', …' if len(points) > 3 else ''})" if points[0] else ""
        lines.append(f"  not run: {why}{some}")
    if budget.most_bytes is not None:
        ends = range_words(Course(prepared.acts, drive, prepared.earlier, budget).whole_s())
        lines.append(f"  budget: {words.size(budget.most_bytes)}; the run ends at the boundary before, after {ends}")
    for act in prepared.acts:
        if act.do == "cuts" and (line := kinds.KINDS["cuts"].ahead(act.keys)):
            lines.append(f"  {act.path}: {line}")
    if line := pairing.dry_run_words(prepared.acts, drive["capacity_bytes"], "rig" in prepared.can):
        lines.append(f"  {line}")
    if prepared.sync:
        write = budget.most_bytes is None and pairing.may_write(prepared.acts, drive["capacity_bytes"]) > 0
        lines.append(f"  {sync_marks.dry_run_words(write)}")
    known = "an earlier run of this plan on this model" if prepared.earlier else "what drives of this kind do"
    lines.append(
        f"expected from {known}; at most {words.size(whole.most_bytes)} written; leaves the drive"
        f" {prepared.leaves.words()}"
    )
    return [wrapped(line, wide - 1, "", "    ") if wide and len(line) >= wide else line for line in lines]


def in_columns(rows: Sequence[tuple[str, str, str, str]], wide: int | None) -> list[str]:
    """Step, action, time, bytes: numbers right-aligned, the action on several lines where there is no
    room."""
    name, time, size = (max(len(row[i]) for row in rows) for i in (0, 2, 3))
    room = max(len(row[1]) for row in rows)
    if wide is not None:
        room = max(LEAST_WHAT, min(room, wide - 1 - len(f"  {'':{name}}  ") - len(f"  {'':{time}}  {'':{size}}")))
    lines = []
    for row in rows:
        first, *more = textwrap.wrap(row[1], room, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"  {row[0]:{name}}  {first:{room}}  {row[2]:>{time}}  {row[3]:>{size}}")
        lines += [f"  {'':{name}}  {more_line}" for more_line in more]
    return lines


def _groups(acts: Sequence[Act]) -> list[tuple[str, list[Act]]]:
    """Steps that are run, each with its acts; a repeat of one step has the name of the repeat."""
    groups: dict[str, list[Act]] = {}
    inside: dict[str, set[str]] = {}
    for act in acts:
        if not act.not_run:
            groups.setdefault(act.path, []).append(act)
            inside.setdefault(act.repeat.path if act.repeat else "", set()).add(act.path)
    names = {path: repeat for repeat, paths in inside.items() for path in paths if repeat and len(paths) == 1}
    return [(names.get(path, path), of) for path, of in groups.items()]


def _what(acts: Sequence[Act]) -> str:
    act, keys = acts[0], acts[0].keys
    if act.do == "choose":
        wanted = (p["at"] + (f" where {p['where'].words}" if "where" in p else "") for p in keys["points"])
        return f"{', '.join(wanted)}: of {len(act.choices)} points"
    if act.choices:
        known = [one.keys["time"] for act in acts for one in act.choices if "time" in one.keys]
        times = f" x {range_of(min(known), max(known))} s" if known else ""
        return f"{len(acts)} points{times}, each of {max(len(act.choices) for act in acts)} that were swept"
    if len(acts) > 1:
        words_ = _end_of_point(acts)
        of = f" ({_load(act, acts)})" if words_ and act.do == "load" else ""
        return f"{len(acts)} points{f' x {words_}' if words_ else ''}{of}"
    if act.do == "fill":
        passes = act.amount_bytes / act.range_bytes if act.amount_bytes else 1
        times = f", {digits(passes, 3)} times" if passes != 1 else ""
        return f"SEQ {words.exact_size(keys['block'])} 1x{keys['qd']}, {words.size(act.range_bytes)}{times}"
    if act.do == "load":
        until = " until steady" if any(entry.rule == "pts" for entry in keys.get("until", ())) else ""
        ios = f", {most_ios} I/Os" if (most_ios := kinds.KINDS["load"].most_ios(keys)) else ""
        return f"{_load(act)}, {words.size(act.range_bytes)}{until}{ios}"
    if act.do == "record":
        return f"what others do, {keys['time']:g} s" if keys["time"] else "what others do, until it ends"
    if act.do == "wear":
        slices = max(1, round(keys["total_bytes"] / keys["slice_bytes"]))
        return f"{slices} slices of {words.size(keys['slice_bytes'])} until worn, RND {keys['threads']}x{keys['qd']}"
    if act.do == "cuts":
        return f"{keys['cuts']} cuts, {len(keys['aims'])} aims, window {words.size(act.range_bytes)}"
    if act.do == "retain":
        return f"{words.size(act.range_bytes)} written once, a manifest in three copies"
    if act.do == "recall":
        return f"{keys['passes']} pass{'es' * (keys['passes'] > 1)}, each block once, nothing is written"
    if act.trace:
        how = "as fast as it can" if keys["timing"] == "closed" else "at its times"
        return f"{act.trace.name}, {act.trace.ios} I/Os {how}, {words.size(act.range_bytes)}"
    if act.do == "idle" and "until" in keys:
        return f"until quiet, {range_of(*kinds.KINDS['idle'].span_s(keys))} s"
    return ", ".join(f"{key} {value}" for key, value in keys.items() if isinstance(value, str))


def _end_of_point(acts: Sequence[Act]) -> str:
    """What ends each point of a sweep."""
    keys = acts[0].keys
    if acts[0].do == "idle":
        spans = [kinds.KINDS["idle"].span_s(act.keys) for act in acts]
        return f"{range_of(min(least for least, _ in spans), max(most for _, most in spans))} s"
    if ios := kinds.KINDS["load"].most_ios(keys):
        return f"{ios} I/Os"
    if "amount" in keys:
        return words.size(acts[0].amount_bytes or 0)
    swept = [act.keys["time"] for act in acts if "time" in act.keys]
    if swept:
        return f"{range_of(min(swept), max(swept))} s"
    return next((f"{entry.time_s:g} s" for entry in keys.get("until", ()) if entry.time_s), "")


def _load(act: Act, points: Sequence[Act] = ()) -> str:
    keys = act.keys
    values = [[one.keys[key] for one in points or (act,)] for key in ("threads", "qd")]
    mix = f"{keys['read']} % read " if 0 < keys["read"] < 100 and not points else ""
    size = (
        ""
        if points and "block" in act.point
        else f" {'mix' if len(keys['block']) > 1 else words.exact_size(keys['block'][0][0])}"
    )
    word = (
        ""
        if points and "read" in act.point
        else " read"
        if keys["read"] == 100
        else " write"
        if not keys["read"]
        else ""
    )
    return f"{mix}{KIND[keys['pattern']]}{size}{word} {'x'.join(range_of(min(of), max(of)) for of in values)}"


def times(price: cost.Cost, k: int) -> str:
    """Host time as a range, "0:11…0:54"."""
    least, most = price.time_s
    return range_words((k * least, k * most)) if most else "–"


def written(price: cost.Cost) -> str:
    """Bytes as a range, "246 MB…14.7 GB"."""
    if not price.written_bytes[1]:
        return "–"
    least, most = map(words.size, price.written_bytes)
    if least == most:
        return least
    number, unit = least.split()
    return f"{number}…{most}" if most.endswith(f" {unit}") else f"{least}…{most}"


def range_of(least: float, most: float) -> str:
    a, b = digits(least, 3), digits(most, 3)
    if max(least, most) >= 1000:
        a, b = f"{least:.0f}", f"{most:.0f}"
    return a if a == b else f"{a}…{b}"
