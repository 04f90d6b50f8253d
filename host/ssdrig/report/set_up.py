"""What drive and host were set to, as a piece of a run's page: a table, and what was not as it should be
(reading/set_up.py)."""

from collections.abc import Mapping, Sequence
from html import escape

from ssdrig.reading import set_up
from ssdrig.reading.rundata import RunData


def section(data: RunData, name: str = "") -> str:
    """ "" for a run without its conditions. Of a run of several parts those of the part that stands for it."""
    before, after, header = _said_by(data)
    if not before:
        return ""
    title = "Host and drive" + (f": {name}" if name else "")
    wrong = _wrong(before, after, header)
    return f"<section><h2>{escape(title)}</h2>{_said(wrong)}{_table(before, after, header)}</section>"


def of_review(runs: Mapping[str, RunData]) -> str:
    """Of the runs of a review, by their names: what was not as it should be in any of them, each said once, and the
    table of the first."""
    found = [(name, *_said_by(run)) for name, run in runs.items()]
    known = [(name, before, after, header) for name, before, after, header in found if before]
    if not known:
        return ""
    wrong: dict[str, list[str]] = {}
    for name, *said in known:
        for words in _wrong(*said):
            wrong.setdefault(words, []).append(name)
    lines = [f"{words} ({', '.join(names)})" for words, names in wrong.items()]
    name, *first = known[0]
    table = f"<p>As it was for {escape(name)}:</p>{_table(*first)}"
    return f'<section id="host"><h2>Host and drive</h2>{_said(lines)}{table}</section>'


def _said_by(data: RunData) -> tuple[dict, dict, dict]:
    """The events `conditions` before and after the run, and its header."""
    return *set_up.of(data.events), data.header


def _wrong(before: Mapping, after: Mapping, header: Mapping) -> list[str]:
    return set_up.wrong(before, after, (header.get("host") or {}).get("cpus"), bool(header.get("simulated")))


def _said(wrong: Sequence[str]) -> str:
    if not wrong:
        return '<p class="soft">Nothing seen that was not as it should be.</p>'
    items = "".join(f"<li>{escape(each)}</li>" for each in wrong)
    return f'<p class="warn">Not as it should be:</p><ul class="warn">{items}</ul>'


def _table(before: Mapping, after: Mapping, header: Mapping) -> str:
    host = header.get("host") or {}
    lines = [
        set_up.Line(words, str(host[key]), "")
        for words, key in (("fio", "fio"), ("Python", "python"), ("CPUs", "cpus"))
        if host.get(key)
    ]
    lines += set_up.lines(before, after)
    later = any(line.after for line in lines)
    heads = ["", "before the run", *(["after it"] if later else [])]
    head = "".join(f'<th scope="col" class="said">{escape(words)}</th>' for words in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(line.words)}</th><td class="said">{escape(line.before)}</td>'
        + (f'<td class="said">{escape(line.after)}</td>' if later else "")
        + "</tr>"
        for line in lines
    )
    table = f'<table class="steps"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    out = f'<div class="scroll">{table}</div>'
    if lacking := set_up.unknown(before):
        out += f'<p class="soft">Not known: {escape("; ".join(lacking))}.</p>'
    return out + ("" if after else '<p class="soft">The run ended without a second reading.</p>')
