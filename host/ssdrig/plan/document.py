"""The text of a plan -> its tables: TOML, limited in size and depth. Pure, except `load`, which reads a file."""

import json
import math
import os
import stat
import tomllib
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.base.system import NONBLOCK
from ssdrig.base.terminal import printable

MOST_BYTES = 1 << 16
LONGEST_LINE = 1000  # tomllib takes quadratic time for a key of many parts
DEEPEST = 8
OTHER_PLAN = "name another file; `./ssdrig plans` lists those of ssdrig"
LARGEST = 1 << 63
LONGEST_SHOWN = 80


def load(path: Path, what: str = "plan file", do: str = OTHER_PLAN) -> str:
    """The text of a plan file. Raises UsageError.

    what: the kind of file, for messages
    do: the hint for a file that cannot be read"""
    expected = f"a {what} in UTF-8 of at most {MOST_BYTES >> 10} KiB"
    name = printable(str(path))
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(expected, f"not a regular file: {name}", do)
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(expected, f"more than that in {name}", do)
        return data.decode()
    except UnicodeDecodeError as error:
        seen = f"byte 0x{error.object[error.start]:02x} at {error.start} in {name}"
        raise UsageError(expected, seen, "save the file as UTF-8") from error
    except OSError as error:
        raise UsageError(expected, f"{name}: {error.strerror}", do) from error
    except ValueError as error:  # a NUL or half a character in its name
        raise UsageError(expected, f"{name}: {error}", do) from error


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a FIFO."""
    return os.open(path, flags | NONBLOCK)


def parse(text: str, where: str) -> dict:
    """The tables of a plan's text. Raises UsageError."""
    text = text.removeprefix("\ufeff")  # some editors begin a file with this mark
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            raise UsageError(
                f"lines of at most {LONGEST_LINE} characters",
                f"{len(line)} in line {number} of {where}",
                "break the line: a list may go over several",
            )
    if len(text) > MOST_BYTES:
        raise UsageError(f"a plan of at most {MOST_BYTES >> 10} KiB", f"{len(text) >> 10} KiB in {where}", "shorten it")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError("TOML", f"{printable(str(error))} in {where}", "correct that line; see toml.io") from error
    except (ValueError, RecursionError) as error:  # an integer of 5000 digits, a list in a list in a list …
        seen = "lists inside of lists" if isinstance(error, RecursionError) else "a number of thousands of digits"
        raise UsageError("values that a plan can use", f"{seen} in {where}", "correct it") from error
    check(document, where)
    return document


def check(document: dict, where: str) -> None:
    """Raises UsageError for values that are invalid anywhere in a plan: deep nesting, numbers beyond 64 bits, inf,
    nan."""
    waiting: list[tuple[str, object, int]] = [("", document, 0)]
    while waiting:
        key, value, depth = waiting.pop()
        if isinstance(value, (dict, list)):
            if depth > DEEPEST:
                seen = f"deeper ones in {_key(key)} in {where}"
                raise UsageError(f"tables and lists at most {DEEPEST} deep", printable(seen), "take them apart")
            inside = value.items() if isinstance(value, dict) else ((key, inner) for inner in value)
            waiting += [(of, inner, depth + 1) for of, inner in inside]
        elif (isinstance(value, int) and abs(value) >= LARGEST) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            seen = f"{shown({key: value}).strip('{ }')} in {where}"
            raise UsageError("numbers that fit in 64 bits", seen, "correct it")


def shown(value) -> str:
    """A value as the plan writes it, for messages: on one line, printable and short."""
    text = printable(toml(value))
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def toml(value) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= LARGEST:
        return hex(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml(inner)}" for key, inner in value.items()) + " }"
    return str(value)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("-", "").replace("_", "").isalnum() else json.dumps(key)
