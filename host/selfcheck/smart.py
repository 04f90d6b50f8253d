"""What a SMART poll costs us, and whether 24 drives hold each other up. The drives are fakes: scripts on PATH that
print full-size answers after the time that they are given; our side of it is the real one. What `wear` costs for one
saved file and for a thousand; what it makes of 10 000 generated documents."""

import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selfcheck import Figure, at_most, exactly, smart_documents
from ssdrig.drive.inventory import Drive
from ssdrig.drive.smart import collect, counters

POLLS = 15
DRIVES = 24
FASTEST_S, SLOWEST_S = 0.2, 1.0
TRIES = 3  # the best counts: what else the machine does meanwhile only adds
CPU_BAR_MS = 50.0
WALL_BAR = 1.2
DOCUMENTS = 10_000
FILES, FILES_BAR_S = 1000, 3.0
FILE_BAR_S = 0.15
RUNS = 5  # of one file; the best counts, as with TRIES
ROOT = Path(__file__).resolve().parents[2]


def smart_poll() -> list[Figure]:
    """CPU of this process for one poll, median of 15; that of the programs it calls is stated beside it."""
    figures = []
    with _fakes() as folder:
        nvme, sata = _drive(folder, 0, "NVMe", 0.0), _drive(folder, 1, "SATA", 0.0)
        for name, drive in (("NVMe with 7 pages", nvme), ("SATA, 50 kB of JSON", sata)):
            full = collect.poll(drive)  # and the modules are loaded
            for words, like in (("first poll", None), ("poll in a series", full)):
                own, children = _cpu_ms(drive, like)
                figures.append(at_most(f"{name}: {words}, own CPU", own, "ms", CPU_BAR_MS))
                figures.append(Figure(f"{name}: {words}, CPU of fake programs", children, "ms", "stated", True))
    return figures


def smart_24() -> list[Figure]:
    """24 drives, half of them NVMe, that take 0.2 s to 1 s each: wall time of all at once over that of the slowest
    alone."""
    with _fakes() as folder:
        step_s = (SLOWEST_S - FASTEST_S) / (DRIVES - 1)
        drives = [_drive(folder, i, ("NVMe", "SATA")[i % 2], FASTEST_S + i * step_s) for i in range(DRIVES)]
        slowest_s = max(min(_poll_s(drive) for _ in range(TRIES)) for drive in drives[-2:])  # the slowest of each kind
        wall_s, whole = float("inf"), DRIVES
        for _ in range(TRIES):
            started = time.monotonic()
            documents = collect.poll_all(drives)
            wall_s = min(wall_s, time.monotonic() - started)
            whole = min(whole, sum(collect.answered(document) and not document["gaps"] for document in documents))
    return [
        Figure("drives answered in full", whole, "drives", f"== {DRIVES}", whole == DRIVES),
        Figure("slowest drive alone", slowest_s, "s", "stated", True),
        at_most("24 drives at once / slowest alone", wall_s / slowest_s, "1", WALL_BAR),
    ]


def wear_files() -> list[Figure]:
    """`wear --smartctl DIR --json` of 1000 files, and of one file: CPU of the command alone, and with the launcher
    `./ssdrig`."""
    own = [sys.executable, "-P", "-m", "ssdrig"]
    with tempfile.TemporaryDirectory(prefix="ssdrig-wear-", dir="/var/tmp") as name:
        folder = Path(name)
        for number, (_, document) in enumerate(smart_documents.documents(FILES)):
            (folder / f"{number:04d}.json").write_text(json.dumps(document["smartctl"]))
        wall_s, _, lines = min(_wear([*own, "wear", "--json", "--smartctl", name]) for _ in range(TRIES))
        one = ["wear", "--json", "--smartctl", str(folder / "0001.json")]
        cpu_s = min(_wear([*own, *one])[1] for _ in range(RUNS))
        launched_s = min(_wear([str(ROOT / "ssdrig"), *one])[1] for _ in range(RUNS))
        bare_s = min(_wear([sys.executable, "-c", ""])[1] for _ in range(RUNS))
    return [
        exactly("objects printed for 1000 files", lines, "", FILES),
        at_most("1000 files in a folder, wall time", wall_s, "s", FILES_BAR_S),
        at_most("one file, CPU of the command", cpu_s, "s", FILE_BAR_S),
        Figure("one file, CPU with the launcher", launched_s, "s", "stated", True),
        Figure("CPU of a Python that does nothing", bare_s, "s", "stated", True),
    ]


