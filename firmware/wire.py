"""The wire between rig and host, protocol version 1. This file runs on MicroPython and on CPython; the host links it.

    frame on the wire    COBS( kind u8 | seq u32 | body | crc32 u32 ) 0x00            all integers little endian

    rig -> host          H  hello    body: JSON text, see below
                         S  samples  rail u8 | config u8 | n u8 | missed u32 | index u32 | t0_us u64 | n * sample
                                     sample: dt_us u16 | vbus 3 bytes | current 3 bytes (two's complement)
                         E  energy   rail u8 | config u8 | index u32 | t_us u64 | energy 5 bytes | charge 5 bytes
                                     | die_temp i16 | diag u16
                         P  pong     token u32 | t_us u64 | held_us u32
                         L  log      UTF-8 text
                         A  armed    token u32 | valid_ms u32
                         C  cut      JSON, see below: what a cut did
                         W  waveform rail u8 | channel u8 | first u32 | t0_us u64 | dt_ns u32 | n u8 | n * u16
                         T  trip     JSON, see below: a rail passed its limits and was opened
                         F  fast     rail u8 | channel u8 | number u32 | t0_us u64 | n u32 | sum u32 | peak u32
                                     | at u32 | limited u8 | lost u32 | volts u32
                         N  no       JSON {"command": letter, "why": text}: a command was refused, nothing was done
    host -> rig          h  hello    empty: the rig answers H
                         g  go       empty: streaming starts (and sample index and accumulators restart at 0)
                         x  stop     empty: streaming stops
                         p  ping     token u32: the rig answers P immediately; t_us is the middle between the time
                                     its first byte was seen and the answer, so the host's midpoint is unbiased;
                                     held_us is the time between these two
                         q  quit     empty: back to the REPL
                         a  arm      empty: the rig answers A; its token is good for one `c` within valid_ms
                         c  cut      JSON, see below
                         o  on       JSON {"rails": [..], "unsafe": bool}: rails that are off get power again; or
                                     {"call_off": true}: a cut that has not fired does not. Answered by C, or N
                         s  scope    JSON {"gpio": g or [g, ..], "rate" (samples/s of all inputs together),
                                     "before", "after" (samples of each), "trigger": "cut" or "now"}: answered by H,
                                     then W; or N; a `c` follows it if its cut is to be in the picture
                         l  lock-outs JSON {"token"}: trips the lock-outs while all rails are off; answered by C, or N
                         k  calibrate  JSON {"rail", "calibration": object or null}: kept on the board; answered by H,
                                     or N (also while the stream runs)

Guarantees. seq rises by one per frame and direction, from 0 at boot, over all kinds: a lost frame is seen. t_us is
64-bit board time in microseconds, never wrapping; it starts at boot, at any value. t0_us is the time of the first
sample; each dt_us is the distance to the sample before (0 for the first). index counts conversions since `go` and
names the first sample of the frame, so index + n of one frame is the index of the next unless conversions were lost;
`missed` is how many the rig knows it lost since `go`. Registers are the chip's raw integers (INA228: 20-bit values,
already shifted right by 4).
An E frame comes at `go` (index 0, registers 0), then about once a second (later, while other rails want the bus at the
same moments), right after a conversion, whose time t_us is. Its registers hold exactly the conversions before its
`index`, since `go` or, if `config` has changed since, within this config: when a sensor has lost its supply the rig
reports it (L), configures it under a new config id, sends H again, and an E frame immediately, which is the base of the
accumulators' new count. H carries {"protocol", "boot" (random integer, new at each boot), "board", "firmware",
"simulated", "rails": [{"rail", "name", "chip", "config", "shunt_uOhm", "current_lsb_pA", "vbus_lsb_nV", "adc_config",
"shunt_cal", "conversion_ns", "shunt_ns" (of these this many see the current), "lead_mOhm" (between shunt and drive,
both ways), "nominal_mV" (of the rail, or null)}]}; all integers but vbus_lsb_nV (195312.5). die_temp is 0 of a sensor
whose configuration converts no temperature. "config" is the id that S and E frames carry.
"buses" is [{"bus", "Hz" (of its clock), "asked_Hz" (that it should have), "read_backs", "errors"}]: when the board
starts it writes registers of the sensors and reads them back, at 1 MHz, and at 400 kHz if that is wrong. A rail's
"die_mC" is the temperature of its sensor then (null: it has none, or no answer), "protect" its limits or null.
"revision" is what board.json states of the printed board, or null. "stamp_ns" is by how much a sample's stamp may miss
the end of its conversion.
A rail has "bus", "calibration" and "shunt_tolerance_ppm", too (calibration: null or the object that
`k` stored; its content, all integers and text, is defined in the host's calibration.py), if its build has it
"shunt_emf_nV_per_C", "amplifier_nA" (0 to that flows through the shunt into the fast channel) and "low", and H has
"serial" (hexadecimal, the board's own), "build" (the name in its board.json, or null), and "switch": null, or {"rails":
[{"rail", "profiles", "discharge_mOhm"}], "sideband": bool, "resolution_ns", "dead_us", "state", "off": [rails that
have no power]}, and "scope": [{"rail", "gpio", "nV_per_count", "rates", "samples" (most per capture)}]. W frames come
one after the other, one channel after the other: channel is the GPIO, values are counts, first is the number of the
piece's first sample in the channel's picture, whose time is t0_us, dt_ns from one of them to the next; the picture
holds `before` samples before the event (fewer if it was too early) and `after`.

Two ranges. A rail with "low" in H, {"shunt_uOhm", "shunt_tolerance_ppm", "feed_nA" (that it gets past the sensor)}, has
a resistor in its line and a bypass across it: while this is open the sensor sees "low"'s shunt_uOhm instead of the
rail's, and CURRENT, ENERGY and CHARGE are in steps that are finer by the ratio of the two. Each stretch of conversions
of one range has its own config, without an H: of an id the last two bits are 0 in the high range, 1 in the low
one, 2 of conversions in which the bypass moves. These are not samples: as one of the high range such a CURRENT is the
most that flowed, as one of the low range the least.

The fast current channel. "fast" of H is null or absent, or {"rail", "gpio", "nA_per_count", "step_ns", "width",
"interval", "limit"}: an amplifier across that rail's shunt, read by the ADC each step_ns while the stream runs and the
scope does not. With "adc" (the name of a converter), "volts" (a GPIO, as "gpio" is the current's) and "nV_per_count"
the rail's voltage is converted in the same moments. An F frame has of n samples in a row (`interval` of them; fewer
before a break), the first of them at t0_us, the `sum` of their counts, and the highest sum of `width` in a row that
ends among them, `peak`: it ends with sample `at` of these n, and `limited` of its samples are at `limit` or above,
where the amplifier ends. The next frame goes on where the last one ended unless t0_us differs. `lost`: samples since
`go` that were not read in time. `volts`: the sum of the voltage's counts in the same moments as those of `peak`; 0
without "volts". `s` takes "volts" and "gpio" too, at 250 kS/s each: W frames of "gpio" are then counts of current.

The gates' supply. "gate_supply" of H is null or absent, or {"gpio", "nV_per_count", "mV" (nominal)}: `s`
takes that "gpio" too; its W frames have rail 255.

The lock-outs. "lock_outs" of "switch" in H is true on a board that can trip them. `l` opens every rail, PERST# low,
waits until each has been below 300 mV for 10 ms, pulls the lock-outs' reference down and closes the switches for 20 ms:
a rail that comes on has no lock-out. Then all get power again, and C has "token": 0, "rails": [] and
    "lock_outs": [{"rail", "mV" (the highest reading in the test; null if too few came)}]
which is absent if the rails did not fall, the stream was stopped, or `o` ended the test.

The switch. A rail has power unless the rig takes it away: at reset, in the REPL and after a defect it is on. A cut is
    {"token", "rails": [..], "profile", "when", "off_ms", "residual_mV", "residual_ms"} and the profile's own fields.
profile: one of "profiles" of H; what each does and its own fields stand in cut.py. when, one of
    {"now": true}                              {"t_us": board time, 2 ms to 500 s ahead}
    {"random_us": [a, b], "seed": n}           from now on, uniform, the same for the same seed
    {"samples": n, "above_raw": i, "rail": r}  n samples of that rail in a row have a CURRENT above i, or below it:
                                               "below_raw"; and this long after the last of them, if wanted, drawn from
                                               a to b us, 5 s at most: "after_us": [a, b], "seed": n; with "crosses":
                                               true only after a sample that has not: the beginning of a burst; with
                                               "nth": k not at the first sample that ends n such in a row, but at the
                                               k-th, in whichever bursts these lie: the current has it still
    {"edge": "rising" or "falling", "gpio": g, "timeout_ms": n}
Rails that are cut together are cut in one cycle (resolution_ns) and come back together. off_ms (not shorter than a
ramp): power returns after it (null: by `o`), but only once every cut rail has been below residual_mV (300) for
residual_ms (500); until then it stays off, and after 10 s more C reports it: such a rail gets power by an `o` with
"unsafe": true only, and none during a ramp. A board that drives PERST# and the side-band ("sideband" of H) holds PERST#
low and isolates the rest in the cycle of the cut, joins it when the rails are back at 90 %, and releases PERST# 120 ms
later; a cut that ends on its own leaves them alone. Such a cut has 3 rails at most. The stream must run: what cannot
be measured is not cut. C comes when power has returned, or, without off_ms, when the rails are known to be off, and
again after `o`:
    {"token", "fired_us", "off_us", "on_us", "perst_us", "ok", "why", "rails": [{"rail", "before_mV", "t90_10_us",
    "residual_mV", "low_us", "samples", "safe", "crowbar_mJ", "released", "fed_mA"}]}
fired_us: board time of the edge at the gate; on_us: of the gate's return, null while off; off_us: between the two;
perst_us: board time at which PERST# was released, null if it was not driven; t90_10_us: fall from 90 to 10 % of
before_mV as VBUS conversions saw it, interpolated, null if it did not fall so far; residual_mV: the latest reading
before power returned, the lowest if it did on its own; low_us: from the edge to the first reading below residual_mV;
crowbar_mJ: what went into the discharge resistor, by the readings, null if the profile leaves it open; released: null,
or why its switch was opened before power returned: at 500 mJ, on a rail that does not fall, without readings of a rail
that was high, and when the rig gave up (also reported by L, immediately); fed_mA: what the closed discharge switch
carried at residual_mV, null where it was open. A closed one has 0: its current comes from the host's signals.

Limits. A rail whose "protect" in H is {"A", "ms", "V"} is opened by the rig itself: at the latest ms after its current
has passed A, or when two readings in a row are above V. It reports that immediately,
    {"rail", "quantity": "A" or "V", "seen_mA" or "seen_mV", "limit_mA" or "limit_mV", "over_us" (of A: for how long),
    "t_us" (of the sample that decided), "opened_us" (board time of the gate's pin; null: the rail has no switch)}
and the rail stays open until `o` (answered by C with no rails), over `q` and a reset too; "switch" of H has it in "off"
and in "tripped" meanwhile, with "state": "tripped", and nothing else is cut. A cut that was under way ends. The
side-band is sealed with it, and its discharge switch closes; after `o` "state" is "returning" until PERST# is released.
Any change that an old reader would misread raises PROTOCOL; the host refuses another number and names both.
"""

