"""The wire between rig and host, protocol version 1. This file runs on MicroPython and on CPython; the host links it.

    frame on the wire    COBS( kind u8 | seq u32 | body | crc32 u32 ) 0x00            all integers little endian

    rig -> host          H  hello    body: JSON text, see below
                         S  samples  rail u8 | config u8 | n u8 | missed u32 | index u32 | t0_us u64 | n * sample
                                     sample: dt_us u16 | vbus 3 bytes | current 3 bytes (two's complement)
                         E  energy   rail u8 | config u8 | index u32 | t_us u64 | energy 5 bytes | charge 5 bytes
                                     | die_temp i16 | diag u16
                         P  pong     token u32 | t_us u64
                         L  log      UTF-8 text
    host -> rig          h  hello    empty: the rig answers H
                         g  go       empty: streaming starts (and sample index and accumulators restart at 0)
                         x  stop     empty: streaming stops
                         p  ping     token u32: the rig answers P at once; t_us is the middle between the time
                                     its first byte was seen and the answer, so the host's midpoint is unbiased
                         q  quit     empty: back to the REPL

Guarantees. seq rises by one per frame and direction, from 0 at boot, over all kinds: a lost frame is seen. t_us is
64-bit board time in microseconds, never wrapping; it starts at boot, at any value. t0_us is the time of the first
sample; each dt_us is the distance to the sample before (0 for the first). index counts conversions since `go` and
names the first sample of the frame, so index + n of one frame is the index of the next unless conversions were lost;
`missed` is how many the rig knows it lost since `go`. Registers are the chip's raw integers (INA228: 20-bit values,
already shifted right by 4).
An E frame comes at `go` (index 0, registers 0), then about once a second, right after a conversion, whose time t_us
is. Its registers hold exactly the conversions before its `index`, since `go` or, if `config` has changed since, within
this config: when a sensor has lost its supply the rig says so (L), configures it under a new config id, sends H again,
and an E frame at once, which is the base of the accumulators' new count.
H carries {"protocol", "boot" (random integer, new at each boot), "board", "firmware", "simulated", "rails": [{"rail",
"name", "chip", "config", "shunt_uOhm", "current_lsb_pA", "vbus_lsb_nV", "adc_config", "shunt_cal", "conversion_ns"}]};
all integers but vbus_lsb_nV (195312.5). "config" is the id that S and E frames carry.
Any change that an old reader would misread raises PROTOCOL; the host refuses another number and names both.
"""

import struct
from binascii import crc32

PROTOCOL = 1
HELLO, SAMPLES, ENERGY, PONG, LOG = b"HSEPL"
ASK_HELLO, GO, STOP, PING, QUIT = b"hgxpq"

HEAD = "<BI"  # kind, seq
SAMPLES_HEAD = "<BBBIIQ"  # rail, config, n, missed, index, t0_us
SAMPLE_BYTES = 8  # dt_us u16, vbus u24, current i24
ENERGY_BODY = "<BBIQ5s5shH"  # rail, config, index, t_us, energy, charge, die_temp, diag
PONG_BODY = "<IQ"  # token, t_us
MAX_SAMPLES = 50
MAX_FRAME = 1024  # longest encoded frame, delimiter included


class WireError(Exception):
    """Bytes that are no frame: bad COBS, bad CRC, too short or too long."""


def cobs_encode(data):
    """Consistent overhead byte stuffing (Cheshire & Baker 1999): bytes -> bytes without 0x00, no delimiter."""
    out = bytearray(1)
    code_at = 0
    code = 1
    for b in data:
        if b:
            out.append(b)
            code += 1
        if not b or code == 255:
            out[code_at] = code
            code_at = len(out)
            out.append(0)
            code = 1
    out[code_at] = code
    return bytes(out)


def cobs_decode(data):
    """Inverse of cobs_encode. WireError if a block runs past the end or a 0x00 is inside."""
    if b"\x00" in data:
        raise WireError("zero inside a frame")
    out = bytearray(data)  # in place, because it must be fast on the host: each code becomes the zero it stands for
    n = len(out)
    i = 0
    longest = []  # codes behind a block of 254 stand for nothing
    while i < n:
        code = out[i]
        out[i] = 0
        i += code
        if code == 255:
            longest.append(i)
    if i != n:
        raise WireError("bad COBS block")
    for i in reversed(longest):
        out = out[:i] + out[i + 1 :]
    return bytes(out[1:])


def encode(kind, seq, body=b""):
    """One frame, ready to send, delimiter included."""
    payload = struct.pack(HEAD, kind, seq & 0xFFFFFFFF) + body
    return cobs_encode(payload + struct.pack("<I", crc32(payload))) + b"\x00"


def decode(frame):
    """Frame without its delimiter -> (kind, seq, body). WireError if it is not one."""
    raw = cobs_decode(frame)
    if len(raw) < 9:
        raise WireError("frame too short")
    if struct.unpack("<I", raw[-4:])[0] != crc32(raw[:-4]):
        raise WireError("bad CRC")
    kind, seq = struct.unpack(HEAD, raw[:5])
    return kind, seq, raw[5:-4]
