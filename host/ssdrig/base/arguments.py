"""The parser of all commands. Unknown words raise a UsageError with the nearest match; quantities take units."""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from ssdrig.base.errors import UsageError
from ssdrig.base.shipped import as_called
from ssdrig.base.words import do_you_mean, parse_in, parse_seconds

WIDEST = 100  # columns of a help text
EXAMPLES = "examples:\n"
PATHS = {"DIR", "FILE", "FOLDER", "PATH", "RUN"}  # metavars: an empty path would be the current folder
FEW = 6  # options that a usage line has room for
ELSEWHERE = "or tcp://HOST:PORT or rfc2217://HOST:PORT of one on another machine"
RIG = f"serial port of the rig that powers a real drive, {ELSEWHERE}"  # help of --rig


class Help(argparse.HelpFormatter):
    """As wide as the terminal, up to WIDEST; examples stay as they are."""

    def __init__(self, prog: str, **how):
        width = max(40, min(shutil.get_terminal_size().columns, WIDEST) - 2)
        super().__init__(prog, **{"max_help_position": 28, "width": width} | how)

    def _format_usage(self, usage, actions, groups, prefix) -> str:
        """Many options are listed below, in groups, and not here."""
        named = [action for action in actions if not action.option_strings or action.required]
        if len(actions) - len(named) <= FEW:
            return super()._format_usage(usage, actions, groups, prefix)
        prog, self._prog = self._prog, f"{self._prog} [OPTION ...]"
        try:
            return super()._format_usage(usage, named, (), prefix)
        finally:
            self._prog = prog

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(EXAMPLES) else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of ending the process; the parsers of its commands do so, too."""

    def __init__(self, *args, **how):
        super().__init__(*args, **{"formatter_class": Help} | how)
        self._positionals.title = "arguments"

    def format_help(self) -> str:
        return as_called(super().format_help())

    def parse_args(self, args=None, namespace=None):
        values, unknown = self.parse_known_args(args, namespace)
        if unknown:
            of = " ".join(filter(None, (self.prog, getattr(values, "command", None))))
            raise UsageError("no more words", " ".join(unknown), f"see `{of} --help`")
        return values

    def parse_known_args(self, args=None, namespace=None):
        self._check_options(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _check_options(self, words: Sequence[str]) -> None:
        """Raises UsageError for an unknown option. argparse would first complain about other words, and would not
        suggest the nearest option."""
        below = _commands_of(self)
        for word in words:
            if word == "--" or below and word in below.choices:
                return
            name = word.partition("=")[0]
            if name.startswith("--"):
                known = any(option.startswith(name) for option in self._option_string_actions)
            else:
                known = name[:1] != "-" or not name[1:2].isalpha() or name[:2] in self._option_string_actions
            if not known:
                near = do_you_mean(name, options_of(self))
                do = near if "?" in near else f"`{self.prog} --help` lists the options"
                raise UsageError(f"an option of `{self.prog}`", word, do)

    def error(self, message: str) -> NoReturn:
        do = f"see `{self.prog} --help`"
        below = _commands_of(self)
        if below is not None and message == f"{MESSAGES[0][0]}{below.metavar}":
            raise UsageError(f"`{self.prog}` {listed(below.choices, 'or')}", "none", do)
        for start, end, expected, seen in MESSAGES:
            if message.startswith(start) and end in message:
                inside = message[len(start) :].partition(end or "\n")
                raise UsageError(expected.format(*inside), seen.format(*inside), do)
        raise UsageError("words that fit together", message, do)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        name = _name(action)
        if not arg_string and PATHS & set(str(action.metavar).split("|")):
            raise UsageError(f"{name} with a path", "''", "a shell variable that is not set, perhaps; . is this folder")
        try:
            return super()._get_value(action, arg_string)
        except UsageError as error:
            raise UsageError(f"{name} with {error.expected}", error.seen, error.do) from None
        except argparse.ArgumentError:
            kinds: dict[Any, str] = {int: "a whole number", float: "a number"}
            kind = kinds.get(action.type, "a value that fits")
            raise UsageError(f"{name} with {kind}", repr(arg_string), f"see `{self.prog} --help`") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            name = f"`{self.prog}`" if isinstance(action, argparse._SubParsersAction) else _name(action)
            near = do_you_mean(str(value), known)
            do = near if "?" in near else f"see `{self.prog} --help`"
            raise UsageError(f"{name} {listed(known, 'or')}", repr(value), do)


# argparse's own messages: their start and what follows the object; then our expected and found
MESSAGES = (
    ("the following arguments are required: ", "", "{0}", "none"),
    ("argument ", ": expected one argument", "{0} with a value", "none"),
    ("argument ", ": expected at least one argument", "{0} with at least one value", "none"),
    ("argument ", ": expected 2 arguments", "{0} with two values", "fewer"),
    ("argument ", ": not allowed with argument ", "{0} or {2}", "both"),
    ("one of the arguments ", " is required", "one of {0}", "none"),
    ("ambiguous option: ", " could match ", "one option", "{0}, which may be {2}"),
    ("argument ", ": ignored explicit argument ", "{0} without a value", "{2}"),
)


def _name(action: argparse.Action) -> str:
    """An argument as a message names it: an option by its longest name."""
    return max(action.option_strings, key=len) if action.option_strings else str(action.metavar or action.dest.upper())


def _commands_of(parser: argparse.ArgumentParser) -> argparse._SubParsersAction | None:
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """The options that its help shows."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [name for action in shown for name in action.option_strings]


