"""In the guest: a drive of its kernel that is held, as a run holds it, and steps that are carried out on it one by one,
each at the word of a line of a fifo; the answer is a line of another: "ok …", or the error's class and words."""

import os
import shutil
import sys
import tempfile
from types import SimpleNamespace

MIB = 1 << 20
FILL_BYTES = 8 * MIB


def fifo(name: str, mode: str):
    """Opened for both ways, so that it neither waits for the other side nor ends with it."""
    return os.fdopen(os.open(f"/run/guest/{name}", os.O_RDWR), mode, buffering=1)


def main(serial: str, method: str) -> None:
    plain = lambda *of, **_: of[0] if of else plain
    sys.modules["numba"] = SimpleNamespace(njit=lambda *_, **__: plain)  # a minute to load here
    sys.modules["ssdrig.base.kernels"] = SimpleNamespace(jit=plain)
    import numpy as np

    from ssdrig.base.progress import Progress
    from ssdrig.drive import inventory
    from ssdrig.load import fio, trace_player, trace_targets, traceform
    from ssdrig.plan.kinds import fill
    from ssdrig.run import bench

    def filled() -> str:
        keys = {"block": 128 << 10, "qd": 4, "threads": 1, "compressible": 0, "engine": "libaio"}
        act = SimpleNamespace(keys=keys, path="fill", range_bytes=FILL_BYTES, amount_bytes=FILL_BYTES)
        folder = tempfile.mkdtemp(prefix="ssdrig-steps-")
        try:
            return f"{fio.run(fill.job(act, bench_.fio_target, 1), folder).bytes}"
        finally:
            shutil.rmtree(folder)

    def replayed() -> str:
        rows = np.zeros(64, traceform.ROW)
        rows["op"], rows["length_bytes"], rows["depth"] = traceform.WRITE, 4096, 64
        rows["offset_bytes"] = np.arange(64) * 4096
        with trace_targets.named(bench_.fio_target, 4096) as target, tempfile.TemporaryFile() as out:
            trace_player.play(rows, target, trace_player.How(closed=True), out)
        return "64"

    def opened() -> str:
        link = bench_.target.open()
        link.close()
        return f"{link.size_bytes}"

    with (
        fifo("held", "w") as out,
        bench.real(inventory.find(serial), None, serial, method, None, None, commands=("true", "true")) as bench_,
    ):
        actions = {
            "away": bench_.target.away,
            "back": bench_.target.back,
            "check": lambda: bench_.check().node,
            "target": lambda: os.stat(bench_.fio_target).st_rdev,
            "fill": filled,
            "replay": replayed,
            "open": opened,
            "write": lambda: bench_.write_blocks({0: b"\x5a" * 4096, 4 * MIB: b"\xa5" * 4096}),
            "read": lambda: [block[:1] for block in bench_.read_blocks([0, 4 * MIB])],
            "flush": bench_.flush,
            "trim": lambda: bench_.trim(FILL_BYTES),
            "purge": lambda: bench_.purge(Progress(quiet=True))["method"],
        }
        print("ok", bench_.drive["node"], file=out)
        for line in fifo("tell", "r"):
            if line == "end\n":
                break
            try:
                answer = f"ok {actions[line.strip()]()}"
            except Exception as error:
                answer = f"{type(error).__name__} {error}"
            print(answer.replace("\n", " "), file=out)
