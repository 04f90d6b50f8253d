"""The view `life`: write amplification of a workload, and what it means for TBW and drive writes per day."""

from html import escape

from ssdrig.views.context import Context, panel
from ssdrig.views.life import figures as life_figures


def life_view(context: Context) -> str:
    """A panel for each step and run: figures, formulas with their figures put in, what is assumed, what is unknown."""
    out = []
    for path in context.paths:
        for each, name in context.runs():
            found = life_figures.of(each, path)
            body = "".join(
                f'<tr><th scope="row">{escape(what)}</th><td>{escape(value)}</td></tr>'
                for what, value in life_figures.lines(found)
            )
            said = [f"<p>{escape(line)}</p>" for line in found.formulas]
            said += [f'<p class="soft">assumed: {escape(line)}</p>' for line in found.assumed]
            said += [f'<p class="soft">not known: {escape(line)}</p>' for line in found.unknown]
            table = f'<table class="numbers"><tbody>{body}</tbody></table>' if body else ""
            out.append(panel(context.title("Rated life", "", path) + name, table + "".join(said), "", "wide"))
    return "".join(out)


HTML = {"life": life_view}  # view -> how it is drawn
