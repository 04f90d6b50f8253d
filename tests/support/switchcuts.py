"""For tests of the switch on the SIMULATED board: commands and their answers, and a second rail."""

import json
import struct

from ssdrig.meter import wire

TWELVE = {
    "rail": 1,
    "name": "12 V",
    "chip": "INA228",
    "bus": "I2C0",
    "address": 0x41,
    "alert": 7,
    "shunt_uOhm": 10_000,
    "shunt_tolerance_ppm": 10_000,
    "current_lsb_pA": 7_812_500,
    "fine": True,
    "vbus_us": 150,
    "vshunt_us": 540,
    "temp_us": 50,
}


def twelve(**simulated):
    """Settings of a board with a second rail of 12 V and 0.2 A, 300 uF, 10 Ohm, at GPIO 12, its scope at GPIO 27."""
    return {
        "rails": [
            {
                **TWELVE,
                "simulated": {
                    "A": 0.2,
                    "V": 12.0,
                    "gate": 12,
                    "scope": 27,
                    "discharge_mOhm": 10_000,
                    "bulk_uF": 300,
                    **simulated,
                },
            }
        ]
    }


def answer(b, kind, body, *kinds):
    """Send a command, return the first answer of the kinds: (kind, body)."""
    n = len(b.frames)
    b.send(kind, body)
    return b.until(lambda: next(((k, body) for k, _, body in b.frames[n:] if k in kinds), None), 600)


def arm(b):
    return struct.unpack(wire.ARMED_BODY, answer(b, wire.ARM, b"", wire.ARMED)[1])


def command(b, **how):
    """Arm, and what to send as a cut then; crowbar on rail 0 now unless said otherwise."""
    token, _ = arm(b)
    return json.dumps({"token": token, "rails": [0], "profile": "crowbar", "when": {"now": True}, **how}).encode()


def cut(b, **how):
    """Arm and cut: the report, or the words of a refusal."""
    kind, body = answer(b, wire.CUT, command(b, **how), wire.CUT_REPORT, wire.REFUSED)
    return json.loads(body) if kind == wire.CUT_REPORT else json.loads(body)["why"]


def on(b, **how):
    """As above, for power to return."""
    kind, body = answer(b, wire.ON, json.dumps(how).encode(), wire.CUT_REPORT, wire.REFUSED)
    return json.loads(body) if kind == wire.CUT_REPORT else json.loads(body)["why"]


def streaming(b):
    b.go()
    b.until(lambda: len(b.samples()) > 100)


def true_us(b, t_ns):
    """Board time of a moment, as the simulation knows it."""
    boot = b.truth()[0]
    return boot["tick0"] + (t_ns - boot["t_boot_ns"]) * (1 + boot["ppm"] * 1e-6) / 1000


def power(b, events=0):
    """[(ns, powered)] of the drive in the first boot; waits for so many, since a report may come before the simulation
    has written what it knows."""
    b.until(lambda: len(b.truth()[0]["power"]) >= events)
    return b.truth()[0]["power"]
