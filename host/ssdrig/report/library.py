"""The library of a review: the same figures of earlier runs, in cards. A member is a drive at one over-provisioning: of
the review itself, of an earlier one, or a single run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import arguments
from ssdrig.base.errors import JournalError, SsdrigError, UsageError
from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import size
from ssdrig.plan import grammar, reviews, shows
from ssdrig.plan import headline as plan_headline
from ssdrig.plan.step import Step
from ssdrig.reading import errors, library_file, review_folder, table
from ssdrig.reading.row import Table
from ssdrig.report import about, price, words
from ssdrig.report import publication as publications
from ssdrig.report.cards import Bar, card
from ssdrig.report.loads import group
from ssdrig.report.price import Price
from ssdrig.report.verdict import ENDED
from ssdrig.runs import journal, parts
from ssdrig.views import headline
from ssdrig.views.context import doubt_at, label, plus_minus, uncertain_at, unit, value_at
from ssdrig.views.svg import look, look_of_variant
from ssdrig.views.terms import BY_KEY

MOST_RUNS, MOST_FILES = 100, 50  # of the library, the latest first
IMPORTED = " imported"  # after the name of a library file
REFERENCE = Path(__file__).with_name("reference.ssdlib")  # SIMULATED drives, by host/docs/make_reference.py


@dataclass
class Facts:
    """What the runs of one folder or file have in common besides what their folders hold.

    where: the folder of the review, the run itself, or the file that they were imported from
    rated_bytes: rated endurance of the drive
    price: as the file that they came in states it
    imported: they are summaries from a file"""

    where: str
    rated_bytes: float | None = None
    price: Price | None = None
    imported: bool = False


@dataclass
class Member:
    """`facts`: of the folder or file that it comes from; `tables`: of its runs by the plan's name; `own`: it belongs to
    the review of the page."""

    facts: Facts
    drive: str
    op: str
    began: str
    tables: dict[str, Table]
    own: bool = False
    price: Price | None = None
    rated_bytes: float | None = None

    @property
    def label(self) -> str:
        return f"{self.drive}, {self.op}"


def members(
    tables: Sequence[tuple[Facts, Table]], own: Facts, prices: Mapping[str, Price] | None = None
) -> list[Member]:
    """The members that runs make, those of `own` first, then drive by drive, the latest first. Where a member has two
    runs of one plan, the one that can be ranked with `own`'s is taken.

    tables: each run with where it comes from
    prices: by model; they come before that of a file
    """
    members_of: dict[tuple[str, str, str], Member] = {}
    reviewed_of = {one.plan.name: one for facts, one in tables if facts is own}
    for facts, one in tables:
        op, header = op_of(one), one.data.header["drive"]
        drive = str(header.get("model") or "unknown drive")
        member = members_of.get((facts.where, drive, op))
        if member is None:
            member = Member(facts, drive, op, about.started(one.data), {}, facts is own)
            member.price = (prices or {}).get(drive) or facts.price
            member.rated_bytes = facts.rated_bytes or header.get("rated_write_bytes")
            members_of[facts.where, drive, op] = member
        present, reviewed = member.tables.get(one.plan.name), reviewed_of.get(one.plan.name)
        if present is None or (reviewed and apart(present, reviewed) and not apart(one, reviewed)):
            member.tables[one.plan.name] = one
    latest = sorted(members_of.values(), key=lambda entry: entry.began, reverse=True)
    drives = [entry.drive for entry in latest]
    return sorted(latest, key=lambda entry: (not entry.own, drives.index(entry.drive), entry.op != words.DEFAULT_OP))


def op_of(run: Table) -> str:
    """Over-provisioning of a run in words: the range of the consistency test, or a share of the raw NAND. The range
    that another plan needs for its question, such as the 64 MiB of idle-wake, does not count."""
    header = run.data.header
    is_op = run.plan.name == "consistency" or str(run.plan.params.get("range", "")).startswith("raw")
    method, drive = header["method"], header["drive"]
    tested, capacity = method.get("tested_bytes"), drive.get("capacity_bytes")
    of_user = 100 * (1 - tested / capacity) if tested and capacity else None
    conditions = {
        "op_percent": method.get("op_percent") if is_op else None,
        "op_user_percent": of_user if run.plan.name == "consistency" else None,
        "raw_nand_assumed": bool(drive.get("raw_nand_assumed")),
    }
    return words.op(conditions)


def read(review: Path, against: Sequence[Path] | None) -> tuple[list[tuple[Facts, Table]], list[str]]:
    """The runs of the library with where each comes from, and why some are left out. `against`: run folders, folders of
    reviews, and library files; None: all complete runs next to the review, and the drives imported there. Without any
    of another drive, the SIMULATED reference drives of the package."""
    wanted = {entry.plan for entry in reviews.entries()}
    notes, tables, facts_of = [], [], dict[Path, Facts]()
    folders, left = _folders(review, against)
    if left:
        notes.append(f"{left} older runs are left out of the library: it has the latest {MOST_RUNS}")
    for folder in folders:
        try:
            header = journal.run_header(folder)
            plan = (header.get("plan") or {}).get("name")
            if plan not in wanted or (against is None and journal.state(parts.of(folder)[-1]) != "complete"):
                continue
            of_review = folder.parent if (folder.parent / parts.REVIEW).is_file() else folder
            if of_review not in facts_of:
                facts_of[of_review] = facts_of_folder(of_review)
            tables.append((facts_of[of_review], table.load(folder)))
        except SsdrigError as error:
            notes.append(f"{folder} is left out of the library: {error}")
    if against is None:
        paths = sorted(imported_files(review.absolute().parent), key=_imported_ns, reverse=True)
        if len(paths) > MOST_FILES:
            left = len(paths) - MOST_FILES
            notes.append(f"{left} files are left out of the library: it has the {MOST_FILES} imported last")
        paths = sorted(paths[:MOST_FILES])
    else:
        paths = [path for path in against if path.suffix == library_file.SUFFIX]
    if against is None and not paths and not tables:
        paths = [REFERENCE]
    known = {one.data.header["run"] for _, one in tables} | _runs_of(review)
    for path in paths:
        try:
            shared = library_file.read(path)
        except JournalError as error:
            if against is not None:
                raise
            notes.append(f"{path} is left out of the library: {error}")
            continue
        facts = facts_of_file(path, shared)
        taken = [one for one in shared.tables if one.plan.name in wanted]
        twins = [one for one in taken if one.data.header["run"] in known]
        if twins:
            names = ", ".join(one.data.header["run"] for one in twins)
            notes.append(f"{path.name}: {names} left out, the library has it already")
        tables += [(facts, one) for one in taken if one.data.header["run"] not in known]
        known |= {one.data.header["run"] for one in taken}
    return tables, notes


def _imported_ns(path: Path) -> int:
    """When a file was imported; 0 where that is not known."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _runs_of(review: Path) -> set[str]:
    """The names of the runs in the folder of a review."""
    try:
        return {run.name for run in review.iterdir()}
    except OSError:
        return set()