import struct
from binascii import crc32

PROTOCOL = 1
HELLO, SAMPLES, ENERGY, PONG, LOG, ARMED, CUT_REPORT, WAVEFORM, REFUSED, TRIP, FAST = b"HSEPLACWNTF"
ASK_HELLO, GO, STOP, PING, QUIT, ARM, CUT, ON, SCOPE, CALIBRATE, LOCK_OUTS = b"hgxpqacoskl"

HEAD = "<BI"  # kind, seq
SAMPLES_HEAD = "<BBBIIQ"  # rail, config, n, missed, index, t0_us
SAMPLE_BYTES = 8  # dt_us u16, vbus u24, current i24
ENERGY_BODY = "<BBIQ5s5shH"  # rail, config, index, t_us, energy, charge, die_temp, diag
PONG_BODY = "<IQI"  # token, t_us, held_us
ARMED_BODY = "<II"  # token, valid_ms
WAVEFORM_HEAD = "<BBIQIB"  # rail, channel, first, t0_us, dt_ns, n
FAST_BODY = "<BBIQIIIIBII"  # rail, channel, number, t0_us, n, sum, peak, at, limited, lost, volts


def _places(body):
    """At which byte of its frame, kind and seq included, each field of a body begins, and the byte after the last."""
    places, count = [struct.calcsize(HEAD)], ""
    for letter in body[1:]:
        count += letter
        if not letter.isdigit():
            places.append(places[-1] + struct.calcsize("<" + count))
            count = ""
    return places


