"""What drive and host were set to, as a piece of a run's page: a table, and what was not as it should be
(analysis/set_up.py)."""

from html import escape
from pathlib import Path

from ssdrig import journal, parts
from ssdrig.analysis import set_up


def section(run: Path, name: str = "") -> str:
    """ "" for a run without its conditions. Of a run of several parts those of the part that stands for it. Raises
    JournalError."""
    folder = parts.shown(run)[0]
    before, after = set_up.of(journal.events(folder))
    if not before:
        return ""
    header = journal.run_header(folder)
    host = header.get("host") or {}
    title = "Host and drive" + (f": {name}" if name else "")
    out = [f"<section><h2>{escape(title)}</h2>"]
    wrong = set_up.wrong(before, after, host.get("cpus"), bool(header.get("simulated")))
    if wrong:
        items = "".join(f"<li>{escape(each)}</li>" for each in wrong)
        out.append(f'<p class="warn">Not as it should be:</p><ul class="warn">{items}</ul>')
    else:
        out.append('<p class="soft">Nothing seen that was not as it should be.</p>')
    lines = [
        set_up.Line(words, str(host[key]), "")
        for words, key in (("fio", "fio"), ("Python", "python"), ("CPUs", "cpus"))
        if host.get(key)
    ]
    lines += set_up.lines(before, after)
    later = any(line.after for line in lines)
    heads = ["", "before the run", *(["after it"] if later else [])]
    head = "".join(f'<th scope="col">{escape(words)}</th>' for words in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(line.words)}</th><td class="said">{escape(line.before)}</td>'
        + (f'<td class="said">{escape(line.after)}</td>' if later else "")
        + "</tr>"
        for line in lines
    )
    out.append(
        f'<div class="scroll"><table class="steps"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
    if lacking := set_up.unknown(before):
        out.append(f'<p class="soft">Not known: {escape("; ".join(lacking))}.</p>')
    if not after:
        out.append('<p class="soft">The run ended without a second reading.</p>')
    return "".join(out) + "</section>"
