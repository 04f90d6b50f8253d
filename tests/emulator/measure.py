"""What the firmware reaches on the emulated RP2040: samples, losses, delay of the stamps, cost of the interrupts, one
JSON object a set of rails.

    PYTHONPATH=host:tests:tests/support SSDRIG_UF2=.. SSDRIG_RP2040JS=.. python tests/emulator/measure.py [SECONDS
    [WAIT]]

SECONDS are the board's (1). WAIT: cycles that a line of flash costs which is not in the cache (0). V and I of each
conversion are wanted; the chips' oscillators differ by 3000 ppm where there are several."""

import json
import sys

import emulated

from ssdrig.meter import wire

FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
THREE = {"vbus_us": 150, "vshunt_us": 540, "temp_us": 280}
SETS = {
    "the board file's rail, 907/s": [{"vbus_us": 50, "vshunt_us": 1052, "temp_us": None}],
    "one rail, 4273/s": [FAST],
    "three rails, 1031/s each": [THREE, THREE, THREE],
}
GPIO_IRQ = "29"  # exception number: 16 + IO_IRQ_BANK0


def measure(conversions, seconds, wait):
    rails = range(len(conversions))
    sensors = [{"address": 0x40 + n, "alert": 6 + n, "fast_ppm": (0, 3000, -3000, 1500)[n]} for n in rails]
    with emulated.Emulated(sensors, wait=wait) as board:
        board.raw_repl()
        board.run(f"import board\nboard.RAILS={tuple(emulated.rows(conversions))!r}\nimport rig")
        board.start("rig.run()")
        board.send(wire.GO)

        def enough():
            seen = emulated.samples(board.frames)
            return seen and seen[-1][1] - seen[0][1] > seconds * 1e6

        board.listen(enough)
        board.send(wire.STOP)
        board.send(wire.ASK_HELLO)
        board.listen(lambda: board.bodies(wire.HELLO))
        report = board.end()
    interrupt = report["interrupts"][GPIO_IRQ]
    logs = [body.decode() for body in board.bodies(wire.LOG)]
    out = {"log": logs, "interrupt_us": round(interrupt["total_us"] / interrupt["count"], 1), "rails": []}
    for n in rails:
        seen = emulated.samples(board.frames, n)
        rail = {"samples": len(seen), "missed": emulated.missed(board.frames, n)}
        rail["wrong values"] = sum((vbus, current) != emulated.values(index) for index, _, vbus, current in seen)
        rail["1/s"] = round((seen[-1][0] - seen[0][0]) / (seen[-1][1] - seen[0][1]) * 1e6, 1)
        if not report["sensors"][n]["unread_ns"]:
            late = emulated.off_us(seen, report["sensors"][n]["edges_ns"])
            rail["edge to stamp, us: least, median, most"] = [round(late[k], 1) for k in (0, len(late) // 2, -1)]
        out["rails"].append(rail)
    return out


if __name__ == "__main__":
    seconds, wait = [*map(float, sys.argv[1:3]), *(1, 0)[len(sys.argv) - 1 :]]
    for name, conversions in SETS.items():
        print(name, json.dumps(measure(conversions, seconds, int(wait)), indent=1))
