"""Price, capacity and endurance of the drives of a library: what a unit of money buys, what a drive write costs, and
how many of the reviewed drive do the work of another one. Pure, from the members of the library."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ssdrig.base.uncertain import UNKNOWN, Uncertain, ratio
from ssdrig.plan import reviews
from ssdrig.report import library, price
from ssdrig.report.library import Entry, Member
from ssdrig.views.context import Cell, doubt_at, figure, number_table, plus_minus, uncertain_at

# what the price is set against: the first figure of the library's table that has IOPS of random writes
LOAD = next(of for section in reviews.sections() for of in section.figures if of.plan == "consistency")
NO_RATING = "its rated endurance is not known"
SCALED = "SCALED: it does not use all that the price buys"
NO_PRICES = (
    "No price is stated. A table [price] in review.toml, a drive's model with its price on each line, gives figures per"
    " unit of money, of all drives of the library."
)
ASSUMED = (
    "Several drives: I/Os are spread evenly over them without parity, each at the queue depth of the test, and a"
    " controller between them costs and draws nothing. So IOPS, power, capacity, price and endurance add up, and a"
    " latency is that of one drive. A drive write is one of the capacity that is used."
)
MOST_DRIVES = 1000


class Several(NamedTuple):
    """Some drives as one. IOPS, P99 in µs, W, used capacity in bytes, price, price of a drive write and of a TB
    written, in the currency of the reviewed drive; `low` to `high`: how many it takes within the errors."""

    low: int
    high: int
    iops: Uncertain
    p99_us: Uncertain
    power_W: Uncertain
    iops_per_W: Uncertain
    capacity_bytes: Uncertain
    cost: Uncertain
    per_drive_write: Uncertain
    per_TB: Uncertain


def used_bytes(member: Member) -> Uncertain:
    """The capacity that a member uses at its over-provisioning."""
    run = next(iter(member.tables.values()))
    header = run.data.header
    tested = (member.tables.get(LOAD.plan) or run).data.header["method"].get("tested_bytes")
    capacity = tested or header["drive"].get("capacity_bytes")
    return Uncertain(float(capacity), 0.0) if capacity else Uncertain(None, None, UNKNOWN, "its capacity is not known")


def drive_writes(member: Member) -> Uncertain:
    """How often the used capacity can be written by the rated endurance."""
    if not member.rated_bytes:
        return Uncertain(None, None, UNKNOWN, NO_RATING)
    used = used_bytes(member)
    return used if used.value is None else Uncertain(member.rated_bytes / used.value, 0.0)


def rated_TB(member: Member) -> Uncertain:
    """The rated endurance."""
    if not member.rated_bytes:
        return Uncertain(None, None, UNKNOWN, NO_RATING)
    return Uncertain(member.rated_bytes / 1e12, 0.0)


def measured(member: Member, word: str) -> Uncertain:
    """A figure of random writes on the full drive; null where it is not to be trusted."""
    if LOAD.plan not in member.tables:
        return Uncertain(None, None, UNKNOWN, f"{LOAD.plan} was not run on it")
    run = member.tables[LOAD.plan]
    if doubt := doubt_at(run, LOAD.of, dict(LOAD.where), word, LOAD.window):
        return Uncertain(None, None, UNKNOWN, f"not claimed, {doubt}")
    return uncertain_at(run, LOAD.of, dict(LOAD.where), word, LOAD.window)


def of_price(member: Member, figure: Uncertain) -> Uncertain:
    """A figure to be set against the price; null of a SCALED run, which uses a part of the drive."""
    scaled = any(run.plan.scaled for run in member.tables.values())
    return Uncertain(None, None, UNKNOWN, SCALED) if scaled else figure


def currency(drives: Sequence[Member]) -> str | None:
    """That of the reviewed drive's price; without one the first that another drive has."""
    priced = sorted((member for member in drives if member.price), key=lambda member: not member.own)
    return priced[0].price.currency if priced and priced[0].price else None


def section(drives: Sequence[Member], note: str = "") -> str:
    """The section of the page: cards, and the table of several drives as one.

    note: the reviewer's, on where the prices come from
    """
    money = currency(drives)
    out = ['<section aria-labelledby="price-h"><h2 id="price-h">Price and capacity</h2>']
    if money is None:
        return "".join(out) + f'<p class="soft">{escape(NO_PRICES)}</p>{next_to(drives, "")}</section>'
    stated = dict.fromkeys(f"{member.drive} {member.price}" for member in drives if member.price)
    out.append(f'<p class="soft">Prices: {escape("; ".join(stated))}. {escape(note)}</p>')
    shown, missing = cards(drives, money)
    cards_ = f'<div class="cards">{"".join(shown)}</div>' if shown else ""
    return f"{''.join(out)}{cards_}{library.without(missing)}{next_to(drives, money)}</section>"


