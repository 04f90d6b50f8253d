"""Instruments that speak SCPI, through PyVISA: one door for the meter and the switch of that name."""

import importlib
from typing import Any
from urllib.parse import parse_qsl

from ssdrig.base.deferred import is_installed
from ssdrig.base.errors import RigError, ToolMissing, UsageError, words_of
from ssdrig.base.terminal import printable

TIMEOUT_MS = 3000
LIBRARY = "@py"  # PyVISA-py: pure Python, for LAN, USB and serial ports


class Instrument:
    """One instrument. Its errors are OSError, in words, as a meter that is gone gives them."""

    def __init__(self, resource: str, library: str):
        visa = importlib.import_module("pyvisa")
        self.resource = resource
        try:
            self._link: Any = visa.ResourceManager(library or LIBRARY).open_resource(resource)
            self._link.timeout = TIMEOUT_MS
            self._link.read_termination = self._link.write_termination = "\n"
            self.name = self.ask("*IDN?")
        except (OSError, ValueError, visa.Error) as error:
            do = "see what answers: python -m visa info; e.g. TCPIP::192.168.1.5::INSTR"
            raise RigError(f"an instrument at {resource} that answers *IDN?", words_of(error), do) from error
        self._error = visa.Error

    def ask(self, question: str) -> str:
        """The answer to a question. Raises OSError."""
        try:
            return printable(str(self._link.query(question)).strip())[:200]
        except Exception as error:
            raise OSError(f"{question}: {words_of(error)}") from error

    def number(self, question: str) -> float:
        """The same of a number; 1.2E+0V and the like are. Raises OSError."""
        answer = self.ask(question)
        try:
            return float(answer.split(",")[0].rstrip(" VAW"))
        except ValueError:
            raise OSError(f"{question}: expected a number, seen {answer!r}") from None

    def say(self, command: str) -> None:
        """Send a command. Raises OSError."""
        try:
            self._link.write(command)
        except Exception as error:
            raise OSError(f"{command}: {words_of(error)}") from error

    def close(self) -> None:
        self._link.close()


def require() -> None:
    """Raises ToolMissing without PyVISA."""
    if not is_installed("pyvisa"):
        do = "pip install 'ssdrig[scpi]'; in a clone: .venv/bin/pip install pyvisa pyvisa-py"
        raise ToolMissing("the Python packages pyvisa and pyvisa-py", "they are not installed", do)


def parts(rest: str, known: set[str], example: str) -> tuple[str, dict[str, str]]:
    """Resource and options of `RESOURCE?key=value&…`. Raises UsageError."""
    resource, _, query = rest.partition("?")
    asked = dict(parse_qsl(query, keep_blank_values=True))
    if "::" not in resource or asked.keys() - known:
        seen = ", ".join(sorted(asked.keys() - known)) or resource or "nothing"
        raise UsageError(f"a VISA resource with options of {', '.join(sorted(known))}", seen, example)
    return resource, asked