# Places of the fields, for code that reads and writes frames in place. The last of each is where the body ends; samples
# of an S frame and values of a W frame follow there.
BODY = struct.calcsize(HEAD)
S_RAIL, S_CONFIG, S_N, S_MISSED, S_INDEX, S_T0, S_FIRST = _places(SAMPLES_HEAD)
E_RAIL, E_CONFIG, E_INDEX, E_T, E_ENERGY, E_CHARGE, E_TEMP, E_DIAG, E_END = _places(ENERGY_BODY)
P_TOKEN, P_T, P_HELD, P_END = _places(PONG_BODY)
A_TOKEN, A_VALID, A_END = _places(ARMED_BODY)
W_RAIL, W_CHANNEL, W_NUMBER, W_T0, W_STEP, W_N, W_FIRST = _places(WAVEFORM_HEAD)
F_RAIL, F_CHANNEL, F_NUMBER, F_T0, F_N, F_SUM, F_PEAK, F_AT, F_LIMITED, F_LOST, F_VOLTS, F_END = _places(FAST_BODY)
MAX_SAMPLES = 50
MAX_COMMAND = 1024  # longest encoded frame from the host, delimiter included
MAX_FRAME = 5120  # longest encoded frame, delimiter included: H of four calibrated rails with their switches


class WireError(Exception):
    """Bytes that are not a frame: bad COBS, bad CRC, too short or too long."""


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
    out = bytearray(data)  # in place, because it must be fast on the host: each code becomes the zero it represents
    n = len(out)
    i = 0
    longest = []  # codes after a block of 254 represent nothing
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
