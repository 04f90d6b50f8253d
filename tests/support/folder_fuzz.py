"""Run folders whose every key was altered with hostile values, and what the commands that read them then do: an audit
hook records each start of a program, each write outside the folder and each connection."""

import contextlib
import copy
import io
import json
import os
import random
import shutil
import sys
from pathlib import Path

from drives import a_drive
from killed_runs import DRIVE, PLAN, killed, smart, wrote

from ssdrig import cli
from ssdrig.drive import inventory, placement
from ssdrig.run import cutting, prepare, resume
from ssdrig.runs import journal, parts

TARGET = "nbd+unix:///?socket=/nowhere/typed"
TYPED = {"target": TARGET, "power_off": "typed off", "power_on": "typed on"}
INFLUX = "http://127.0.0.1:9/typed"
REAL = vars(a_drive(model="REAL ONE", serial="REAL1", firmware="F1", capacity_bytes=1 << 30, logical_block_bytes=4096))
REAL = {**REAL, "raw_nand_bytes": 2 << 30, "rated_write_bytes": 10**12, "time_dilation": 1}
NBD = {**DRIVE, "preset": None, "serial": TARGET, "firmware": None, "rated_write_bytes": None} | TYPED
NBD |= {"power_off": "folder off", "power_on": "folder on", "plp_claimed": False}
READS = {"manifest": "/bait/m", "storage": "/bait/s"}
SHAPES = {
    "virtual": (None, DRIVE, {}),
    "nbd": ("powerloss", {**NBD, "capacity_bytes": 1 << 30, "drive_bytes": 1 << 30}, {}),
    "real": (None, REAL, {}),
    "real-cut": ("powerloss", {**REAL, "power_off": "a", "power_on": "b"}, {}),
    "retention": (
        "retention-verify",
        {**DRIVE, "capacity_bytes": 1 << 30},
        {"manifest": "/bait/m", "storage": "/bait/s"},
    ),
}
STARTED = -1
_watch: list | None = None
_inside = ""


class Started(BaseException):
    """The bench would be started here."""


def folder_of(shape: str, root: Path) -> Path:
    """A run of this shape as kill -9 leaves it."""
    name, drive, sets = SHAPES[shape]
    if name is None:
        root.mkdir(parents=True, exist_ok=True)
        (root / "small.toml").write_text(PLAN)
        name = str(root / "small.toml")
    prepared = prepare.prepare(name, drive, sets=sets, capabilities=prepare.VIRTUAL | {"fua"})
    rig = {"port": "/dev/ttyACM0", "serial": "R1"} if shape == "real" else None
    header = {"simulated": shape == "virtual", **prepare.header(prepared), "drive": drive, "rig": rig, "ssdrig": "0"}
    book = journal.create(root / "runs", header | {"host": {"boot_id": "b", "kernel": "k"}})
    book.event("run.start", pid=1)
    book.event("step.start", step=prepared.acts[0].path)
    if shape != "retention":
        smart(book, 1, 512_000)
    if shape in ("virtual", "real"):
        wrote(book, "fill", [4 << 20])
    return killed(book)


def review_of(root: Path) -> Path:
    """A review of one plan, with a run in it."""
    from ssdrig.reading import review_folder

    plans = [{"name": "consistency", "plan": "consistency", "variant": "quick", "sets": {}, "seed": 1, "why": None}]
    options = {"virtual": "sata-tlc", "capacity": "256MiB", "raw_nand": None, "purge": None, "seed": 1}
    document = {"level": "quick", "drive": DRIVE, "rated_bytes": None, "options": options, "budget_bytes": None}
    review = review_folder.create(root / "runs", document | {"plans": plans})
    run = folder_of("virtual", root / "of-review")
    header = json.loads((run / "run.json").read_text()) | {
        "review": {"folder": review.folder.name, "plan": "consistency"}
    }
    (run / "run.json").write_text(json.dumps(header))
    shutil.move(run, review.folder / run.name)
    return review.folder