def cards(drives: Sequence[Member], money: str) -> tuple[list[str], dict[str, str]]:
    """Figures per unit of money, one card each, of all members; and those that no drive has, with the reason."""
    titles = {
        "gb-per-money": ("Capacity for the price", f"GB/{money}", "more"),
        "iops-per-money": ("Random writes on a full drive for the price", f"IOPS/{money}", "more"),
        "cost-drive-write": ("Cost of a drive write, by the rated endurance", f"{money}", "less"),
        "cost-TB": ("Cost of a TB written, by the rated endurance", f"{money}/TB", "less"),
    }
    reviewed = library.reviewed_table(drives, LOAD.plan)
    entries: dict[str, list[Entry]] = {key: [] for key in titles}
    for i, member in enumerate(drives):
        run = member.tables.get(LOAD.plan)
        unlike = library.apart(run, reviewed) if run and reviewed else None
        values = {
            "gb-per-money": price.per_unit(of_price(member, used_bytes(member).scaled(1e-9)), member.price, money),
            "iops-per-money": price.per_unit(of_price(member, measured(member, "iops")), member.price, money),
            "cost-drive-write": price.of_unit(member.price, of_price(member, drive_writes(member)), money),
            "cost-TB": price.of_unit(member.price, of_price(member, rated_TB(member)), money),
        }
        for key, value in values.items():
            entries[key].append(Entry(i, value, unlike if key == "iops-per-money" else None))
    of = {key: library.bars(key, *titles[key], entries[key], drives) for key in titles}
    return [of[key] for key in of if of[key]], {titles[key][0]: entries[key][0].value.why for key in of if not of[key]}


def several(member: Member, low: int, high: int, money: str) -> Several:
    """`high` drives of a member as one."""
    return Several(
        low,
        high,
        measured(member, "iops").scaled(high),
        measured(member, "lat_p99"),
        measured(member, "W").scaled(high),
        measured(member, "iops/W"),
        used_bytes(member).scaled(high),
        price.of_unit(member.price, Uncertain(1.0, 0.0), money).scaled(high),
        price.of_unit(member.price, of_price(member, drive_writes(member)), money).scaled(high),
        price.of_unit(member.price, of_price(member, rated_TB(member)), money),
    )


def needed(member: Member, other: Member) -> tuple[int, int] | str:
    """How many of a member do as many random writes a second as the other: the least and the most within both errors;
    in words why it is not known."""
    count = share(measured(other, "iops"), measured(member, "iops"))
    if count.value is None or count.error is None:
        return count.why
    low, high = (max(1, math.ceil(count.value + sign * count.error)) for sign in (-1, 1))
    return (low, high) if high <= MOST_DRIVES else f"more than {MOST_DRIVES}"


def share(of: Uncertain, own: Uncertain) -> Uncertain:
    """One rate as a multiple of another; the reason of the one that is not known."""
    return of if of.value is None else own if own.value is None else ratio(of, own)


def next_to(drives: Sequence[Member], money: str) -> str:
    """A table: each other drive, and as many of the reviewed one, at each of its over-provisionings, as do its work."""
    own = [member for member in drives if member.own and LOAD.plan in member.tables]
    reviewed = library.reviewed_table(drives, LOAD.plan)
    lines: list[tuple[str, Sequence[Cell]]] = []
    for i, other in enumerate(drives):
        run = other.tables.get(LOAD.plan)
        if other.own or run is None or reviewed is None or library.apart(run, reviewed):
            continue
        lines.append((f"1 × {library.short(drives, i)}", _cells(several(other, 1, 1, money), money)))
        for at, member in enumerate(drives):
            if not any(member is one for one in own):
                continue
            count, name = needed(member, other), library.short(drives, at)
            if isinstance(count, str):
                lines.append((f"{name}: {count}", [Cell(None, None, count)] * len(_heads(money))))
                continue
            words = f"{count[1]}" if count[0] == count[1] else f"{count[0]} to {count[1]}"
            lines.append((f"as fast: {words} × {name}", _cells(several(member, *count, money), money)))
    if not lines:
        return ""
    return (
        "<details><summary>Several of the reviewed drive next to one of the others</summary>"
        f'<p class="soft">{escape(ASSUMED)}</p>{number_table("Drives", _heads(money), lines)}</details>'
    )


def _heads(money: str) -> list[tuple[str, str]]:
    shared = [("Random writes", "IOPS"), ("P99 latency", "µs"), ("Power", "W"), ("IOPS per watt", ""), ("Used", "GB")]
    return [*shared, ("Price", money), ("A drive write", money), ("A TB written", money)] if money else shared


def _cells(of: Several, money: str) -> list[Cell]:
    values = [of.iops, of.p99_us, of.power_W, of.iops_per_W, of.capacity_bytes.scaled(1e-9)]
    if money:
        values += [of.cost, of.per_drive_write, of.per_TB]
    return [_cell(value) for value in values]


def _cell(value: Uncertain) -> Cell:
    """A figure with its error, or why it is not known."""
    return Cell(None, None, value.why) if value.value is None else Cell(words=plus_minus(value))


def sentence(drives: Sequence[Member]) -> str:
    """What the reviewed drive costs for its capacity and its endurance, in words; "" without a price."""
    money = currency(drives)
    first = next((member for member in drives if member.own and member.price), None)
    if money is None or first is None:
        return ""
    capacity = price.per_unit(of_price(first, used_bytes(first).scaled(1e-9)), first.price, money)
    written = price.of_unit(first.price, of_price(first, rated_TB(first)), money)
    parts = [f"{first.price}"]
    parts += [f"{figure(capacity.value)} GB for each {money}"] if capacity.value is not None else []
    parts += (
        [f"{figure(written.value)} {money} for each TB of its rated endurance"] if written.value is not None else []
    )
    return ", ".join(parts) + "."