def _wear(argv: list[str]) -> tuple[float, float, int]:
    """(wall s, CPU s, lines printed)."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "host")}
    out = subprocess.run(argv, capture_output=True, check=False, env=environment).stdout
    wall_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s, out.count(b"\n")


def generated_documents() -> list[Figure]:
    """10 000 half-plausible documents, reduced: crashes, figures outside their bounds, wear of hard disks."""
    crashes = outside = worn = figures = 0
    for kind, document in smart_documents.documents(DOCUMENTS):
        try:
            snapshot = counters.snapshot(document)
        except Exception:  # any at all is what is counted
            crashes += 1
            continue
        faults = smart_documents.faults(kind, snapshot)
        worn += sum("hard disk" in words for words in faults)
        outside += len(faults)
        figures += len(snapshot["sources"])
    return [
        Figure("documents", DOCUMENTS, "", "stated", True),
        Figure("figures found in them", figures, "", "stated", True),
        exactly("crashes", crashes, "", 0),
        exactly("figures outside their bounds", outside, "", 0),
        exactly("wear figures of hard disks", worn, "", 0),
    ]


def _poll_s(drive: Drive) -> float:
    started = time.monotonic()
    collect.poll(drive)
    return time.monotonic() - started


def _cpu_ms(drive: Drive, like: dict | None) -> tuple[float, float]:
    """Medians of (own, children's) CPU time of a poll."""
    own: list[float] = []
    children: list[float] = []
    for _ in range(POLLS):
        before = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        collect.poll(drive, like)
        after = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        for list_, a, b in zip((own, children), before, after, strict=True):
            list_.append((b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime) * 1e3)
    return statistics.median(own), statistics.median(children)


@contextlib.contextmanager
def _fakes():
    """A folder first on PATH with a smartctl and an nvme; each drive's answers lie in a folder of its own in it, and so
    says its node."""
    path = os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="ssdrig-smart-", dir="/var/tmp") as name:
        folder = Path(name)
        # smartctl --json=cv WORDS -d TYPE NODE; nvme VERB CONTROLLER WORDS, as nvme-cli 2.3
        _script(
            folder / "smartctl",
            'for node in "$@"; do :; done\ncd "$node" || exit 2\nread pause < smartctl.pause\nsleep $pause\nexec cat'
            " smartctl.out\n",
        )
        _script(
            folder / "nvme",
            'cd "$2" || exit 1\nread pause < nvme.pause\nsleep $pause\npage=$1\nif [ "$1" = get-log ]; then for word in'
            ' "$@"; do case $word in --log-id=0x*) page=${word#--log-id=0x};; esac; done; fi\n[ -f "$page" ] && exec'
            ' cat "$page"\necho "NVMe status: Invalid Log Page: The log page indicated is invalid(0x4109)"'
            " >&2\nexit 1\n",
        )
        os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
        try:
            yield folder
        finally:
            os.environ["PATH"] = path