def hostile(rng: random.Random, outside: Path):
    """One value that nobody would have written."""
    bait = str(outside / "bait")
    texts = [
        f"touch {outside}/ran; sleep 0.1",
        f"$(touch {outside}/ran)",
        f"`touch {outside}/ran`",
        f"nbd+unix:///?socket={outside}/sock",
        "nbd://127.0.0.1:9/x",
        "http://127.0.0.1:9/x",
        bait,
        f"../../{outside.name}/bait",
        "../" * 12 + bait,
        "/etc/passwd",
        "/dev/sda",
        "/dev/zero",
        f"{bait}\0x",
        "\x1b[2J\x1b]0;x\x07",
        "\u202egnp.exe",
        "-o /x",
        "--destroy-data",
        "x" * 70_000,
        "",
        ".",
        "..",
        "NaN",
        "\ud800",
    ]
    numbers = [0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, -1e-308, float("inf"), float("nan"), 4096.5]
    other = [None, True, False, [], {}, [bait], {"path": bait}, [[[[]]]], [None] * 100, {"": ""}, {bait: bait}]
    return rng.choice(rng.choice([texts, texts, numbers, other]))


def places(document, at=()) -> list[tuple]:
    """The path of every value of a document."""
    paths = [at] if at else []
    rows = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, value in rows:
        paths += places(value, (*at, key))
    return paths


def altered(document, at: tuple, value):
    """The document with this value at this place; a key that is not there is added."""
    made = copy.deepcopy(document)
    inner = made
    with contextlib.suppress(KeyError, TypeError, IndexError):  # another change has taken the place away
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = value
    return made


def _hook(event: str, args: tuple) -> None:
    if _watch is None:
        return
    if event == "subprocess.Popen" and _asks_the_drive(args[1]):
        return
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn"):
        _watch.append((event, str(args)[:300]))
    elif event == "socket.connect":
        if args[1] != ("127.0.0.1", 9):  # the address that was typed
            _watch.append((event, str(args[1])))
    elif event == "open":
        path, mode, flags = args
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if writes and not isinstance(path, int) and flags & os.O_TMPFILE != os.O_TMPFILE:
            _outside(event, path)
    elif event in ("os.rename", "os.link", "os.symlink"):
        _outside(event, args[1], *args[2:4][1:])
    elif event in ("os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.truncate", "os.utime"):
        _outside(event, args[0], args[-1] if isinstance(args[-1], int) and args[-1] != -1 and len(args) > 1 else -1)


def _asks_the_drive(argv) -> bool:
    """Whether a program of a drive's is asked of the drive that was found: no word of it is the folder's."""
    if argv[0] == "wipefs":
        return argv[1:] == ["--no-act", "--json", REAL["node"]]
    return argv[0] == "nvme" and argv[1:3] == ["get-feature", REAL["controller"]]


def _outside(event: str, path, folder: int = -1) -> None:
    if isinstance(path, int):
        return
    text = os.fsdecode(path)
    if not os.path.isabs(text) and isinstance(folder, int) and folder > 2 and event != "os.chmod":
        with contextlib.suppress(OSError):
            text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
    real = os.path.realpath(text) if event == "open" else os.path.join(os.path.realpath(os.path.dirname(text)), "x")
    compiled = "/__pycache__/" in real and real.startswith(str(Path(cli.__file__).parent))
    if not compiled and not real.startswith((_inside + "/", "/dev/null", "/proc/self/")):
        _watch.append((event, text[:300]))  # type: ignore[union-attr]


_hooked = False


@contextlib.contextmanager
def watched(root: Path):
    """What is started, written outside of `root`, or connected to, as it is found."""
    global _watch, _inside, _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    _inside, _watch = os.path.realpath(root), []
    try:
        yield _watch
    finally:
        _watch = None


QUESTIONS = ("SELECT * FROM run", "SELECT * FROM figure", "can-it-be-trusted", "energy-per-io", "cuts", "wear")
SUPPLY = ["--power-off", TYPED["power_off"], "--power-on", TYPED["power_on"]]
GIVEN = {
    "nbd": ["--target", TARGET, *SUPPLY, "--destroy-data", TARGET],
    "real": ["--destroy-data", "REAL1", "--without-rig"],
    "real-cut": [*SUPPLY, "--destroy-data", "REAL1"],
    "retention": [word for path in READS.values() for word in ("--read", path)],
}


