"""A Powenetics v2 on a serial port: `powenetics:PORT?rails=pcie-slot-3.3V,pcie-slot-12V`. `?rails=` states which of
RAILS feed the drive (those of a PCIe slot); `V=` and `A=` are limits of its manual.

A packet of 69 bytes comes a millisecond: CA AC, a number of 16 bits, and of 13 channels mV of 16 and mA of 24 bits, big
endian, without a checksum (Phoronix Test Suite, pull request 920; UniStuttgart-VISUS/libpowenetics). A packet counts
where another begins behind it, whose number is at most NEAR further. It has no time: numbered.py. Nothing but the start
of the stream is sent: other commands of the same form clear its calibration."""

import struct
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import manual, meter
from ssdrig.meter.numbered import Numbered

RAILS = (  # by channel, with their nominal V
    *(("atx-3.3V", 3.3), ("atx-5V-standby", 5.0), ("atx-12V", 12.0), ("atx-5V", 5.0), ("eps-1", 12.0)),
    *(("atx12vo-standby", 12.0), ("eps-3", 12.0), ("eps-2", 12.0), ("pcie-3", 12.0), ("pcie-2", 12.0)),
    *(("pcie-slot-3.3V", 3.3), ("pcie-slot-12V", 12.0), ("pcie-1", 12.0)),
)
USUAL = "pcie-slot-3.3V,pcie-slot-12V"
EXAMPLE = f"powenetics:/dev/ttyUSB0?rails={USUAL}"
BAUD = 921_600
MARK, START = b"\xca\xac", b"\xca\xac\xbd\x90"
HEAD, PACKET = 4, 69
PERIOD_NS = 1_000_000
BOUND_NS = 20_000_000  # of a time: what the USB serial port holds back, whose timer has 16 ms, and the first seconds
SILENT_S = 3.0
NUMBERS = 1 << 16
NEAR = 2000


class Powenetics:
    """See meter.Meter."""

    name = "Powenetics v2"

    def __init__(self, link, port: str, channels: list[int], accuracy: meter.Accuracy):
        self._link, self.serial, self._channels, self._accuracy = link, port, channels, accuracy
        self._bytes = b""
        link.write(START)

    def rails(self) -> list[meter.Rail]:
        return [
            meter.Rail(RAILS[n][0], PERIOD_NS / 1e9, self._accuracy, 0.0, RAILS[n][1], digit_V=1e-3, digit_A=1e-3)
            for n in self._channels
        ]

    def clock(self) -> meter.Clock:
        return meter.Clock(BOUND_NS)

    def packets(self) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
        """For each read that had any: when it returned, and its packets (number, channels). Raises OSError."""
        heard_ns = time.monotonic_ns()
        while True:
            self._bytes += self._link.read(max(1, self._link.in_waiting))
            now_ns, out = time.monotonic_ns(), []
            while len(self._bytes) >= PACKET + HEAD:
                number, next_ = (_number(self._bytes[at : at + HEAD]) for at in (0, PACKET))
                if number is not None and next_ is not None and 1 <= (next_ - number) % NUMBERS <= NEAR:
                    out.append((number, self._bytes[4:PACKET]))
                    self._bytes = self._bytes[PACKET:]
                else:  # in the midst of one, or damaged
                    at = self._bytes.find(MARK, 1)
                    self._bytes = self._bytes[at:] if at > 0 else self._bytes[-1:]
            if out:
                heard_ns = now_ns
                yield now_ns, out
            elif now_ns - heard_ns > SILENT_S * 1e9:
                raise OSError(f"no packet for {SILENT_S:g} s")

    def blocks(self) -> Iterator[meter.Block]:
        next_, clock = None, Numbered(PERIOD_NS)
        for now_ns, packets in self.packets():
            runs: list[tuple[int, int, list[bytes]]] = []  # packets missed before, number of the first, packets
            for number, channels in packets:
                missed = (number - next_) % NUMBERS if next_ is not None else 0
                if missed or not runs:
                    runs.append((missed, number if next_ is None else next_ + missed, []))
                runs[-1][2].append(channels)
                next_ = runs[-1][1] + len(runs[-1][2])
            assert next_ is not None  # packets() gives none that are empty
            clock.came(next_ - 1, now_ns)
            for missed, first, run in runs:
                times_ns = [clock.end_ns(number) for number in range(first, first + len(run))]
                for rail, n in enumerate(self._channels):
                    pairs = [struct.unpack_from(">HBH", channels, 5 * n) for channels in run]
                    volts = [mV / 1000 for mV, _, _ in pairs]
                    amperes = [(high << 16 | low) / 1000 for _, high, low in pairs]
                    yield meter.Block(rail, times_ns, volts, amperes, missed, BOUND_NS)

    def close(self) -> None:
        self._link.close()


def _number(head: bytes) -> int | None:
    """The packet that begins like this; None: none does."""
    return int.from_bytes(head[2:], "big") if head.startswith(MARK) else None


def check(rest: str) -> None:
    """Raises UsageError for another kind of URL."""
    _parts(rest)


def opened(rest: str) -> Powenetics:
    import serial

    port, channels, accuracy = _parts(rest)
    try:
        link = serial.Serial(port, BAUD, timeout=0.1, exclusive=True)
        link.reset_input_buffer()
        made = Powenetics(link, port, channels, accuracy)
        next(made.packets())
    except (OSError, ValueError) as error:
        raise RigError(f"a Powenetics v2 at {port} that sends packets", str(error), EXAMPLE) from error
    return made


def _parts(rest: str) -> tuple[str, list[int], meter.Accuracy]:
    port, _, query = rest.partition("?")
    options, names = dict(parse_qsl(query)), [name for name, _ in RAILS]
    asked = options.pop("rails", USUAL).split(",")
    accuracy = manual.accuracy(options, EXAMPLE, "its maker's limits are not known here: state V= and A= of its manual")
    if unknown := [name for name in asked if name not in names] or sorted(options.keys() - {"V", "A"}):
        raise UsageError(f"?rails= of {', '.join(names)}; V=, A=", ", ".join(unknown), EXAMPLE)
    if not port or len(set(asked)) < len(asked):
        raise UsageError("powenetics:PORT, each rail once", rest or "nothing", EXAMPLE)
    return port, [names.index(name) for name in asked], accuracy