def imported_files(runs: Path) -> list[Path]:
    """The library files that were imported into a folder of runs."""
    return sorted((runs / library_file.FOLDER).glob(f"*{library_file.SUFFIX}"))


def facts_of_folder(folder: Path) -> Facts:
    """The rated endurance and the price of the drive of a review, from its folder; of a single run its name alone.
    Raises JournalError, UsageError."""
    if not (folder / parts.REVIEW).is_file():
        return Facts(folder.name)
    review, publication = review_folder.read(folder), publications.read(folder)
    model = str(review.document["drive"].get("model") or "unknown drive")
    return Facts(folder.name, review.document.get("rated_bytes"), publication.prices.get(model))


def facts_of_file(path: Path, shared: library_file.Shared) -> Facts:
    """What a library file states of its runs, without a price that cannot be read."""
    try:
        stated = price.parse(shared.price) if shared.price else None
    except UsageError:
        stated = None
    return Facts(path.name, shared.rated_bytes, stated, imported=True)


def _folders(review: Path, against: Sequence[Path] | None) -> tuple[list[Path], int]:
    """The runs besides those of the review, and how many more there are. Raises JournalError for a path of `against`
    that is not a run."""
    if against is None:
        try:
            runs = parts.all_runs(review.absolute().parent)
        except OSError:
            return [], 0
        others = [run for run in runs if run.parent.name != review.name]
        return others[:MOST_RUNS], max(0, len(others) - MOST_RUNS)
    out: list[Path] = []
    for folder in against:
        if folder.suffix == library_file.SUFFIX:
            continue
        if (folder / parts.REVIEW).is_file():
            out += [one.run for one in review_folder.done(review_folder.read(folder)).values() if one.run]
        elif (folder / "run.json").is_file():
            out.append(folder)
        else:
            do = f"name run folders, folders of reviews, or library files (*{library_file.SUFFIX})"
            raise JournalError(f"a run or a review in {folder}, for --against", "neither", do)
    return [run for run in out if run.absolute().parent != review.absolute()], 0


