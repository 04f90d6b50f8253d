"""What can be wrong with a SIMULATED rig: a rail's supply that surges, a load that comes later, a switch, a crowbar or
a wire that has failed. A row's "true" (faults.py) sets it for a rail; the firmware knows nothing of it."""

from supply import Supply

SOURCE_ohm = 0.03  # of the supply with fuse and switch, before the shunt: what a crowbar pulls against
SWITCH = (
    "series open",
    "series short",
    "gate line open",
    "crowbar open",
    "crowbar short",
    "crowbar with OFF",
    "no lock-out",
)


class Surging:
    """A rail's source (feed_reader.py) that gives and takes more at times. surges: [[seconds since boot, A, V]], what
    is drawn and given on top from then on; ohm: of a bad wire before the sensor."""

    def __init__(self, source, boot, surges, ohm=0.0):
        self.source, self.volts, self.ohm = source, source.volts, ohm
        self.lead = getattr(source, "lead", 0.0)
        self.surges = [(boot + int(s * 1e9), amps, volts) for s, amps, volts in surges]

    def window(self, t0, t1, t2):
        amps, volts = self.source.window(t0, t1, t2)
        for t, more_A, more_V in self.surges:
            amps += more_A * part(t, t0, t1)
            volts += more_V * part(t, t1, t2)
        return amps, volts - amps * self.ohm

    def steps(self, t0, t1):
        ends = [(end, amps) for end, amps in self.source.steps(t0, t1)]
        turns = sorted([t for t, more_A, _ in self.surges if t0 < t < t1] + [end for end, _ in ends])
        out, k = [], 0
        for end in turns:
            while ends[k][0] < end:
                k += 1
            out.append((end, ends[k][1] + sum([more_A for t, more_A, _ in self.surges if t < end])))
        return out


def part(t, begin, end):
    """Share of begin..end that falls after t, 0 to 1."""
    return 0.0 if t >= end else 1.0 if t <= begin else (end - t) / (end - begin)


class Broken(Supply):
    """A rail whose `fault` is one of SWITCH."""

    def __init__(self, fault, *of_supply):
        if fault not in SWITCH:
            raise ValueError("SIMULATED rail: %s is not a fault of a switch" % fault)
        super().__init__(*of_supply)
        self.fault, self.pulled = fault, False

    def gate(self, t, pins):
        self.pulled = self.fault == "series short" and bool(pins & 2)
        if self.fault in ("series short", "gate line open"):
            return
        if self.fault == "series open":
            pins |= 1
        elif self.fault == "crowbar open":
            pins &= 1
        elif self.fault != "no lock-out" and pins & 1:  # crowbar short, or closed by OFF itself
            pins = 3
        super().gate(t, pins)

    def lock_out(self, t, tripped):
        if self.fault != "no lock-out":
            super().lock_out(t, tripped)

    def window(self, t0, t1, t2):
        amps, volts = super().window(t0, t1, t2)
        return amps, self._held(volts)

    def at(self, t):
        amps, volts = super().at(t)
        return amps, self._held(volts)

    def _held(self, volts):
        """With its crowbar across a rail that is on."""
        if self.pulled or self.fault == "crowbar short" and not self.pins & 1:
            return volts * self.load.discharge / (self.load.discharge + SOURCE_ohm)
        return volts


def supply(true, *of_supply):
    """A rail's Supply as its row's "true" has it."""
    fault = true.get("switch")
    return Broken(fault, *of_supply) if fault else Supply(*of_supply)
