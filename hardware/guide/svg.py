"""Pictures of the guide: a few shapes as SVG text. Lengths in px; the same call gives the same bytes."""

from html import escape

GREY, LIT, DARK, COPPER, BLUE = "#c9c9c4", "#f2a33a", "#222222", "#b87333", "#2b6cb0"


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def attributes(**given):
    return "".join(
        f' {name.replace("_", "-")}="{number(v) if isinstance(v, (int, float)) else v}"' for name, v in given.items()
    )


def rect(x0, y0, x1, y1, fill, stroke="none", **more):
    where = attributes(x=min(x0, x1), y=min(y0, y1), width=abs(x1 - x0), height=abs(y1 - y0))
    return f"<rect{where}{attributes(fill=fill, stroke=stroke, **more)}/>"


def circle(x, y, r, fill, stroke="none", **more):
    return f"<circle{attributes(cx=x, cy=y, r=r, fill=fill, stroke=stroke, **more)}/>"


def line(points, stroke, width, **more):
    joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    more = {"stroke_linecap": "round", "stroke_linejoin": "round"} | more
    return f'<polyline points="{joined}" fill="none"{attributes(stroke=stroke, stroke_width=width, **more)}/>'


def text(x, y, words, size=10, anchor="start", fill=DARK, **more):
    where = attributes(x=x, y=y, font_size=size, text_anchor=anchor, fill=fill, **more)
    return f"<text{where}>{escape(words)}</text>"


def path(commands, fill, stroke="none", **more):
    return f'<path d="{commands}"{attributes(fill=fill, stroke=stroke, **more)}/>'


def page(width, height, title, shapes):
    """The whole file; title also for those who do not see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}"'
        f' width="{number(width)}" height="{number(height)}" font-family="sans-serif" role="img">'
    )
    body = [f"<title>{escape(title)}</title>", rect(0, 0, width, height, "#ffffff"), *shapes]
    return "\n".join([head, *body, "</svg>"]) + "\n"
