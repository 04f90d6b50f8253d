"""The one place with arithmetic: the formula of a figure, such as "(after.MB/s - dirty.MB/s) / (clean.MB/s - 1)".

    formula = product (("+" | "-") product)*
    product = factor (("*" | "/") factor)*
    factor  = "-" factor | "(" formula ")" | number | step ["@" window] "." value

A value's name may hold a "/" ("MB/s"): the longest name wins, so "a.iops/W" is IOPS per watt and "a.iops / b.W" a
quotient. A step's name may hold a "-": spaces around a minus keep it apart. Parsed, never eval'd. Pure.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ssdrig.base import uncertain
from ssdrig.base.uncertain import Uncertain

_OF_LATENCY = ("lat_mean", "lat_p50", "lat_p99", "lat_p999", "lat_p9999", "lat_max")
# what a step has, in the plan's words -> the figure of the analysis, and its unit
VALUES = {
    "iops": ("iops_mean", "IOPS"),
    "consistency": ("consistency", ""),
    "MB/s": ("bw_mean_MBps", "MB/s"),
    "W": ("power_mean_W", "W"),
    "W_max": ("power_max_W", "W"),
    "uJ/IO": ("energy_uJ_per_io", "µJ"),
    "J/GB": ("energy_J_per_GB", "J/GB"),
    "iops/W": ("iops_per_W", "IOPS/W"),
    "burst_iops": ("burst_iops", "IOPS"),
    "pause_W": ("pause_mean_W", "W"),
    "floor_W": ("floor_W", "W"),
    "lat_mean": ("lat_mean_us", "µs"),
    "lat_mean_most": ("lat_mean_most_us", "µs"),
    "lat_p50": ("lat_p50_us", "µs"),
    "lat_p99": ("lat_p99_us", "µs"),
    "lat_p999": ("lat_p999_us", "µs"),
    "lat_p9999": ("lat_p9999_us", "µs"),
    "lat_p99999": ("lat_p99999_us", "µs"),
    "lat_max": ("lat_max_us", "µs"),
    **{f"{direction}_iops": (f"{direction}_iops", "IOPS") for direction in ("read", "write")},
    **{word: (f"{word}_us", "µs") for word in (f"{d}_{name}" for d in ("read", "write") for name in _OF_LATENCY)},
    "wa": ("wa", ""),
    "C": ("temperature_max_C", "°C"),
    "host_cpu": ("host_cpu_percent", "%"),
    "gap": ("gap_s", "s"),
}
AT_ONCE = ("iops", "MB/s", "lat_mean")  # known as soon as a step has ended; the others need the analysis
LONGEST = 400  # characters
DEEPEST = 20  # parentheses and signs inside of each other
_VALUE = "|".join(re.escape(name) for name in sorted(VALUES, key=len, reverse=True))
_TOKEN = re.compile(
    r" *(?:"
    rf"(?P<path>[a-z0-9][a-z0-9-]*(?:/[a-z0-9][a-z0-9-]*)?)(?:@(?P<window>[a-z0-9][a-z0-9-]*))?"
    rf"\.(?P<value>(?:{_VALUE})(?![\w.])|[A-Za-z_]\w*)"
    r"|(?P<number>[0-9]{1,15}(?:\.[0-9]{1,15})?)(?![\w.])"
    r"|(?P<sign>[-+*/()]))"
)


@dataclass(frozen=True)
class Name:
    """A value of a step, "clean.MB/s", or of one of its windows, "clean@end.MB/s"."""

    path: str
    value: str
    window: str = ""

    def __str__(self) -> str:
        return f"{self.path}{'@' * bool(self.window)}{self.window}.{self.value}"


@dataclass(frozen=True)
class Term:
    """`left` sign `right`; a negative factor is 0 - factor."""

    sign: str
    left: "Node"
    right: "Node"


Node = float | Name | Term


def parse(text: str) -> Node:
    """The tree of a formula. Raises ValueError with the place of the error."""
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    parser = _Parser(text)
    node = parser.sum(0)
    if (parser.operand, parser.sign) != (None, None) or parser.at < len(text.rstrip(" ")):
        raise parser.broken()
    return node


def names(node: Node) -> Iterator[Name]:
    """The values that it needs, from left to right."""
    if isinstance(node, Name):
        yield node
    elif isinstance(node, Term):
        yield from names(node.left)
        yield from names(node.right)


def evaluate(node: Node, lookup: Callable[..., Uncertain]) -> Uncertain:
    """The value with its error, or the reason for its absence. lookup(path, name of VALUES[, window]): a step's
    figure."""
    inputs: dict[str, Uncertain] = {}
    for name in names(node):
        at = (name.path, name.value, name.window) if name.window else (name.path, name.value)
        inputs.setdefault(str(name), lookup(*at))
    return _of(node, inputs)


def _of(node: Node, inputs: Mapping[str, Uncertain]) -> Uncertain:
    if isinstance(node, Name):
        figure = inputs[str(node)]
        unknown = figure.value is None or not math.isfinite(figure.value)
        why = f"{node} is unknown" + (f": {figure.why}" if figure.why else "")
        return Uncertain(None, None, uncertain.UNKNOWN, why) if unknown else figure
    if not isinstance(node, Term):
        return Uncertain(node, 0.0)
    left, right = _of(node.left, inputs), _of(node.right, inputs)
    if left.value is None or right.value is None:
        return left if left.value is None else right
    if node.sign == "/" and (bad := uncertain.vague(right, written(node.right))):
        return bad
    used = {str(name): inputs[str(name)] for name in names(node)}
    figure = uncertain.propagated(lambda **at: _number(node, at), used)
    return figure._replace(why=f"{written(node)} is too large") if figure.reason == uncertain.TOO_LARGE else figure


def _number(node: Node, at: Mapping[str, float]) -> float:
    if isinstance(node, Name):
        return at[str(node)]
    if not isinstance(node, Term):
        return node
    left, right = _number(node.left, at), _number(node.right, at)
    return {"+": left + right, "-": left - right, "*": left * right}[node.sign] if node.sign != "/" else left / right


def written(node: Node) -> str:
    """The formula again, with parentheses around each inner operation: "(a.W + 1) * b.W"."""
    if isinstance(node, Term):
        left, right = (f"({written(n)})" if isinstance(n, Term) else written(n) for n in (node.left, node.right))
        return f"{left} {node.sign} {right}"
    return f"{node:.15g}" if isinstance(node, float) else str(node)


class _Parser:
    """Reads tokens from left to right. `operand` or `sign` is the next token; both None at the end or where it
    breaks off."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.next()

    def next(self) -> None:
        self.operand: float | Name | None = None
        self.sign: str | None = None
        match = _TOKEN.match(self.text, self.at)
        if not match:
            return
        self.begin, self.at = match.end() - len(match[0].lstrip(" ")), match.end()
        if match["path"]:
            if match["value"] not in VALUES:
                near = f"; a step has {', '.join(VALUES)}"
                raise ValueError(f"{match['path']}.{match['value']} is not a value of a step{near}")
            self.operand = Name(match["path"], match["value"], match["window"] or "")
        elif match["number"]:
            self.operand = float(match["number"])
        else:
            self.sign = match["sign"]

    def broken(self) -> ValueError:
        if self.sign is not None or self.operand is not None:
            return ValueError(f"it is broken at {self.text[self.begin : self.begin + 20]!r}")
        rest = self.text[self.at :].strip(" ")
        return ValueError(f"it is broken at {rest[:20]!r}" if rest else "something is missing at its end")

    def sum(self, depth: int) -> Node:
        node = self.product(depth)
        while self.sign in ("+", "-"):
            node = self.term(node, self.product, depth)
        return node

    def product(self, depth: int) -> Node:
        node = self.factor(depth)
        while self.sign in ("*", "/"):
            node = self.term(node, self.factor, depth)
        return node

    def term(self, left: Node, right: Callable[[int], Node], depth: int) -> Term:
        sign = self.sign or ""
        self.next()
        return Term(sign, left, right(depth))

    def factor(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} parentheses and signs inside of each other")
        if self.operand is not None:
            operand = self.operand
            self.next()
            return operand
        if self.sign == "-":
            self.next()
            return Term("-", 0.0, self.factor(depth + 1))
        if self.sign != "(":
            raise self.broken()
        self.next()
        node = self.sum(depth + 1)
        if self.sign != ")":
            raise self.broken()
        self.next()
        return node