def words_of(rng: random.Random, shape: str, run: Path, out: Path) -> list[str]:
    """A command that reads the folder; `resume` often with what has to be given again."""
    consent = rng.choice([["--destroy-data", TARGET], ["--destroy-data", "REAL1"], []])
    going = [*rng.choice([[], ["--target", TARGET, *SUPPLY], SUPPLY]), *consent]
    given = [*GIVEN.get(shape, [])]
    if SHAPES.get(shape, ("",))[0] is None:
        given += ["--plan", str(out.parent / f"of-{shape}" / "small.toml")]
    going = [*rng.choice([going, given, given]), "--quiet"]
    every = [
        *[["resume", str(run), *going]] * 4,
        ["resume", str(run), *going, "--dry-run"],
        ["report", str(run), "--json", "--quiet"],
        ["report", str(run), "--out", str(out / "page.html"), "--quiet"],
        ["report", str(run), "--csv", str(out / "csv"), "--quiet"],
        ["push", str(run), "--influx", INFLUX, "--timeout", "0", "--quiet"],
        ["runs", "--runs", str(run.parent)],
        ["label", str(run), "--title", "typed"],
        ["note", str(run), "typed"],
        ["export", str(run), "--parquet", str(out / "lake"), "--quiet"],
        ["export", str(run), "--parquet", str(out / "lake"), "--lab", "typed", "--quiet"],
        ["query", rng.choice(QUESTIONS), str(run)],
        ["query", rng.choice(QUESTIONS), str(run), "--json"],
    ]
    if (out / "lake").is_dir():
        every += [["query", question, "--lake", str(out / "lake")] for question in QUESTIONS[:2]]
    if (run / parts.REVIEW).is_file():
        every += [["review", "--resume", str(run), *consent, "--quiet"]] * 6
    return rng.choice(every)


@contextlib.contextmanager
def stubbed(monkeypatch, deeds: list):
    """Benches that are not started: what they would have been given is compared with what was typed."""
    from ssdrig.run import bench
    from ssdrig.virtual import bench as virtual_bench

    def server(drive):
        given = {key: drive[key] for key in TYPED}
        if given != TYPED:
            deeds.append(("the bench of a server", given))
        raise Started

    def real(drive, limits, serial, purge, raw, port, assumed, commands=None, claimed=False, **_):
        if commands not in (None, (TYPED["power_off"], TYPED["power_on"])) or port not in (None, "/dev/none"):
            deeds.append(("the bench of a drive", (commands, port)))
        if serial not in (None, "REAL1", TARGET) or purge != "auto":
            deeds.append(("consent", (serial, purge)))
        raise Started

    def described(drive, claimed, commands, acts, say):
        if commands not in (None, (TYPED["power_off"], TYPED["power_on"])):
            deeds.append(("the switch of a drive", commands))

    def virtual(preset, **how):
        folder = how.get("drive_folder")
        if folder is not None and not os.path.realpath(folder).startswith(_inside + "/"):
            deeds.append(("the kept drive", str(folder)))
        raise Started

    def drive_of(name):
        return inventory.Drive(**{key: REAL[key] for key in inventory.Drive.__dataclass_fields__})

    monkeypatch.setattr(cutting, "server", server)
    monkeypatch.setattr(cutting, "describe", described)
    monkeypatch.setattr(bench, "real", real)
    monkeypatch.setattr(virtual_bench, "start", virtual)
    monkeypatch.setattr(inventory, "find", drive_of)
    # it asks the drive that was found, by its own name, with nvme
    monkeypatch.setattr(placement, "why_not", lambda drive: "not asked here")
    monkeypatch.setattr(bench, "polled", lambda drive: {})
    monkeypatch.setattr(resume.bench, "polled", lambda drive: {})
    yield


def one(words: list[str], root: Path, deeds: list) -> int:
    """Carry one command out; what it may not do goes into found. Returns its exit code, or STARTED."""
    code: object = 1
    out, err = io.StringIO(), io.StringIO()
    with watched(root) as seen, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(words)
        except Started:
            code = STARTED
        except SystemExit as error:
            code = error.code
        except BaseException as error:
            import traceback

            code = 1
            deeds.append(("traceback", repr(error)[:200], "".join(traceback.format_exc().splitlines(True)[-4:])))
    deeds += seen
    if code == 1 or "Traceback" in err.getvalue():
        deeds.append(("exit code 1", err.getvalue()[-500:]))
    return code if isinstance(code, int) else 2
