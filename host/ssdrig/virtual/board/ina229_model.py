"""Register-level model of TI's INA229 (SLYS023), SIMULATED: an INA228 with SPI. Runs on MicroPython and on CPython.

A frame lasts from the fall of CS to its rise: a byte register << 2 | R/W, then the register, most significant byte
first. A read shows what the register holds when the first byte has ended; a write shifts the old content out. Stricter
than the chip: bit 1 of the first byte set, and a frame that is shorter or longer than its register, are errors."""

from ina228_model import INA228


class INA229(INA228):
    NAME = "INA229"
    IDS = {0x3E: 0x5449, 0x3F: 0x2291}
    OFTEN = INA228.OFTEN + ("exchange", "select", "deselect")

    def power_on(self, t):
        super().power_on(t)
        self.reading = 0
        self.cut_off = True  # in the middle of a frame: the rest of it is nothing

    def select(self):
        """CS falls."""
        self.count = 0
        self.cut_off = False

    def exchange(self, byte, t):
        """A byte on MOSI that ends at t -> the byte on MISO."""
        if self.cut_off:
            return 0
        n = self.count
        self.count = n + 1
        if n == 0:
            if byte & 2:
                raise ValueError("SIMULATED INA229: bit 1 of a frame's first byte %02x is set" % byte)
            self.register = byte >> 2
            self.reading = byte & 1
            self.width = 2
            self.written = 0
            if self.reading:
                self.out, self.width = self.value(self.register, t)
            else:
                self.out = self.reg.get(self.register, 0)
            return 0
        if n > self.width:
            raise ValueError(
                "SIMULATED INA229: register %02x has %d bytes, the frame is longer" % (self.register, self.width)
            )
        self.written = self.written << 8 | byte
        if n == self.width and not self.reading:
            self.write(self.register, self.written, t)
        return self.out >> 8 * (self.width - n) & 255

    def deselect(self):
        """CS rises."""
        if not self.cut_off and self.count != self.width + 1:
            raise ValueError(
                "SIMULATED INA229: a frame of %d bytes for register %02x of %d"
                % (self.count, self.register, self.width)
            )