def apart(run: Table, reviewed: Table) -> str | None:
    """Why a run cannot be ranked with the reviewed one; None if it can."""
    if run.data.state != "complete" or run.data.why:
        return f"{ENDED.get(run.data.state, run.data.state)}{f', {run.data.why}' if run.data.why else ''}"
    own, other = _params(reviewed.plan), _params(run.plan)
    if unlike := [key for key in own if key in other and own[key] != other[key]]:
        return "; ".join(f"{key} {other[key]}, reviewed run {own[key]}" for key in unlike)
    if not _does_the_same(run.plan, reviewed.plan):
        return "of another version of the plan"
    return None


OF_OP = ("range", "after")  # parameters that make another over-provisioning


def _params(plan: grammar.Plan) -> dict:
    """The parameters that must be equal in runs that are ranked."""
    return {key: value for key, value in plan.params.items() if key not in OF_OP}


def _does_the_same(plan: grammar.Plan, reviewed: grammar.Plan) -> bool:
    """Whether two versions of a plan have the same steps; titles, sources, comments and views may differ."""
    if plan.text == reviewed.text:
        return True
    sets = {key: value for key, value in reviewed.params.items() if key in OF_OP and key in plan.params}
    try:
        alike = grammar.read(plan.text, "plan", plan.variant, {**plan.params, **sets}) if sets else plan
    except UsageError:
        return False
    return _steps(alike.steps) == _steps(reviewed.steps)


def _steps(steps: Sequence[Step]) -> list:
    """What the steps do: values with defaults, not the words that a plan has for them."""
    return [(step.path, step.do, step.keys, _steps(step.steps)) for step in steps]


def cards(section: reviews.Section, members_of: Sequence[Member]) -> str:
    """The cards of a section: for each figure a bar for each member that has it, the best first, those that cannot be
    ranked last."""
    out, missing = [], dict[str, str]()
    for of in section.figures:
        for word in of.value:
            if (one := compared(of, word, members_of)) is None:
                continue
            if shown := _card(one, members_of):
                out.append(shown)
            else:
                missing[unescape(one.title)] = next(entry.value.why for entry in one.entries)
    label = f"{section.title}: arrow keys go from bar to bar"
    bars_of = f'<div class="cards" role="toolbar" aria-label="{escape(label)}">{"".join(out)}</div>' if out else ""
    return bars_of + without(missing)


