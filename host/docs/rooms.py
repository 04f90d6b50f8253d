"""The rooms of host/ssdrig, read from the imports themselves: what each room uses, on which floor it stands, and the
picture of it. make.py puts them into architecture.md and rooms.svg. Pure, but for reading the sources."""

import ast
import functools
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

HOST = Path(__file__).parents[1]
GROUND = "base"  # every room may use it: no arrow to it is drawn
ENTRY = ("__main__", "cli", "start")  # one box: the launcher, then the word that names a command
SAYS = {
    "cli": "The launcher and the words of the command line; each command is imported only when it is asked for.",
    "virtual": "The virtual bench, all of it SIMULATED: a drive built from published physics, and a board that runs our"
    " firmware.",
}
Graph = Mapping[str, set[str]]


def modules(root: Path = HOST) -> dict[str, Path]:
    """Dotted name -> file of every module of the package, without the chip models, which run on MicroPython."""
    files = {}
    for path in sorted(root.glob("ssdrig/**/*.py")):
        if "board" not in path.relative_to(root).parts[:-1]:
            files[".".join(path.with_suffix("").relative_to(root).parts).removesuffix(".__init__")] = path
    return files


def imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Module -> the modules it imports, also inside functions and for type checks alone. The command line names its
    commands as text."""
    uses: dict[str, set[str]] = {}
    for name, path in files.items():
        uses[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = [f"{node.module}.{imported.name}" for imported in node.names]
                uses[name] |= {module if module in files else node.module for module in named}
            elif isinstance(node, ast.Import):
                uses[name] |= {imported.name for imported in node.names}
            elif isinstance(node, ast.Constant) and name == "ssdrig.cli":
                uses[name].add(str(node.value))
        uses[name] &= files.keys() - {name, "ssdrig"}
    return uses


@functools.cache
def of_the_host() -> dict[str, set[str]]:
    """imports() of all modules."""
    return imports(modules())


def room(module: str) -> str:
    """The room of a module: its folder below ssdrig/, of drive/ and virtual/ the folder within; the launcher and the
    command line are one."""
    parts = module.split(".")[1:]
    if parts[0] in ENTRY:
        return "cli"
    inner = parts[0] in ("drive", "virtual") and len(parts) > 1 and (HOST.joinpath("ssdrig", *parts[:2])).is_dir()
    return "/".join(parts[:2]) if inner else parts[0]


def joined(uses: Graph, into=room) -> dict[str, set[str]]:
    """The graph of rooms from the graph of modules."""
    out: dict[str, set[str]] = {}
    for module, used in uses.items():
        if module != "ssdrig":
            out.setdefault(into(module), set()).update(into(target) for target in used)
    return {name: used - {name} for name, used in out.items()}


def circles(uses: Graph) -> list[list[str]]:
    """Every group of nodes that reach each other; empty where all arrows go one way."""
    far = {name: reached(uses, name) for name in uses}
    groups = {frozenset(b for b in far[a] if a in far.get(b, ())) for a in uses if a in far[a]}
    return sorted(sorted(group) for group in groups)


def reached(uses: Graph, start: str) -> set[str]:
    """All nodes that can be reached from `start` by one arrow or more."""
    seen: set[str] = set()
    ahead = list(uses.get(start, ()))
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += uses.get(name, ())
    return seen


def floors(uses: Graph) -> dict[str, int]:
    """Node -> floor: one above the highest that it uses. Raises ValueError where the graph has a circle."""
    if rings := circles(uses):
        raise ValueError(f"these import each other: {rings}")
    level: dict[str, int] = {}
    while len(level) < len(uses):
        for name in uses.keys() - level.keys():
            if uses[name] <= level.keys():
                level[name] = 1 + max((level[below] for below in uses[name]), default=-1)
    return level


def shortest(uses: Graph) -> dict[str, set[str]]:
    """The graph without the arrows that follow from others (a -> c where a -> b -> c)."""
    far = {name: reached(uses, name) for name in uses}
    return {name: {b for b in used if not any(b in far[other] for other in used)} for name, used in uses.items()}


def house(uses: Graph) -> dict[str, set[str]]:
    """The graph of the picture: all rooms but the ground. virtual/ is one room; rooms that use each other are one."""
    whole = joined(uses, lambda module: room(module).replace("virtual/", "virtual ").split(" ")[0])
    whole = {name: used - {GROUND} for name, used in whole.items() if name != GROUND}
    box = {name: " ⇄ ".join(group) for group in circles(whole) for name in group}
    out: dict[str, set[str]] = {}
    for name, used in whole.items():
        out.setdefault(box.get(name, name), set()).update(box.get(target, target) for target in used)
    return {name: used - {name} for name, used in out.items()}


def first_sentence(path: Path) -> str:
    """What a module's docstring opens with, on one line."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".") + "." if text else ""


