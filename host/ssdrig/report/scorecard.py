"""The scorecard of a review: the first figures of each section in one table, of the reviewed drive at each of its
over-provisionings and of the library's drives at the same one, with its place among them. Pure, from the members of the
library."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ssdrig.base import uncertain
from ssdrig.base.uncertain import Uncertain, differ
from ssdrig.plan import reviews
from ssdrig.report import cards, library
from ssdrig.report.library import Compared, Entry, Member
from ssdrig.views.context import plus_minus

MOST_VALUES = 4  # of each figure of a section; the others have cards
MOST_OTHERS = 6  # drives besides the reviewed one
LARGE_PERCENT = 10  # an error above it is explained
# the meaning of ± and of a difference (uncertain.differ)
ERRORS = (
    "± is half of the interval that holds the truth in 95 % of cases. A difference counts beyond both errors, as the"
    " root of the sum of their squares, widened for the number of drives that are compared, and beyond"
    f" {uncertain.LEAST_PERCENT:g} %."
)
# how another drive compares with the reviewed one: its mark, and the words for it
AGAINST = {
    "better": ("▲", "better than the reviewed drive beyond both errors"),
    "worse": ("▼", "worse beyond both errors"),
    "alike": ("≈", "no difference beyond both errors"),
    "unknown": ("?", "not compared: an error is not known"),
}


class Place(NamedTuple):
    """The places that the reviewed drive may have within the errors, from 1, and of how many."""

    first: int
    last: int
    count: int

    def __str__(self) -> str:
        of = f" of {self.count}"
        return f"{self.first}{of}" if self.first == self.last else f"{self.first} to {self.last}{of}"


def columns(members: Sequence[Member]) -> list[int]:
    """The members of the table: the reviewed drive at each over-provisioning, then others at its first one."""
    own = [i for i, member in enumerate(members) if member.own]
    others = [i for i, member in enumerate(members) if not member.own and own and member.op == members[own[0]].op]
    return own + others[:MOST_OTHERS]


def against(mine: Entry, other: Entry, better: str, count: int) -> str:
    """A key of AGAINST, `better`: "more" or "less" of the figure; "" where they cannot be compared."""
    if not better or mine.apart or other.apart or mine.value.value is None or other.value.value is None:
        return ""
    if not (mine.value.known and other.value.known):
        return "unknown"
    if not differ(mine.value, other.value, count):
        return "alike"
    return "better" if (other.value.value > mine.value.value) == (better == "more") else "worse"


def place(mine: Entry, others: Sequence[Entry], better: str, count: int) -> Place | None:
    """The place of the reviewed drive among those that it can be compared with; None without any. `count`: how many
    figures are compared, on the card as well."""
    compared = [how for other in others if (how := against(mine, other, better, count)) not in ("", "unknown")]
    if not compared:
        return None
    return Place(1 + compared.count("better"), 1 + len(compared) - compared.count("worse"), 1 + len(compared))


def lines(members: Sequence[Member]) -> list[tuple[int, Compared]]:
    """The figures of the table, each with the number of its section."""
    out = []
    for number, section in enumerate(reviews.sections()):
        for of in section.figures:
            for word in of.value[:MOST_VALUES]:
                one = library.compared(of, word, members)
                if one is not None and any(members[e.member].own and e.value.value is not None for e in one.entries):
                    out.append((number, one))
    return out


def table(members: Sequence[Member]) -> str:
    """The table, and where its large errors come from; "" without a figure."""
    shown, rows = columns(members), lines(members)
    if not rows:
        return ""
    heads = "".join(
        f'<th scope="col"{" class=top" * members[i].own} data-run="{i}"><span style="color:var({look["colour"]})"'
        f' aria-hidden="true">{look["glyph"]}</span> {escape(library.short(members, i, members[i].own))}</th>'
        for i in shown
        for look in [library.look_of(members, i)]
    )
    body = "".join(_row(number, one, shown, members) for number, one in rows)
    left = sum(not member.own and member.op == members[shown[0]].op for member in members) - sum(
        not members[i].own for i in shown
    )
    at_op = f" Others at {members[shown[0]].op}." if len(shown) > sum(member.own for member in members) else ""
    more = f" {left} more drives are in the cards." if left > 0 else ""
    legend = "; ".join(f"{mark} {words}" for mark, words in AGAINST.values())
    entries = [
        e for _, one in rows for e in one.entries if e.member in shown and not (e.apart and members[e.member].own)
    ]
    bare = any(e.value.value is not None and not e.value.known for e in entries)
    without = " The error of a figure without ± is not known." if bare else ""
    notes = f"{legend}. ★ the best, and all that do not differ from it.{at_op}{more} {ERRORS}{without}"
    return (
        '<div class="scroll"><table class="scorecard"><thead><tr><th scope="col">Figure</th><th scope="col">Place</th>'
        f'{heads}</tr></thead><tbody>{body}</tbody></table></div><p class="soft">{escape(notes)}</p>{causes(members)}'
    )


def _row(number: int, one: Compared, shown: Sequence[int], members: Sequence[Member]) -> str:
    entries = {entry.member: entry for entry in one.entries}
    mine = next(entries[i] for i in shown if i in entries and members[i].own)
    alike = [entries[i] for i in entries if not members[i].own and members[i].op == members[mine.member].op]
    count = sum(entry.value.value is not None and not entry.apart for entry in one.entries)  # as on its card
    of = place(mine, alike, one.better, count)
    comparable = [entry for entry in (mine, *alike) if entry.value.value is not None and not entry.apart]
    bars = [cards.Bar(e.member, "", "", e.value.value, "", "", "", doubt=e.value.error) for e in comparable]
    best = cards.best(bars, one.better, count)
    cells = []
    for i in shown:
        entry = entries.get(i)
        how = against(mine, entry, one.better, count) if entry and not members[i].own else ""
        cells.append(_cell(i, entry, how, i in best, members[i].own))
    unit = f' <span class="unit">{one.unit}</span>' if one.unit else ""
    places = f' data-place="{of.first} {of.last} {of.count}"' if of else ""
    return (
        f'<tr data-key="{one.key}"><th scope="row"><a href="#s{number}">{one.title}</a>{unit}</th>'
        f"<td{places}>{of or '–'}</td>{''.join(cells)}</tr>"
    )


def _cell(i: int, entry: Entry | None, how: str, best: bool, own: bool) -> str:
    kind = " ".join(filter(None, ("top" * own, "best" * best, "apart" * bool(entry and entry.apart))))
    attributes = f' data-run="{i}"' + (f' class="{kind}"' if kind else "")
    if entry is None or entry.value.value is None:
        why = entry.value.why if entry is not None else "its plan was not run"
        return f'<td{attributes} title="{escape(why)}">–</td>'
    if entry.apart and own:
        return f'<td{attributes} title="{escape(entry.apart)}">not claimed</td>'
    title = f' title="not comparable: {escape(entry.apart)}"' if entry.apart else ""
    mark, words = AGAINST.get(how, ("", ""))
    sign = f'\u00a0<i data-against="{how}" aria-hidden="true">{mark}</i><span class="sr"> {words}</span>' if how else ""
    star = "★\u00a0" * best
    value = plus_minus(entry.value).replace("± ", "±\u00a0")  # a narrow cell breaks before the sign alone
    apart = '<span class="sr"> not comparable</span>' if entry.apart else ""  # struck through for the eye alone
    return f"<td{attributes}{title}>{star}{value}{apart}{sign}</td>"


def causes(members: Sequence[Member]) -> str:
    """Where the errors of the reviewed drive above LARGE_PERCENT come from, folded; "" without any."""
    out = []
    for _, one in lines(members):
        for entry in one.entries:
            if members[entry.member].own and entry.cause and not entry.apart and _is_large(entry.value):
                unit = f" {one.unit}" if one.unit else ""
                words = f"{plus_minus(entry.value)}{unit}: {entry.cause}"
                out.append(f"<li>{one.title}, {escape(members[entry.member].op)}: {escape(words)}</li>")
    title = f"What errors above {LARGE_PERCENT} % come from"
    return f'<details class="causes"><summary>{title}</summary><ul>{"".join(out)}</ul></details>' if out else ""


def _is_large(value: Uncertain) -> bool:
    return value.known and 100 * (value.error or 0.0) > LARGE_PERCENT * abs(value.value or 0.0)
