"""The sections of a review and their plans: sections.toml, read. Pure, except for reading that file."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import document, grammar

TABLE = Path(__file__).with_name("sections.toml")
LEVELS = ("quick", "standard", "full")
FIGURE_KEYS = ("plan", "of", "where", "window", "value", "title", "better", "link")
LINKS = ("PCIe", "SATA")
KEYS = ("plan", "level", "variant", "set", "quick")


@dataclass(frozen=True)
class Entry:
    """A plan in a review. `level`: the lowest at which it is run; `variant`, `sets`: from level standard on; `quick`:
    parameters at level quick, where the plan's variant of that name is run."""

    plan: str
    level: str
    variant: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)
    quick: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The plan and its variant, the same at each level: "consistency op25"."""
        return f"{self.plan} {self.variant}" if self.variant else self.plan

    def at(self, level: str) -> tuple[str | None, dict[str, str]]:
        """The variant and the parameters at a level."""
        return ("quick", dict(self.quick)) if level == "quick" else (self.variant, dict(self.sets))

    def why_not(self, level: str) -> str | None:
        """Why it is not part of a review at this level; None: it is."""
        if self.plan not in grammar.shipped():
            return "this ssdrig has no such plan yet"
        if LEVELS.index(self.level) > LEVELS.index(level):
            return f"part of level {self.level}, not of {level}"
        return None


@dataclass(frozen=True)
class Figure:
    """What of a plan is compared with earlier reviews: values of a step by the plan's words, or facts of its views;
    `where` its points lie, in a `window` (None: the whole step). `better`: "more" or "less", where the figure itself
    has none. `link`: of the drives that can have it, one of LINKS; "": of any."""

    plan: str
    of: str
    title: str
    value: tuple[str, ...]
    where: Mapping[str, str] = field(default_factory=dict)
    window: str | None = None
    better: str = ""
    link: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    title: str
    about: str
    plans: tuple[Entry, ...]
    figures: tuple[Figure, ...] = ()


@functools.cache
def sections() -> tuple[Section, ...]:
    """All sections, in order. Raises UsageError where the table is wrong."""
    return read(TABLE.read_text("utf-8"), TABLE.name)


def read(text: str, where: str) -> tuple[Section, ...]:
    """The sections of a table's text. Raises UsageError for an unknown key, an invalid level, and a duplicate
    plan."""
    sections = tuple(
        Section(
            table["title"],
            table["about"],
            tuple(_entry(row, where) for row in table["plans"]),
            tuple(_figure(row, where) for row in table.get("figures", [])),
        )
        for table in document.parse(text, where)["section"]
    )
    names = [entry.name for section in sections for entry in section.plans]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError("each plan and variant once", f"{twice} twice in {where}", "leave one out")
    return sections


@functools.cache
def headline() -> tuple[str, ...]:
    """The plans and variants whose headlines make the headline of a review, in order. Raises UsageError for one that no
    section has."""
    named = document.parse(TABLE.read_text("utf-8"), TABLE.name)["headline"]
    known = [entry.name for entry in entries()]
    if lacking := [name for name in named if name not in known]:
        raise UsageError(f"headline with plans of {TABLE.name}", lacking[0], do_you_mean(lacking[0], known))
    return tuple(named)


def entries() -> list[Entry]:
    """The plans of all sections, in order."""
    return [entry for section in sections() for entry in section.plans]


def _figure(row: Mapping, where: str) -> Figure:
    if unknown := [key for key in row if key not in FIGURE_KEYS]:
        raise UsageError(f"only {', '.join(FIGURE_KEYS)}", f"{unknown[0]} in {where}", "leave it out")
    if (better := row.get("better", "")) not in ("", "more", "less"):
        raise UsageError('better = "more" or "less"', f"{better!r} in {where}", "name one, or leave it out")
    if (link := row.get("link", "")) not in ("", *LINKS):
        raise UsageError(f"link = one of {', '.join(LINKS)}", f"{link!r} in {where}", "name one, or leave it out")
    points = dict(word.partition("=")[::2] for word in row.get("where", "").split())
    return Figure(row["plan"], row["of"], row["title"], tuple(row["value"]), points, row.get("window"), better, link)


def _entry(row: Mapping, where: str) -> Entry:
    if unknown := [key for key in row if key not in KEYS]:
        raise UsageError(f"only {', '.join(KEYS)}", f"{unknown[0]} in {where}", "leave it out")
    if row.get("level") not in LEVELS:
        raise UsageError(
            f"a level, {', '.join(LEVELS)}", f"{row.get('level')!r} of {row.get('plan')} in {where}", "name one"
        )
    return Entry(row["plan"], row["level"], row.get("variant"), row.get("set", {}), row.get("quick", {}))