def without(why_of: Mapping[str, str]) -> str:
    """The figures that have no card, because no drive has a value, by their reasons; "" without any.

    why_of: by their titles, "SLC cache, empty drive: Cache size"
    """
    reasons: dict[str, dict[str, list[str]]] = {}
    for title, why in why_of.items():
        of, colon, name = title.rpartition(": ")
        names = reasons.setdefault(why or "the reason is not known", {}).setdefault(of + colon, [])
        names.append(headline.in_a_sentence(name) if of else name)
    lines = []
    for why, of_title in reasons.items():
        figures = "; ".join(title + arguments.listed(names, "and") for title, names in of_title.items())
        lines.append(f"{figures} ({why})")
    return f'<p class="soft">No value: {escape(". ".join(lines))}.</p>' if lines else ""


def _card(one: "Compared", drives: Sequence[Member]) -> str:
    return bars(one.key, one.title, one.unit, one.better, one.entries, drives)


class Compared(NamedTuple):
    """A figure of several members. `title`: as HTML; `better`: "more", "less" or ""; `entries`: in `unit`."""

    key: str
    title: str
    unit: str
    better: str
    entries: "list[Entry]"


class _Reading(NamedTuple):
    """A figure of a run. `name`: in words; `doubt`: why it is not claimed; `cause`: of its error."""

    value: Uncertain
    unit: str
    better: str
    name: str
    doubt: str | None
    cause: str


def compared(of: reviews.Figure, word: str, drives: Sequence[Member]) -> Compared | None:
    """A figure of a section of all members that ran its plan; None where the reviewed drive did not, or where its link
    is another than the figure's."""
    if (reviewed := reviewed_table(drives, of.plan)) is None or _unlike(of.link, reviewed.data.header["drive"]):
        return None
    readings = {i: reading for i, member in enumerate(drives) if (reading := _of_member(member, of, word)) is not None}
    first = next(iter(readings.values()))
    values = [one.value.value for one in readings.values()]
    scale, name = _scale(word, first.unit, values)
    entries = [
        Entry(i, one.value.scaled(scale), apart(drives[i].tables[of.plan], reviewed) or one.doubt, one.cause)
        for i, one in readings.items()
    ]
    unit_name = "" if name in first.name else name
    title = f"{escape(of.title)}: {escape(first.name)}"
    return Compared(f"{of.plan}-{word}", title, unit_name, of.better or first.better, entries)


def _unlike(link: str, drive: Mapping) -> bool:
    """Whether a drive is known to have another link than a figure needs; "": any."""
    own = str(drive.get("link") or "").partition(" ")[0] or {"NVMe": "PCIe"}.get(str(drive.get("interface")), "")
    return bool(link and own in reviews.LINKS and own != link)


def _scale(word: str, name: str, values: Sequence[float | None]) -> tuple[float, str]:
    """The factor and the unit in which the values of one figure read best."""
    if word in shows.VALUES:
        shown = unit(word, values)
        return shown.scale, shown.name
    top = max((abs(value) for value in values if value is not None), default=0.0)
    scales = (scale for scale in headline.SCALES.get(name, ()) if top >= scale[0])
    _, factor, shown_name = next(scales, (0, 1, name))
    return factor, shown_name


def _of_member(member: Member, of: reviews.Figure, word: str) -> _Reading | None:
    """A figure of a member; None where it did not run the plan, or where the figures of a stranger cannot be read."""
    if (run := member.tables.get(of.plan)) is None:
        return None
    try:
        return _reading(run, of, word)
    except Exception:  # whatever a stranger's figures raise; check_readable() refuses them at import
        if member.facts.imported:
            return None
        raise


def check_readable(run: Table) -> None:
    """Read each figure that the sections show of this plan. Raises whatever a stranger's figures raise."""
    for of in (of for section in reviews.sections() for of in section.figures if of.plan == run.plan.name):
        for word in of.value:
            reading = _reading(run, of, word)
            headline.in_words(reading.value, reading.unit)


