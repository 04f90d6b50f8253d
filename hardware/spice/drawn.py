"""What simulate.py draws of each study: PICTURES[study] = (title, panels); a panel is (left, right, what the x axis is,
unit of the y axis, [(label, rail, changes, curve)])."""

THREE = (("3.3 V", "m2_3v3"), ("5 V", "sata_5v"), ("12 V", "sata_12v"))
SIZES = (("10 uF", 1e-5), ("47 uF", 4.7e-5), ("100 uF", 1e-4), ("470 uF", 4.7e-4), ("1000 uF", 1e-3))
INTO = {"t_short": 1e-3, "t_on": 7e-3}
PICTURES = {
    "softstart": (
        "Soft start into 1000 uF: OFF released at 1 ms",
        [
            (0, 12e-3, "ms", "V", [(label, rail, {}, "v(drive)") for label, rail in THREE]),
            (0, 12e-3, "ms", "A", [(label, rail, {}, "i(Vi)") for label, rail in THREE]),
        ],
    ),
    "drop": (
        "Drop from the rig's input to the drive's pins, hot FETs",
        [(1e-3, 51e-3, "A", "V", [(label, rail, {"fet_rds_on_max": 0.00403}, "drop") for label, rail in THREE])],
    ),
    "fall": (
        "3.3 V cut at 1 ms, drive at 3 W: with crowbar 2.2 Ohm (above), float (below)",
        [
            (0, 10e-3, "ms", "V", [(label, "m2_3v3", {"c_load": c}, "v(drive)") for label, c in SIZES]),
            (
                0,
                300e-3,
                "ms",
                "V",
                [(label, "m2_3v3", {"c_load": c, "discharge": 0, "stop": 0.4}, "v(drive)") for label, c in SIZES],
            ),
        ],
    ),
    "dip": (
        "3.3 V, 470 uF, drive at 3 W: OFF for 20, 100, 300 us and 5 ms",
        [
            (
                0,
                16e-3,
                "ms",
                "V",
                [(f"{w * 1e6:.0f} us", "m2_3v3", {"width": w}, "v(drive)") for w in (2e-5, 1e-4, 3e-4, 5e-3)],
            ),
            (
                0.9e-3,
                1.8e-3,
                "ms",
                "A",
                [(f"{w * 1e6:.0f} us", "m2_3v3", {"width": w}, "i(Vi)") for w in (2e-5, 1e-4, 3e-4)],
            ),
        ],
    ),
    "ramp": (
        "Ramps of 20 and 100 ms on 470 uF, nothing else on the rail: 3.3 V (above), 12 V (below)",
        [
            (
                0,
                120e-3,
                "ms",
                "V",
                [
                    (f"{ms} ms", rail, {"fall_time": f"{ms}m", "stop": f"{ms + 10}m", "leakage_off": 1e-6}, "v(drive)")
                    for ms in (20, 100)
                ],
            )
            for rail in ("m2_3v3", "sata_12v")
        ],
    ),
    "short": (
        "12 V shorted while on, supply of 60 A (above); FET junction when switched on into the short (below)",
        [
            (79e-3, 140e-3, "ms", "A", [("on", "sata_12v", {}, "i(v.xq.vfuse)")]),
            (
                6e-3,
                30e-3,
                "ms",
                "C",
                [("60 A", "sata_12v", INTO, "v(tj)"), ("150 A", "sata_12v", INTO | {"source_limit": 150}, "v(tj)")],
            ),
        ],
    ),
    "interlock": (
        "3.3 V: OFF and DISCHARGE rise together at 10 ms (above) and fall together at 70 ms (below)",
        [
            (
                9.995e-3,
                10.03e-3,
                "ms",
                "V",
                [
                    (name, "m2_3v3", {}, curve)
                    for name, curve in (("OFF", "v(off)"), ("crowbar gate", "v(q4gate)"), ("series VGS", "v(vgs)"))
                ],
            ),
            (
                69e-3,
                76e-3,
                "ms",
                "V",
                [
                    (name, "m2_3v3", {}, curve)
                    for name, curve in (("OFF", "v(off)"), ("crowbar gate", "v(q4gate)"), ("drive", "v(drive)"))
                ],
            ),
        ],
    ),
    "backfeed": (
        "Rail off, pull-ups of the host feed a drive that does not leak",
        [
            (
                0,
                6,
                "s",
                "V",
                [("crowbar held", "m2_3v3", {}, "v(drive)"), ("float", "m2_3v3", {"discharge": 0}, "v(drive)")],
            )
        ],
    ),
    "failsafe": (
        "Power comes up with leaking inputs at OFF and DISCHARGE: 2.2 kOhm pull-down (above), 47 kOhm (below)",
        [
            (
                0,
                20e-3,
                "ms",
                "V",
                [(name, "m2_3v3", {}, curve) for name, curve in (("drive", "v(drive)"), ("OFF", "v(off)"))],
            ),
            (
                0,
                20e-3,
                "ms",
                "V",
                [
                    (name, "m2_3v3", {"off_pull_down": 47e3}, curve)
                    for name, curve in (("drive", "v(drive)"), ("OFF", "v(off)"))
                ],
            ),
        ],
    ),
    "hotplug": (
        "12 V, a drive with 10 uF put on at 1 ms: onto a live rail, and with the soft start after it",
        [
            (0.95e-3, 1.2e-3, "ms", "V", [("live", "sata_12v", {}, "v(drive)")]),
            (0, 12e-3, "ms", "V", [("soft start", "sata_12v", {"live": 0}, "v(drive)")]),
        ],
    ),
    "fast": (
        "Fast current channel: bursts of 50, 100 and 200 us of 3 A, at the shunt and behind the filter",
        [
            (
                0.95e-3,
                1.3e-3,
                "ms",
                "A",
                [
                    ("drawn", "m2_3v3", {}, "i(Vdrawn)"),
                    *((f"{us} us", "m2_3v3", {"width": us * 1e-6}, "v(current)") for us in (50, 100, 200)),
                ],
            ),
            (
                0.995e-3,
                1.015e-3,
                "ms",
                "A",
                [("drawn", "m2_3v3", {}, "i(Vdrawn)"), ("seen", "m2_3v3", {}, "v(current)")],
            ),
        ],
    ),
}
