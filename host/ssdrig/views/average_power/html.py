"""The view `average-power`: what the drive would draw over the days in which a user does the work of one benchmark,
each term and each assumption printed (views/average_power/formula.py)."""

from html import escape

from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import period, size
from ssdrig.views.average_power import formula as average_power_formula
from ssdrig.views.average_power import formula as average_power_terms
from ssdrig.views.context import Context, figure, panel, plus_minus
from ssdrig.views.terms import number


def average_view(context: Context) -> str:
    """A panel for each run, with a table over the users that are assumed."""
    out = []
    for table, name in context.runs():
        title = context.title("Average power with downtime") + name
        terms = average_power_terms.of(table, context.paths, context.show.get("rest"), context.tables)
        if terms.measured is None:
            out.append(panel(title, f'<p class="soft">Not known: {escape(terms.why)}.</p>'))
            continue
        averages = {
            f"{who}, {size(per_day)} a day": average_power_formula.average(
                terms.measured, per_day, f"a {who} user", terms.errors
            )
            for who, per_day in average_power_formula.PROFILES_BYTES.items()
        }
        note = f"From {terms.source}. Wakes are not counted where nothing has measured them."
        out.append(panel(title, _table(averages) + _assumed(averages), note, "wide"))
    return "".join(out)


def _table(averages: dict[str, average_power_formula.Average]) -> str:
    known = next((average for average in averages.values() if average.power_W is not None), None)
    names = [term.name for term in known.terms] if known else []
    heads = ["User", "Mean power, W", "Wh a day", "Period", *(f"{name}, J" for name in names)]
    out = ['<div class="scroll"><table><thead><tr>', *(f'<th scope="col">{escape(head)}</th>' for head in heads)]
    out.append("</tr></thead><tbody>")
    for who, figures in averages.items():
        out.append(f'<tr><th scope="row">{escape(who)}</th>')
        if figures.power_W is None or figures.period_s is None:
            out.append(f'<td class="prose" colspan="{len(heads) - 1}">{escape(figures.why or "")}</td></tr>')
            continue
        power = plus_minus(Uncertain(figures.power_W, figures.power_error_W))
        over = period(figures.period_s / average_power_formula.DAY_S)
        cells = (power, figure(figures.energy_Wh_per_day), over)
        out += [f"<td>{cell}</td>" for cell in cells]
        out += [
            f'<td title="{escape(term.words)}">{figure(term.energy_J)}'
            f' <span class="soft">{number(100 * term.share, 1)} %</span></td>'
            for term in figures.terms
        ]
        out.append("</tr>")
    return "".join(out) + "</tbody></table></div>"


def _assumed(averages: dict[str, average_power_formula.Average]) -> str:
    """What the terms are, and each assumption once."""
    known = [average for average in averages.values() if average.power_W is not None]
    terms = [f"{term.name}: {term.words}" for average in known[:1] for term in average.terms[:-1]]
    assumed = dict.fromkeys(words for average in known for words in average.assumptions)
    return "".join(f"<p>{escape(line)}.</p>" for line in [*terms, *(f"assumed: {words}" for words in assumed)])


HTML = {"average-power": average_view}  # view -> how it is drawn