def _reading(run: Table, of: reviews.Figure, word: str) -> _Reading:
    """A value of a step by the plan's words, or a fact that a view of the plan has of it."""
    where = dict(of.where)
    if word in shows.VALUES:
        key, name = shows.VALUES[word]
        term = BY_KEY.get(key)
        value = uncertain_at(run, of.of, where, word, of.window)
        cause = errors.cause(key, value_at(run, of.of, where, word, of.window)[1])
        doubt = _doubt(run, of, word) or headline.as_large(value, name)
        return _Reading(value, name, term.better if term else "", label(word), doubt, cause)
    wanted = plan_headline.Figure("", of.of, tuple(where.items()), of.window or "", word)
    filled = headline.fill(run, wanted)
    fact = filled.fact or headline.Fact(headline.lacking(filled.why))
    doubt = filled.why if not filled.text and fact.of.value is not None else None
    name = filled.name.removesuffix(f" during {of.of}")
    return _Reading(fact.of, fact.unit, fact.better, f"{name[:1].upper()}{name[1:]}", doubt, "")


class Entry(NamedTuple):
    """A bar of a card. `member`: its place in the library; `value`: in the unit of the card; `apart`: why it cannot be
    ranked; `cause`: of its error."""

    member: int
    value: Uncertain
    apart: str | None = None
    cause: str = ""


def reviewed_table(drives: Sequence[Member], plan: str) -> Table | None:
    """The reviewed drive's run of a plan, the first of several."""
    return next((member.tables[plan] for member in drives if member.own and plan in member.tables), None)


def bars(key: str, title: str, unit_name: str, better: str, entries: Sequence[Entry], drives: Sequence[Member]) -> str:
    """A card of one figure of several members, the best first; "" where none has it.

    title: as HTML
    better: "more", "less" or ""
    """
    if all(entry.value.value is None for entry in entries):
        return ""
    sign = -1 if better == "more" else 1
    ordered = sorted(
        entries, key=lambda one: (one.value.value is None, one.apart is not None, sign * (one.value.value or 0))
    )
    bars, names = [], names_of(drives, [entry.member for entry in entries])
    for i, value, unlike, _ in ordered:
        member = drives[i]
        named = member.label + ("" if member.own else f", {member.began}")
        aside = "" if value.value is not None else escape(value.why)
        style = look_of(drives, i)
        text, sign, error = plus_minus(value).partition(" ± ")
        bar = Bar(i, named, names[i], value.value, text, style["colour"], style["glyph"], aside, unlike)
        bars.append(bar._replace(top=member.own, doubt=value.error, error=sign + error))
    return card(key, title, unit_name, better, bars)


def property_of(i: int) -> str:
    """The custom property of a page that has the colour of a member."""
    return f"--m{i}"


def colour_of(drives: Sequence[Member], i: int) -> str:
    """The colour of a member's drive, a custom property of report.css, --review for the reviewed one."""
    number, _ = _place_of(drives, i)
    return "--review" if number == 0 and drives[i].own else look(number - 1)["colour"]


def look_of(drives: Sequence[Member], i: int) -> dict:
    """How a member is drawn in all cards and plots of the page: colour and shape by its drive, filled or hollow and the
    dash of lines by its over-provisioning."""
    return look_of_variant(*_place_of(drives, i)) | {"colour": property_of(i)}


def _place_of(drives: Sequence[Member], i: int) -> tuple[int, int]:
    """The numbers of a member's drive and of its over-provisioning, from 0. Another member with the same drive and
    over-provisioning counts as a separate drive."""
    keys, counts = [], dict[tuple, int]()
    for member in drives:
        alike = (member.own, member.drive, member.op)
        counts[alike] = counts.get(alike, 0) + 1
        keys.append((member.own, member.drive, counts[alike]))
    ops = [member.op for member in drives]
    return list(dict.fromkeys(keys)).index(keys[i]), list(dict.fromkeys(ops)).index(ops[i])


