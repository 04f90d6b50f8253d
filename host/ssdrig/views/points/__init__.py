"""Views of operating points: matrix, heat map, lines, bars, and figures by a formula."""

from ssdrig.plan.shows import View

VIEWS = {
    "matrix": View(("of", "rows", "columns", "value"), ("where", "window", "title")),
    "lines": View(("of", "x", "value"), ("by", "where", "window", "scale", "title", "top")),
    "heat": View(("of", "rows", "columns", "value"), ("where", "window", "title", "top")),
    "bars": View(("of", "value"), ("where", "window", "scale", "title", "top")),
    "figure": View(("name", "formula"), ("unit", "title")),
}
