"""A table of figures as HTML: each is a number, or null with the reason."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ssdrig.views.context import figure


class Cell(NamedTuple):
    """`value` in the column's unit, with `error` where it is known; None: `why`. `words` in place of a number."""

    value: float | None = None
    error: float | None = None
    why: str = ""
    words: str = ""

    def html(self) -> str:
        if self.words:
            return f"<td>{escape(self.words)}</td>"
        if self.value is None:
            return f'<td class="soft" title="{escape(self.why or "not known")}">–</td>'
        return f"<td>{figure(self.value)}{'' if self.error is None else f' ± {figure(self.error)}'}</td>"


def rows(first: str, heads: Sequence[tuple[str, str]], lines: Sequence[tuple[str, Sequence[Cell]]]) -> str:
    """`heads`: (name, unit) of each column behind the `first`; `lines`: a name and a Cell for each head."""
    head = "".join(f'<th scope="col">{escape(h)}{f" <span class=unit>{u}</span>" if u else ""}</th>' for h, u in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(cell.html() for cell in cells)}</tr>' for name, cells in lines
    )
    return (
        f'<div class="scroll"><table class="steps"><thead><tr><th scope="col">{escape(first)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