def _script(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def _drive(folder: Path, index: int, interface: str, takes_s: float) -> Drive:
    """A Drive whose fake programs take takes_s together. NVMe: eleven calls of nvme (Identify twice, UUIDs, 00h, 7
    pages) and one of smartctl."""
    home = folder / f"drive{index}"
    home.mkdir()
    is_nvme = interface == "NVMe"
    (home / "nvme.pause").write_text(f"{takes_s / 2 / 11:.4f}\n")
    (home / "smartctl.pause").write_text(f"{takes_s / 2 if is_nvme else takes_s:.4f}\n")
    (home / "smartctl.out").write_text(
        json.dumps(_ata_document() if not is_nvme else _nvme_document(), separators=(",", ":"))
    )
    pages = (0x02, 0xC0, 0xCA, 0xD0, 0xFB, 0x09)
    identity = bytearray(4096)
    identity[0:2], identity[261] = (0x15B7).to_bytes(2, "little"), 1 << 5
    identity[96:100], identity[340] = (1 << 19 | 1 << 9 | 1 << 4).to_bytes(4, "little"), 1
    namespace = bytearray(4096)
    namespace[102] = 1
    files = {"id-ctrl": bytes(identity), "id-ns": bytes(namespace), "id-uuid": bytes(4096), "22": bytes(64)}
    files |= {f"{lid:02x}": bytes([lid]) * 512 for lid in pages}
    files["00"] = b"".join(int(lid in (*pages, 0x22)).to_bytes(4, "little") for lid in range(256))
    for name, content in files.items():
        (home / name).write_bytes(content)
    return Drive(
        name=f"sim{index}",
        node=str(home),
        by_id=None,
        model="SIMULATED",
        serial="",
        firmware="0",
        wwn="",
        capacity_bytes=10**12,
        logical_block_bytes=512,
        interface=interface,
        link="",
        rotational=False,
        major=0,
        minor=index,
        controller=str(home) if is_nvme else None,
        nsid=1 if is_nvme else None,
        smartctl_type="nvme" if is_nvme else "sat",
        usb_id="",
        simulated=True,
    )


def _head() -> dict:
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 3], "argv": ["smartctl"], "exit_status": 0},
        "in_smartctl_database": True,
    }


def _ata_document() -> dict:
    """As large as `smartctl --json=cv -x` of a SATA drive with all its logs: 28 attributes, 7 pages of device
    statistics, 478 temperatures, 20 errors with their commands, phy events."""
    attribute = {
        "id": 241,
        "name": "Host_Writes_32MiB",
        "value": 100,
        "worst": 100,
        "thresh": 0,
        "when_failed": "",
        "flags": {"value": 50, "string": "-O--CK ", "prefailure": False, "updated_online": True, "event_count": True},
        "raw": {"value": 123456789012, "value_s": "123456789012", "string": "123456789012"},
    }
    statistic = {
        "offset": 24,
        "name": "Logical Sectors Written",
        "size": 6,
        "value": 123456789012,
        "value_s": "123456789012",
        "flags": {
            "value": 192,
            "string": "V---",
            "valid": True,
            "normalized": False,
            "supports_dsn": False,
            "monitored_condition_met": False,
        },
    }
    registers = {"command": 96, "features": 8, "count": 0, "lba": 123456789}
    command = {"registers": registers, "powerup_milliseconds": 123456, "command_name": "READ FPDMA QUEUED"}
    error = {
        "error_number": 1,
        "lifetime_hours": 4321,
        "error_description": "Error: UNC at LBA = 0x075bcd15",
        "previous_commands": [command] * 5,
    }
    return _head() | {
        "ata_smart_attributes": {"revision": 1, "table": [attribute] * 28},
        "ata_device_statistics": {
            "pages": [{"number": n, "name": "General Statistics", "table": [statistic] * 16} for n in range(7)]
        },
        "ata_sct_temperature_history": {"table": list(range(20, 48)) * 17},
        "ata_smart_error_log": {"extended": {"count": 20, "table": [error] * 20}},
    }


def _nvme_document() -> dict:
    status = {"value": 16388, "do_not_retry": True, "string": "Invalid Field in Command"}
    error = {"error_count": 1, "command_id": 5, "status_field": status, "nsid": 1}
    return _head() | {
        "nvme_smart_health_information_log": {f"field_{n}": n for n in range(20)},
        "nvme_error_information_log": {"size": 64, "read": 64, "table": [error] * 64},
    }


BENCHES = {
    "smart-documents": ("10 000 generated SMART documents: no crash, nothing outside its bounds", generated_documents),
    "wear-files": ("`wear` of 1000 saved files, and the CPU time of one (about 20 s)", wear_files),
    "smart-poll": ("CPU time of one SMART poll, NVMe and SATA, first and in a series (about 3 s)", smart_poll),
    "smart-24": ("24 drives polled at once against the slowest of them alone (about 15 s)", smart_24),
}