def listed(names: Iterable[str], conjunction: str) -> str:
    """ "a, b or c"."""
    *rest, last = names
    return f"{', '.join(rest)} {conjunction} {last}" if rest else last


def examples(lines: Iterable[tuple[str, str]]) -> str:
    """The examples at the end of a help text, with their effects."""
    lines = list(lines)
    words = [f"./ssdrig {example}" for example, _ in lines]
    width = max(map(len, words), default=0)
    if width + max((len(what) for _, what in lines), default=0) + 4 <= shutil.get_terminal_size().columns:
        rows = [f"  {word:{width}}  {what}" for word, (_, what) in zip(words, lines, strict=True)]
    else:
        rows = [f"  # {what}\n  {word}" for word, (_, what) in zip(words, lines, strict=True)]
    return EXAMPLES + "\n".join(rows)


# ---- what many commands have


def add_quiet(parser: Any, words: str = "no progress on stderr") -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help=words)


def add_dry_run(parser: Any, words: str) -> None:
    parser.add_argument("-n", "--dry-run", action="store_true", help=words)


def add_output(parser: Any, words: str) -> None:
    """-o; `--out` is the beginning of its long name."""
    parser.add_argument("-o", "--output", dest="out", metavar="FILE", help=words)


def add_drive(parser: Any, words: str) -> None:
    """DRIVE, or --drive DRIVE as in `run`: None if neither is given."""
    parser.set_defaults(drive=None)  # first, or it would become the default of both
    parser.add_argument("drive", nargs="?", metavar="DRIVE", default=argparse.SUPPRESS, help=words)
    parser.add_argument("--drive", metavar="DRIVE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


# ---- quantities


def seconds(text: str) -> float:
    """ "90", "90 s" -> 90.0; "5m" -> 300.0; for `type`. Raises UsageError."""
    try:
        return float(text) if text.strip().replace(".", "", 1).isdecimal() else parse_seconds(text)
    except UsageError as error:
        raise UsageError("a duration such as 90 (seconds), 5m or 1.5h", error.seen, error.do) from None


def whole_seconds(text: str) -> int:
    """The same where only whole seconds do. Raises UsageError."""
    try:
        return int(text)  # also a negative one, which its command refuses with its bounds
    except ValueError:
        pass
    parsed_s = seconds(text)
    if parsed_s != int(parsed_s):
        raise UsageError("whole seconds", repr(text), "round it")
    return int(parsed_s)


def whole(unit: str) -> Callable[[str], int]:
    """A type: a quantity with its unit, in whole numbers of `unit`: whole("us")("1.5ms") -> 1500. Raises UsageError."""

    def parse(text: str) -> int:
        quantity = parse_in(unit, text)
        if abs(quantity - round(quantity)) > 1e-6:
            raise UsageError(f"whole {unit}", repr(text), "round it")
        return round(quantity)

    return parse


def number(unit: str) -> Callable[[str], float]:
    """A type: a quantity with its unit, as a number of `unit`: number("mA")("0.3A") -> 300.0. Raises UsageError."""
    return lambda text: parse_in(unit, text)