def comparable(plan: str, reviewed: Table, drives: Sequence[Member]) -> list[int]:
    """The places of the members besides the reviewed drive whose run of a plan can be drawn in one plot with it."""
    return [
        i
        for i, member in enumerate(drives)
        if not member.own and plan in member.tables and apart(member.tables[plan], reviewed) is None
    ]


def _doubt(run: Table, of: reviews.Figure, word: str) -> str | None:
    """What of the trust strip is bad that a figure rests on."""
    return doubt_at(run, of.of, dict(of.where), word, of.window)


def short(drives: Sequence[Member], i: int, with_op: bool = True) -> str:
    """The name of a member in a bar, numbered where two are alike. `with_op`: with its over-provisioning."""
    label_of = [f"{_model(drives, at)}, {drive.op}" for at, drive in enumerate(drives)]
    alike, name = label_of.count(label_of[i]), label_of[i] if with_op else _model(drives, i)
    return f"{name} ({label_of[: i + 1].count(label_of[i])})" if alike > 1 else name


def names_of(drives: Sequence[Member], shown: Sequence[int]) -> dict[int, str]:
    """The names of the members of one card or plot, without their over-provisioning where all have their own one."""
    with_op = any(drives[i].op != words.DEFAULT_OP for i in shown)
    return {i: short(drives, i, with_op) for i in shown}


def _model(drives: Sequence[Member], i: int) -> str:
    """The name of a member's drive. Where all drives are SIMULATED, as the head of the page states, they are without
    it, except the reference drives."""
    name = drives[i].drive
    alike = all(drive.drive.startswith("SIMULATED ") for drive in drives)
    return name.removeprefix("SIMULATED ") if alike and not name.startswith("SIMULATED reference") else name


def _device(member: Member) -> str:
    """What the runs of a member report of its drive."""
    header = next(iter(member.tables.values())).data.header["drive"]
    known = [size(header["capacity_bytes"])] if header.get("capacity_bytes") else []
    known += [str(header[key]) for key in ("link", "interface") if header.get(key)][:1]
    known += [f"firmware {header['firmware']}"] if header.get("firmware") else []
    return ", ".join([*known, *([str(member.price)] if member.price else [])]) or "–"


def controls(drives_of: Sequence[Member]) -> str:
    """Which drives and which over-provisioning are shown: chosen independently."""
    drives, ops = (list(dict.fromkeys(getattr(member, key) for member in drives_of)) for key in ("drive", "op"))
    return (
        '<form class="controls" aria-label="Drives and over-provisioning shown">'
        + group("drive", "Drive", drives)
        + group("op", "Over-provisioning", ops)
        + "</form>"
    )


def data(library: Sequence[Member]) -> dict:
    """What review.js needs: of each member the numbers of its drive and of its over-provisioning."""
    drives, ops = (list(dict.fromkeys(getattr(member, key) for member in library)) for key in ("drive", "op"))
    return {"members": [[drives.index(member.drive), ops.index(member.op)] for member in library]}


def listed(library: Sequence[Member], notes: Sequence[str]) -> str:
    """What the library consists of."""
    rows = "".join(
        f'<tr data-run="{i}"><th scope="row">{escape(short(library, i))}'
        f"{' <span class=review>reviewed</span>' if member.own else ''}</th>"
        f"<td>{escape(_device(member))}</td><td>{escape(member.began)}</td>"
        f"<td>{escape(', '.join(member.tables))}</td><td><code>{escape(member.facts.where)}</code>"
        f"{IMPORTED * member.facts.imported}</td></tr>"
        for i, member in enumerate(library)
    )
    heads = "".join(
        f'<th scope="col">{words}</th>'
        for words in ("Drive", "Capacity, interface, firmware", "Began", "Plans compared", "Folder")
    )
    paragraphs = "".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
    return (
        f'<div class="scroll"><table class="facts library"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        f"</div>{paragraphs}"
    )
