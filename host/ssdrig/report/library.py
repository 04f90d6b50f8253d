"""The library of a review: the same figures of earlier runs, in cards. A member is a drive at one over-provisioning: of
the review itself, of an earlier one, or a single run."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ssdrig.base.errors import JournalError, SsdrigError
from ssdrig.plan import reviews, shows
from ssdrig.reading import review_folder, table
from ssdrig.reading.row import Table
from ssdrig.report import about, words
from ssdrig.report.cards import Bar, card
from ssdrig.report.loads import group
from ssdrig.report.verdict import ENDED
from ssdrig.runs import journal, parts
from ssdrig.views.context import doubt_at, label, plus_minus, uncertain_at, unit, value_at
from ssdrig.views.svg import look
from ssdrig.views.terms import BY_KEY, error_of

MOST_RUNS = 100  # of the library, the latest first


@dataclass
class Member:
    """`where`: the folder of its review, or of the run itself; `tables`: of its runs by the plan's name; `own`: it
    belongs to the review of the page."""

    where: str
    drive: str
    op: str
    began: str
    tables: dict[str, Table]
    own: bool = False

    @property
    def label(self) -> str:
        return f"{self.drive}, {self.op}"


def members(tables: Sequence[tuple[str, Table]], own: str) -> list[Member]:
    """The members that runs (the folder they belong to, the run) make, those of the folder `own` first, the latest of
    the others next."""
    members_of: dict[tuple[str, str], Member] = {}
    for where, one in tables:
        op = op_of(one)
        member = members_of.get((where, op))
        if member is None:
            drive = str(one.data.header["drive"].get("model") or "unknown drive")
            member = members_of[where, op] = Member(where, drive, op, about.started(one.data), {}, where == own)
        member.tables.setdefault(one.plan.name, one)
    return sorted(
        sorted(members_of.values(), key=lambda entry: entry.began, reverse=True),
        key=lambda entry: (not entry.own, entry.op != "default OP" if entry.own else False),
    )


def op_of(run: Table) -> str:
    """Over-provisioning of a run in words; for plans that test their own ranges only the share of raw NAND."""
    header = run.data.header
    method, drive = header["method"], header["drive"]
    tested, capacity = method.get("tested_bytes"), drive.get("capacity_bytes")
    of_user = 100 * (1 - tested / capacity) if tested and capacity else None
    asked = {
        "op_percent": method.get("op_percent"),
        "op_user_percent": of_user if run.plan.name == "consistency" else None,
        "raw_nand_assumed": bool(drive.get("raw_nand_assumed")),
    }
    return words.op(asked)


def read(review: Path, against: Sequence[Path] | None) -> tuple[list[tuple[str, Table]], list[str]]:
    """The runs of the library with the folder that each belongs to, and why some are left out. `against`: run folders
    and folders of reviews; None: all complete runs next to the review."""
    wanted = {figure.plan for section in reviews.sections() for figure in section.figures}
    notes, tables = [], []
    for folder in _folders(review, against):
        try:
            header = journal.run_header(folder)
            plan = (header.get("plan") or {}).get("name")
            if plan not in wanted or (against is None and journal.state(parts.of(folder)[-1]) != "complete"):
                continue
            of_review = folder.parent if (folder.parent / parts.REVIEW).is_file() else folder
            tables.append((of_review.name, table.load(folder)))
        except SsdrigError as error:
            notes.append(f"{folder} is left out of the library: {error}")
    return tables, notes


def _folders(review: Path, against: Sequence[Path] | None) -> list[Path]:
    """Raises JournalError for a path of `against` that is not a run."""
    if against is None:
        try:
            runs = parts.all_runs(review.absolute().parent)
        except OSError:
            return []
        return [run for run in runs if run.parent.name != review.name][:MOST_RUNS]
    out: list[Path] = []
    for folder in against:
        if (folder / parts.REVIEW).is_file():
            out += [one.run for one in review_folder.done(review_folder.read(folder)).values() if one.run]
        elif (folder / "run.json").is_file():
            out.append(folder)
        else:
            do = "name run folders, or folders of reviews"
            raise JournalError(f"a run or a review in {folder}, for --against", "neither", do)
    return [run for run in out if run.absolute().parent != review.absolute()]


def apart(run: Table, reviewed: Table) -> str | None:
    """Why a run cannot be ranked with the reviewed one; None if it can."""
    if run.data.state != "complete" or run.data.why:
        return f"{ENDED.get(run.data.state, run.data.state)}{f', {run.data.why}' if run.data.why else ''}"
    if run.plan.text != reviewed.plan.text:
        return "of another version of the plan"
    own, other = dict(reviewed.plan.params), dict(run.plan.params)
    for key in ("range", "after"):  # what makes another over-provisioning
        own.pop(key, None)
    if unlike := [key for key in own if own[key] != other.get(key)]:
        return "; ".join(f"{key} {other.get(key)}, reviewed run {own[key]}" for key in unlike)
    return None


def cards(section: reviews.Section, members_of: Sequence[Member]) -> str:
    """The cards of a section: for each figure a bar for each member that has it, the best first, those that cannot be
    ranked last."""
    out = []
    for figure in section.figures:
        for word in figure.value:
            out.append(_card(figure, word, members_of))
    return f'<div class="cards">{"".join(out)}</div>' if any(out) else ""


def _card(of: reviews.Figure, word: str, drives: Sequence[Member]) -> str:
    reviewed = next((m.tables[of.plan] for m in drives if m.own and of.plan in m.tables), None)
    if reviewed is None:
        return ""
    seen = []
    for i, member in enumerate(drives):
        if of.plan in member.tables:
            mine = member.tables[of.plan]
            found_at = uncertain_at(mine, of.of, dict(of.where), word, of.window)
            seen.append((i, member, found_at.value, found_at, apart(mine, reviewed) or _doubt(mine, of, word)))
    if all(value is None for _, _, value, *_ in seen):
        return ""
    shown = unit(word, [value for _, _, value, *_ in seen])
    term = BY_KEY.get(shows.VALUES[word][0])
    better = term.better if term else ""
    sign = -1 if better == "more" else 1
    seen.sort(key=lambda entry: (entry[2] is None, entry[4] is not None, sign * (entry[2] or 0)))
    bars = []
    for i, member, value, of_it, unlike in seen:
        glyph, colour = look(i)["glyph"], "--review" if member.own else look(i)["colour"]
        text, named = shown.text(value), member.label + ("" if member.own else f", {member.began}")
        aside = "" if value is not None else escape(of_it.why)
        bar = Bar(i, named, short(drives, i), value, text, colour, glyph, aside, unlike, member.own)
        bars.append(bar._replace(doubt=of_it.error, error=error_of(plus_minus(of_it.scaled(shown.scale)))))
    return card(f"{of.plan}-{word}", f"{escape(of.title)}: {label(word)}", shown.name, better, bars)


def _doubt(run: Table, of: reviews.Figure, word: str) -> str | None:
    """What of the trust strip is bad that a figure rests on."""
    return doubt_at(run, of.of, dict(of.where), word, of.window)


def short(drives: Sequence[Member], i: int) -> str:
    """The name of a member in a bar: without SIMULATED, which is in the page's head, numbered where two are alike."""
    label_of = [drive.label.removeprefix("SIMULATED ") for drive in drives]
    alike = label_of.count(label_of[i])
    return f"{label_of[i]} ({label_of[: i + 1].count(label_of[i])})" if alike > 1 else label_of[i]


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
        f"{' <span class=review>reviewed</span>' if member.own else ''}</th><td>{escape(member.began)}</td>"
        f"<td>{escape(', '.join(member.tables))}</td><td><code>{escape(member.where)}</code></td></tr>"
        for i, member in enumerate(library)
    )
    heads = "".join(f'<th scope="col">{words}</th>' for words in ("Drive", "Began", "Plans compared", "Folder"))
    paragraphs = "".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
    return (
        f'<div class="scroll"><table class="facts library"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        f"</div>{paragraphs}"
    )


