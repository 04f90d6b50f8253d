"""Answers that the user types to a command of the rig: a reading with its unit, yes or no, or a line. Anything else is
asked for again, with the expected form; a few times at a terminal, never without one."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar, overload

from ssdrig.base.errors import NoAnswer, UsageError
from ssdrig.base.words import digits

TRIES = 5
OPEN = ("ol", "0l", "o.l", "0.l", "inf", "open")  # an ohmmeter's display of an open circuit, in small letters
YES, NO = ("y", "yes"), ("n", "no")
_PREFIX = {"": 1.0, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6}
_SPELLED = {
    "v": "V",
    "volt": "V",
    "volts": "V",
    "vdc": "V",
    "a": "A",
    "amp": "A",
    "amps": "A",
    "%": "%",
} | dict.fromkeys(("ohm", "ohms", "ω", "r"), "Ohm")
_NUMBER = re.compile(r"([+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?)\s*(\D*)")
_KIND = {"V": "volts", "A": "amperes", "Ohm": "ohms", "%": "percent"}
SLIP = 1000.0  # between a unit and the next prefix
T = TypeVar("T")


class Number(NamedTuple):
    """A value in the unit that was asked for, what its last digit counts, and whether its unit was typed with it."""

    value: float
    digit: float
    with_unit: bool


def number(text: str, unit: str, may_be_open: bool = False) -> Number:
    """The reading that a text states. Raises UsageError.

    unit: that was asked for, such as "V" or "kOhm"; another prefix is converted
    may_be_open: "ol" is an answer, infinity; always so of a resistance"""
    typed = text.strip()
    scale, base = _split(unit)
    hint = f"type the meter's display, in {unit} or with its own unit"
    if not typed:
        raise UsageError(f"a number of {unit}", "an empty line", hint)
    if (may_be_open or base == "Ohm") and typed.lower().split()[0] in OPEN:
        return Number(math.inf, 0.0, True)
    if (may_be_open or base == "Ohm") and typed.rstrip(". ") == "1":
        do = "a display with nothing but a 1 at its left is an open circuit: type ol; otherwise 1.0"
        raise UsageError(f"a reading of {unit} with its decimals, or ol", repr(typed), do)
    match = _NUMBER.fullmatch(typed)
    if not match:
        raise UsageError(f"one number of {unit}, such as 3.3 or 3,3", repr(typed), hint)
    try:
        typed_scale, typed_base = _split(match[2].strip()) if match[2].strip() else (scale, base)
    except KeyError:
        raise UsageError(f"a unit of {_KIND[base]}", repr(match[2].strip()), hint) from None
    if typed_base not in ("", base):
        do = f"set the meter to {_KIND[base]}, read it there, and type its display"
        raise UsageError(f"{_KIND[base]} ({unit})", f"{_KIND[typed_base]}: {typed!r}", do)
    value = float(match[1].replace(",", "."))
    if not math.isfinite(value):
        raise UsageError(f"a number of {unit}", repr(typed), hint)
    mantissa, _, exponent = match[1].lower().replace(",", ".").partition("e")
    places = len(mantissa.partition(".")[2]) - int(exponent or 0)
    factor = typed_scale / scale
    return Number(value * factor, 10.0**-places * factor, bool(match[2].strip()))


def _split(unit: str) -> tuple[float, str]:
    """("kOhm") -> (1000.0, "Ohm"), ("m") -> (0.001, ""). Raises KeyError for a unit that is not known."""
    if unit.lower() in _SPELLED:
        return 1.0, _SPELLED[unit.lower()]
    rest = unit[1:].strip()
    return _PREFIX[unit[:1]], _SPELLED[rest.lower()] if rest else ""


def yes(text: str) -> bool:
    """Whether a text states yes. Raises UsageError."""
    typed = text.strip().lower()
    if typed not in (*YES, *NO):
        raise UsageError("y or n", repr(text.strip()) if typed else "an empty line", "type one letter, then Enter")
    return typed in YES


class Questions:
    """The questions to the user, and how often each is asked.

    ask: shows a question and returns the line that was typed
    show: prints a line
    tries: how often a question is asked; 1 without a terminal"""

    def __init__(self, ask: Callable[[str], str], show: Callable[[str], None], tries: int = TRIES):
        self.ask, self.show, self.tries = ask, show, tries

    def answer(self, words: str, parsed: Callable[[str], T]) -> T:
        """What `parsed` makes of the answer. Raises NoAnswer when none of the tries had one.

        parsed: raises UsageError for a text that is not an answer"""
        for left in reversed(range(self.tries)):
            try:
                return parsed(self.ask(words))
            except UsageError as error:
                if not left:
                    raise NoAnswer(f"{error.expected}, for: {words.strip()}", error.seen, error.do) from None
                self.show(f"  expected {error.expected}\n  found: {error.seen}\n  hint:  {error.do}")
        raise AssertionError("at least one try")

    def yes(self, words: str) -> bool:
        return self.answer(words, yes)

    @overload
    def number(
        self, words: str, unit: str, fits: Callable[[float], bool] | None = None, optional: Literal[False] = False
    ) -> Number: ...
    @overload
    def number(
        self, words: str, unit: str, fits: Callable[[float], bool] | None, optional: bool, may_be_open: bool
    ) -> Number | None: ...
    def number(
        self,
        words: str,
        unit: str,
        fits: Callable[[float], bool] | None = None,
        optional: bool = False,
        may_be_open: bool = False,
    ) -> Number | None:
        """A reading. One without a unit that fits only in the next prefix (3300 for 3.3 V) is asked for once more.

        fits: whether a value in `unit` is as expected
        optional: None for an empty line
        may_be_open: as of number()"""
        return self.numbers(words, unit, [fits], optional, may_be_open)[0]

    def numbers(
        self,
        words: str,
        unit: str,
        fits: Sequence[Callable[[float], bool] | None],
        optional: bool = False,
        may_be_open: bool = False,
    ) -> list[Number | None]:
        """The readings of one line, separated by spaces, as many as were typed: one at least.

        fits: of each reading that may come, in order
        optional: all None for an empty line
        unit, may_be_open: as of number()"""
        doubted: set[int] = set()

        def parsed(text: str) -> list[Number | None]:
            if optional and not text.strip():
                return [None] * len(fits)
            typed = _separate(text) if len(fits) > 1 else [text]
            if len(typed) > len(fits):
                raise UsageError(
                    f"{len(fits)} readings at most", f"{len(typed)}: {text.strip()!r}", "one for each rail"
                )
            out: list[Number | None] = []
            for k, (one, fit) in enumerate(zip(typed, fits, strict=False)):
                value = number(one, unit, may_be_open)
                if self.tries > 1 and k not in doubted:
                    doubted.add(k)
                    _doubt(value, one, unit, fit)
                out.append(value)
            return out

        return self.answer(words, parsed)

    def which(self, words: str, rails: Sequence[int]) -> list[int]:
        """The rails that the user names, or none for yes."""

        def parsed(text: str) -> list[int]:
            typed = text.replace(",", " ").split()
            if typed and typed[0].lower() in NO:
                typed = typed[1:] or ["n"]
            named = [int(one) for one in typed if one.isdigit()]
            if len(typed) == len(named) and typed and set(named) <= {*rails}:
                return named
            if len(typed) == 1 and typed[0].lower() in YES:
                return []
            do = "y if all are so; otherwise the numbers of the others, such as 2"
            raise UsageError("y, or rails of " + " ".join(map(str, rails)), repr(text.strip()) or "an empty line", do)

        return self.answer(words, parsed)


def _separate(text: str) -> list[str]:
    """The readings of a line, each with its unit: "3.3 V 5 ol" -> ["3.3 V", "5", "ol"]."""
    out: list[str] = []
    for one in text.replace(";", " ").split():
        if out and not one[0].isdigit() and one[0] not in "+-.," and one.lower() not in OPEN:
            out[-1] += f" {one}"
        else:
            out.append(one)
    return out or [text]


def _doubt(value: Number, typed: str, unit: str, fits: Callable[[float], bool] | None) -> None:
    """Raises UsageError for a value without a unit that fits only in the next prefix."""
    if value.with_unit or fits is None or fits(value.value):
        return
    for factor in (1 / SLIP, SLIP):
        if fits(value.value * factor):
            other, text = _named(unit, factor), typed.strip()
            raise UsageError(
                f"a number of {unit}",
                f"{text}, which is {digits(value.value * factor, 4)} {unit} if it is in {other}",
                f"type it with its unit: {text} {other}, or {text} {unit}",
            )


def _named(unit: str, factor: float) -> str:
    """The unit with the prefix that is `factor` times that of `unit`: ("V", 0.001) -> "mV"."""
    scale, base = _split(unit)
    wanted = scale * factor
    return next((f"{prefix}{base}" for prefix, of in _PREFIX.items() if math.isclose(of, wanted)), unit)
