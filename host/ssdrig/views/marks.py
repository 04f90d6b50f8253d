"""How a run is marked in every plot and list: a shape, its glyph and a colour."""

SHAPES = {  # how panels.js draws a run's marks, and the glyph that stands for them in words
    "circle": "●",
    "square": "■",
    "up": "▲",
    "diamond": "◆",
    "down": "▼",
    "plus": "✚",
    "bar": "▮",
    "dash": "▬",
    "left": "◀",
    "right": "▶",
}
COLOURS = ["blue", "green", "purple", "orange", "sky", "ink-soft", "yellow"]  # Okabe-Ito, darkened; report.css has them


def look(index: int) -> dict:
    """Shape, glyph and colour (a custom property of report.css) of run `index`. The reviewed run is vermillion."""
    shape = list(SHAPES)[index % len(SHAPES)]
    return {"shape": shape, "glyph": SHAPES[shape], "colour": f"--{COLOURS[index % len(COLOURS)]}"}
