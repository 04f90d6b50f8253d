"""The forecast of a review, before anything is touched: its plans in order, each with its time and bytes written."""

import json
from collections.abc import Mapping, Sequence

from ssdrig.base import words
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable
from ssdrig.plan import cost
from ssdrig.reading.review_folder import Review
from ssdrig.run import dry_run
from ssdrig.run.budget import Budget
from ssdrig.run.review import order
from ssdrig.run.review.order import Item


def describe(
    args, review: Review | None, drive: Mapping, items: Sequence[Item], spent: Budget, rated_bytes, show: Progress
) -> None:
    """The table on stderr; of a dry run with --json an object on stdout."""
    show.say("\n".join(table(args.level, drive, items, spent, rated_bytes)))
    if args.dry_run and args.json:
        document = as_json(args.level, drive, items, spent, rated_bytes)
        print(json.dumps(document | {"review": str(review.folder) if review else None}), flush=True)


def table(
    level: str, drive: Mapping, items: Sequence[Item], spent: Budget, rated_bytes: float | None = None
) -> list[str]:
    """The lines of the table."""
    k, width = drive["time_dilation"], max([10, *(len(item.name) for item in items)])
    named = " ".join(printable(word) for word in (drive["model"], drive["serial"]) if word)
    rated = f", rated {words.size(rated_bytes)}" if rated_bytes else ""
    lines = [f"review of {named}, {words.size(drive['capacity_bytes'])}{rated}, level {level}"]
    lines.append(f"  {'plan':{width}} {'variant':8} {'time':>17} {'writes':>17}")
    for item in items:
        if item.prepared:
            lines.append(f"  {item.name:{width}} {item.variant or '':8} {_cost(item.shortened.cost, k)}")
            if item.leaves_out:
                saved = words.clock(k * order.saved_s(item.prepared, item.leaves_out))
                lines.append(f"    not again, as {item.behind} leaves the drive: {left_out(item)}; saves {saved}")
    whole = order.total(items)
    share = f" = {_percent(whole.written_bytes, rated_bytes)} % of the rated endurance" if rated_bytes else ""
    lines.append(f"  {'in all':{width}} {'':8} {_cost(whole, k)}{share}")
    whys: dict[str, list[str]] = {}
    for item in items:
        if not item.prepared:
            whys.setdefault(str(item.why), []).append(item.name)
    lines += [f"  {'' if why == 'done' else 'not run, '}{why}: {', '.join(names)}" for why, names in whys.items()]
    if spent.most_bytes is not None:
        lines.append(f"  budget: {words.size(spent.most_bytes)}, {words.size(spent.written_bytes)} of it written")
    return lines


def left_out(item: Item) -> str:
    """The steps that are left out: "purge, fill"."""
    assert item.prepared
    return ", ".join(dict.fromkeys(act.path for act in item.prepared.acts[: item.leaves_out] if not act.not_run))


def as_json(level: str, drive: Mapping, items: Sequence[Item], spent: Budget, rated_bytes: float | None) -> dict:
    """The same as an object: host seconds and bytes, each [least, most]."""
    k, whole = drive["time_dilation"], order.total(items)
    plans = []
    for item in items:
        row: dict = {"plan": item.name, "variant": item.variant, "sets": dict(item.sets), "why": item.why}
        if item.prepared:
            row |= _figures(item.shortened.cost, k)
            row |= {"behind": item.behind, "left_out": left_out(item).split(", ") if item.leaves_out else []}
        plans.append(row)
    document = {"dry_run": True, "level": level, "drive": dict(drive), "plans": plans, **_figures(whole, k)}
    shares = [round(100 * size / rated_bytes, 4) for size in whole.written_bytes] if rated_bytes else None
    document |= {"rated_bytes": rated_bytes, "share_percent": shares}
    return document | {"budget_bytes": spent.most_bytes, "written_before_bytes": spent.written_bytes}


def _figures(price: cost.Cost, k: int) -> dict:
    return {
        "host_s": [round(k * s) for s in price.time_s],
        "written_bytes": [round(size) for size in price.written_bytes],
        "most_bytes": round(price.most_bytes),
    }


def _cost(price: cost.Cost, k: int) -> str:
    return f"{dry_run.times(price, k):>17} {dry_run.written(price):>17}"


def _percent(sizes: tuple[float, float], rated_bytes: float) -> str:
    return "…".join(dict.fromkeys(f"{100 * size / rated_bytes:.3g}" for size in sizes))
