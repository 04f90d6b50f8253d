"""The view `life`: write amplification of a workload, and its TBW and drive writes per day."""

from html import escape

from ssdrig.views.context import Context, panel
from ssdrig.views.life import figures as life_figures


def life_view(context: Context) -> str:
    """A panel for each step and run: figures, formulas with their figures put in, assumptions, unknown terms."""
    out = []
    for path in context.paths:
        for run, name in context.runs():
            life = life_figures.of(run, path)
            body = "".join(
                f'<tr><th scope="row">{escape(what)}</th><td>{escape(value)}</td></tr>'
                for what, value in life_figures.lines(life)
            )
            notes = [f"<p>{escape(line)}</p>" for line in life.formulas]
            notes += [f'<p class="soft">assumed: {escape(line)}</p>' for line in life.assumed]
            notes += [f'<p class="soft">not known: {escape(line)}</p>' for line in life.unknown]
            table = f'<table class="numbers"><tbody>{body}</tbody></table>' if body else ""
            out.append(panel(context.title("Rated life", "", path) + name, table + "".join(notes), "", "wide"))
    return "".join(out)


HTML = {"life": life_view}  # view -> how it is drawn