def sentence(section: reviews.Section, drives: Sequence[Member]) -> str:
    """The figures of a section in words: "25 % OP: Random writes 21 600 IOPS, …"; "" where it has none."""
    out = []
    for member in (drive for drive in drives if drive.own):
        each_figure: dict[str, list[str]] = {}
        for of in section.figures:
            if of.plan not in member.tables:
                continue
            for word in of.value:
                value, _ = value_at(member.tables[of.plan], of.of, dict(of.where), word, of.window)
                if value is not None and (doubt := _doubt(member.tables[of.plan], of, word)):
                    each_figure.setdefault(of.title, [])
                    if (note := f"not claimed, {doubt}") not in each_figure[of.title]:
                        each_figure[of.title].append(note)
                elif value is not None:
                    shown = unit(word, [value])
                    text = f"{shown.text(value)} {shown.name}".strip()
                    named = text if shown.name in ("IOPS", "MB/s", "W") else f"{_inner(label(word))} {text}"
                    each_figure.setdefault(of.title, []).append(named)
        if each_figure:
            joined = "; ".join(f"{_inner(title)} {', '.join(texts)}" for title, texts in each_figure.items())
            out.append((member.op, joined))
    if len(out) == 1:
        return f"{out[0][1][:1].upper()}{out[0][1][1:]}."
    return " ".join(f"{op[:1].upper()}{op[1:]}: {joined}." for op, joined in out)


def _inner(title: str) -> str:
    """A title within a sentence: "Mean power" as "mean power", "P99 latency" as it is."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title