def says(name: str, files: Mapping[str, Path]) -> str:
    """What a room is for: the first sentence of its package or module."""
    if " ⇄ " in name:
        return " ".join(f"`{room}`: {says(room, files)}" for room in name.split(" ⇄ "))
    return SAYS.get(name) or first_sentence(files["ssdrig." + name.replace("/", ".")])


def table(uses: Graph, names: Iterable[str], files: Mapping[str, Path]) -> str:
    """The rooms as Markdown, the highest floor first."""
    lines = ["| room | what it is for | uses |", "|---|---|---|"]
    level = floors({name: uses[name] & set(names) for name in names})
    for name in sorted(names, key=lambda room: (-level[room], room)):
        lines.append(f"| `{name}` | {says(name, files)} | {', '.join(f'`{room}`' for room in sorted(uses[name]))} |")
    return "\n".join(lines)


WIDE, HIGH, GAP, STOREY, SLOT = 132, 34, 26, 84, 10  # px: a box, the space between, a floor, an arrow passing by


def _rows(uses: Graph, level: Mapping[str, int]) -> tuple[list[list[str]], list[list[str]]]:
    """Each floor's boxes from left to right, and each arrow as the nodes it passes: an arrow over several floors has a
    slot ("a>b@floor") on each floor between, so that it does not run behind a box."""
    rows: list[list[str]] = [[] for _ in range(max(level.values()) + 1)]
    ways = []
    for name in sorted(uses):
        rows[level[name]].append(name)
    for a in sorted(uses):
        for b in sorted(uses[a]):
            between = [f"{a}>{b}@{floor}" for floor in range(level[a] - 1, level[b], -1)]
            for slot in between:
                rows[int(slot.rsplit("@", 1)[1])].append(slot)
            ways.append([a, *between, b])
    for sweep in range(24):  # each node moves to the mean place of its neighbours above, then below
        place = {name: (k + 0.5) / len(row) for row in rows for k, name in enumerate(row)}
        for row in rows if sweep % 2 else reversed(rows):
            near: dict[str, list[float]] = {name: [] for name in row}
            for way in ways:
                for upper, lower in zip(way, way[1:]):
                    if upper in near and sweep % 2:
                        near[upper].append(place[lower])
                    elif lower in near and not sweep % 2:
                        near[lower].append(place[upper])
            row.sort(key=lambda name: (sum(near[name]) / len(near[name]) if near[name] else place[name], name))
            place |= {name: (k + 0.5) / len(row) for k, name in enumerate(row)}
    return rows, ways


def picture(uses: Graph) -> str:
    """The rooms as boxes on their floors and the arrows that do not follow from others, as SVG."""
    uses = shortest(uses)
    rows, ways = _rows(uses, floors(uses))
    wide = [sum(_wide(name) + GAP for name in row) for row in rows]
    full, top = max(wide) + GAP, 20
    at: dict[str, tuple[float, float]] = {}
    x: float
    y: float
    for floor, row in enumerate(rows):
        x, y = (full - wide[floor] + GAP) / 2, top + (len(rows) - 1 - floor) * STOREY
        for name in row:
            at[name] = (x + _wide(name) / 2, y)
            x += _wide(name) + GAP
    bottom = top + len(rows) * STOREY - STOREY + HIGH + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {bottom + HIGH + 20}" font-family="sans-serif"'
        ' font-size="14" text-anchor="middle">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{full}" height="{bottom + HIGH + 20}" fill="#fff"/>',
    ]
    for way in ways:
        (x, y), path = at[way[0]], ""
        path = f"M{x:.0f} {y + HIGH:.0f}"
        y += HIGH
        for name in way[1:]:
            to_x, to_y = at[name]
            half = (to_y - y) / 2
            path += f"C{x:.0f} {y + half:.0f} {to_x:.0f} {to_y - half:.0f} {to_x:.0f} {to_y:.0f}"
            x, y = to_x, to_y + HIGH
            if name != way[-1]:
                path += f"V{y:.0f}"
        out.append(f'<path d="{path}" fill="none" stroke="#667" stroke-width="1.3" marker-end="url(#tip)"/>')
    for name, (x, y) in sorted(at.items()):
        if "@" not in name:
            out.append(_box(x - _wide(name) / 2, y, _wide(name), name, "#fff3d6" if name == "virtual" else "#e6effa"))
    out.append(_box(GAP, bottom, full - 2 * GAP, f"used from everywhere: {GROUND}", "#eee"))
    return "\n".join([*out, "</svg>", ""])


def _wide(name: str) -> int:
    return SLOT if "@" in name else max(WIDE, 16 + 8 * len(name))


def _box(x: float, y: float, wide: float, text: str, colour: str) -> str:
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{HIGH}" rx="4" fill="{colour}" stroke="#446"/>'
        f'<text x="{x + wide / 2:.0f}" y="{y + 22:.0f}">{escape(text)}</text>'
    )
