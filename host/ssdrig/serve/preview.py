"""Power of the last moments, ten times a second, before its samples are settled: V x I by the rig's last hello, timed
by when the frames came. No clock is fitted, no gap is filled: what meter.samples makes of the same samples two seconds
later takes its place."""

import contextlib

import numpy as np

from ssdrig.meter import power, wire
from ssdrig.meter.frames import decode_samples
from ssdrig.meter.said import document, is_rail
from ssdrig.runs import rigbin, rigrecords

STEP_NS = 100_000_000
KEEP_NS = 10 * 10**9  # a rail that is silent for longer is not waited for


class Preview:
    """Feed it records in file order; rows() returns the complete steps. One row: (start of the step by CLOCK_MONOTONIC
    ns, least, mean and greatest power in W of all rails together). With several rails the extremes are the sums of the
    rails' own, between which the power was."""

    def __init__(self, hello: dict | None = None):
        self._rails: dict[int, dict[int, dict]] = {}  # rail -> config -> facts
        self._steps: dict[int, dict[int, list[float]]] = {}  # start -> rail -> [n, sum, least, greatest]
        self._latest: dict[int, int] = {}  # rail -> time of its last sample
        self.hello(hello)

    def hello(self, hello: dict | None) -> None:
        """Take over the rails from the board's hello."""
        facts = hello.get("rails") if isinstance(hello, dict) else None
        rails: dict[int, dict[int, dict]] = {}
        for fact in facts if isinstance(facts, list) else []:
            with contextlib.suppress(KeyError, TypeError, AttributeError):
                if isinstance(fact["rail"], int) and isinstance(fact["config"], int) and is_rail(fact):
                    rails.setdefault(fact["rail"], {})[fact["config"]] = fact
        if rails:
            self._rails = rails

    def feed(self, records: rigrecords.Records) -> None:
        """Take the next records. Never raises on what a board may have sent."""
        for i in np.flatnonzero(records.kind == rigbin.FRAME).tolist():
            payload = records.payload(i)
            if payload[:1] == bytes([wire.HELLO]):
                try:
                    self.hello(document(payload[wire.BODY :]))
                except ValueError:
                    continue
            elif payload[:1] == bytes([wire.SAMPLES]) and len(payload) >= wire.S_FIRST:
                self._samples(payload, int(records.t_ns[i]))

    def _samples(self, payload: bytes, arrival_ns: int) -> None:
        rail, config, n = payload[wire.S_RAIL], payload[wire.S_CONFIG], payload[wire.S_N]
        facts = self._rails.get(rail, {}).get(config)
        if facts is None or not n or len(payload) != wire.S_FIRST + n * wire.SAMPLE_BYTES:
            return
        data = np.frombuffer(payload, np.uint8)
        at = np.array([wire.S_FIRST]), np.array([n]), np.array([0])
        t_us, vbus, current = decode_samples(data, *at)
        V, I = np.empty(n), np.empty(n)  # noqa: E741
        try:
            power.convert(facts, vbus, current, V, I)
        except (KeyError, TypeError, ValueError):
            return
        watts = V * I
        t_ns = arrival_ns + (t_us - t_us[-1]) * 1000
        self._latest[rail] = arrival_ns
        steps = t_ns // STEP_NS
        for step in np.unique(steps).tolist():
            mine = watts[steps == step]
            row = self._steps.setdefault(step * STEP_NS, {}).setdefault(rail, [0, 0.0, np.inf, -np.inf])
            row[0] += len(mine)
            row[1] += float(mine.sum())
            row[2], row[3] = min(row[2], float(mine.min())), max(row[3], float(mine.max()))

    def rows(self) -> list[tuple[int, float, float, float]]:
        """The steps that every rail has passed, in order."""
        if not self._latest or set(self._latest) != set(self._rails):
            return []
        newest = max(self._latest.values())
        passed = min(t for t in self._latest.values() if t > newest - KEEP_NS)
        out = []
        for start in sorted(self._steps):
            rails = self._steps[start]
            if start + STEP_NS > passed:
                break
            if set(rails) == set(self._rails):
                parts = list(rails.values())
                mean = sum(row[1] / row[0] for row in parts)
                out.append((start, sum(row[2] for row in parts), mean, sum(row[3] for row in parts)))
        return out

    def forget(self, before_ns: int) -> None:
        """Drop the steps that begin before a time: they are settled."""
        self._steps = {start: rails for start, rails in self._steps.items() if start >= before_ns}
