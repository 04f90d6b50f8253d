"""The trust strip (reading/trust.py) as people see it: the first lines of a page, of a plot for an article, and of the
text for a terminal. No state is shown by its colour alone."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ssdrig.reading import trust
from ssdrig.reading.trust import BAD, NAMES, NOT_APPLICABLE, OK, SIGNS, UNKNOWN, WORDS

TITLE = "trust"
SCALED = "SCALED: shortened for a small drive. The figures show that the test works, not what the full test would give."
MARK = SIGNS[BAD]  # after a figure
MARKED = f"{MARK}: not claimed, because it depends on an item of the trust strip that is BAD."
NOTHING = "not known: the run has no such window"


def lines(items: Sequence[Mapping], width: int, indent: str = "  ", name: str = "") -> list[str]:
    """For a terminal `width` columns wide: the state of each item, then the reason of each that is bad or unknown."""
    states = [f"{NAMES[item['id']]} {WORDS[item['state']]}".replace(" ", "\0") for item in items]
    head = f"{indent}{TITLE}{f' {name}' if name else ''}: "
    out = _wrapped("\0· ".join(states), head, indent, width)
    for item in items:
        if item["state"] in (BAD, UNKNOWN):
            sentence = f"{NAMES[item['id']]} {WORDS[item['state']]}: {item['why']}"
            out += _wrapped(sentence, f"{indent}  ", f"{indent}    ", width)
    return out


def wrapped(text: str, width: int) -> list[str]:
    """A sentence for a terminal `width` columns wide."""
    return _wrapped(text, "  ", "", width)


def _wrapped(text: str, first: str, indent: str, width: int) -> list[str]:
    """Lines of at most `width` columns; an item and its state, joined by NUL, stay on one line."""
    rows = textwrap.wrap(
        text, max(20, width - 1), initial_indent=first, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )
    return [line.replace("\0", " ") for line in rows]


def marked(text: str, key: str, figures: Mapping) -> str:
    """A figure in words, with MARK if it depends on an item that is bad in its window's strip (figures["trust"])."""
    known = figures.get(key) is not None
    return with_mark(text, trust.why_not(figures.get("trust"), trust.rests_on(key)) if known else None)


def with_mark(text: str, doubt: str | None) -> str:
    """A figure in words, with MARK where there is a doubt."""
    return f"{text} {MARK}" if doubt else text


def meaning_of_mark(html: str) -> str:
    """What the mark means, where a piece of a page has one."""
    return MARKED if MARK in html else ""


def key_of_marks(rows: Iterable[str], width: int) -> list[str]:
    """The meaning of the mark, if a table on a terminal has one."""
    return wrapped(MARKED, width) if any(MARK in row for row in rows) else []


def short(states: Mapping[str, str] | None) -> str:
    """For a cell of a table: "ok", "BAD: host, time error", "–" without a strip."""
    bad = [NAMES[id_] for id_ in NAMES if states and states.get(id_) == BAD]
    return f"{WORDS[BAD]}: {', '.join(bad)}" if bad else WORDS[OK] if states else SIGNS[NOT_APPLICABLE]


def brief(states: Mapping[str, str]) -> str:
    """In some words, of {id: state}: "trust ok", "trust BAD: host, time error", "trust ok, unknown: calibration"."""
    by_state = {state: [NAMES[id_] for id_ in NAMES if states.get(id_) == state] for state in (BAD, UNKNOWN)}
    summary = f"BAD: {', '.join(by_state[BAD])}" if by_state[BAD] else OK
    return f"{TITLE} {summary}" + (f", unknown: {', '.join(by_state[UNKNOWN])}" if by_state[UNKNOWN] else "")


def states(items: Iterable[Mapping] | None) -> dict[str, str] | None:
    """{id: state} of a strip."""
    return {item["id"]: item["state"] for item in items} if items else None


def row(items: Sequence[Mapping] | None, name: str = "", attributes: str = "") -> str:
    """One strip as HTML: of a run, or of a window of it."""
    named = f'<span class="of">{escape(name)}</span>' if name else ""
    if not items:
        return f'<div class="strip"{attributes}>{named}<span class="soft">{NOTHING}</span></div>'
    return f'<div class="strip"{attributes}>{named}<ul>{"".join(map(_item, trust.in_words(items)))}</ul></div>'


def _item(of: Mapping) -> str:
    note = f" <small>{escape(of['text'])}</small>" if of["text"] else ""
    return (
        f'<li class="{of["kind"]}" data-trust="{of["id"]}" title="{escape(of["tip"])}"><b aria-hidden="true">'
        f'{of["sign"]}</b> {of["name"]}<span class="sr">: {of["state"]}</span>{note}</li>'
    )


def of_runs(strips: Mapping[str, Sequence[Mapping]]) -> str:
    """The strips of several runs, by their names: the worst of each item over all of them, then, folded, run by run."""
    worst = row(trust.whole(strips.items(), "runs"))
    return folded([worst], [row(items, name) for name, items in strips.items()])


def folded(worst: Iterable[str], by_run: Iterable[str]) -> str:
    """Some row()s, then those of each run, which open at a click."""
    return section([*worst, f"<details><summary>of each run</summary>{''.join(by_run)}</details>"])


def section(rows: Iterable[str]) -> str:
    """Some row()s, as the first piece of a page."""
    return f'<section class="trust" aria-label="What the figures rest on">{"".join(rows)}</section>'
