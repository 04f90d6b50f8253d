"""Keep reading SMART from drives: `ssdrig watch`. Each poll is on the disk before it is reported; what a run holds is
left alone."""

import contextlib
import json
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ssdrig.base.arguments import add_quiet, seconds
from ssdrig.base.errors import DriveError, JournalError, SsdrigError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable
from ssdrig.base.words import serial_key, size
from ssdrig.drive import identity, inventory
from ssdrig.drive.inventory import Drive
from ssdrig.drive.smart import counters, health
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.drive.smart.watch_folder import default_folder, history, keep, last_answered, set_torn_aside
from ssdrig.publish.watch.metrics import Metrics

__all__ = ["add_arguments", "command", "history"]

SLICE_S = 5.0  # a suspend is noticed so late; and the watchdog is fed so often
WITHOUT_SMART = ("virtio",)
DRIVE_KEYS = ("model", "serial", "firmware", "by_id", "node", "interface", "capacity_bytes")
PROOF_KEYS = ("wwn", "lun", "nsid", "port", "serial_source", "enclosure_serial")
ONCE_SEND_S = 20.0


EXAMPLES = (
    ("watch --interval 10m", "all SSDs, every ten minutes, until it is stopped"),
    ("watch --once", "a table of all SSDs"),
    ("watch --metrics /var/lib/node_exporter/ssd.prom", "for Prometheus, by node_exporter's textfile collector"),
)


def add_arguments(parser) -> None:
    add = parser.add_argument
    add(
        "drives",
        nargs="*",
        metavar="DRIVE",
        help="serial or /dev/disk/by-id path (default: all SSDs, also those plugged in later)",
    )
    add("--interval", type=seconds, default=3600, metavar="TIME", help="time between polls, e.g. 10m (default 1h)")
    add("--once", action="store_true", help="poll once, print a table, exit")
    add(
        "--history",
        dest="dir",
        type=Path,
        metavar="DIR",
        help="folder for the polls, read by `wear --history`"
        " (default: $STATE_DIRECTORY/watch in a service, else $XDG_STATE_HOME/ssdrig/watch)",
    )
    add("--influx", metavar="URL", help="http://host:port/DB to send to (default: $SSDRIG_INFLUX, if set)")
    add(
        "--metrics",
        type=Path,
        metavar="FILE",
        help="write the newest values as OpenMetrics text after each round (write amplification, TBW, life left);"
        " node_exporter reads *.prom in its textfile directory",
    )
    add("--json", action="store_true", help="print one JSON object on stdout for each poll, once it is on disk")
    add("--telegraf", action="store_true", help="print each poll as line protocol, for Telegraf's inputs.execd")
    add_quiet(parser, "print nothing on stderr but the reason why it ended")


def check(args) -> None:
    """Raises UsageError."""
    if not args.interval > 0:
        raise UsageError("an interval above 0 s", f"{args.interval:g}", "correct --interval")
    if args.json and args.telegraf:
        raise UsageError("one form on stdout", "--json and --telegraf", "leave one out")
    for word in args.drives:
        inventory.find(word)


def command(args) -> int:
    """0 ended as asked. With --once 4 (DriveError) if a drive did not answer, 6 if not all could be sent."""
    check(args)
    folder = args.dir or default_folder()
    url = args.influx or os.environ.get("SSDRIG_INFLUX")
    show = Progress(args.quiet)
    watch = Watch(folder, args.drives)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"to make {folder}", error.strerror or str(error), "choose another --history") from error
    set_torn_aside(folder, show.say)
    report = _print_json if args.json else None
    if args.telegraf:
        from ssdrig.publish.watch.upload import Lines  # see _target

        report = Lines().tell
    metrics = Metrics(args.metrics, folder) if args.metrics else None
    if args.once:
        return _once(watch, url, show, report, metrics)
    return _serve(watch, args.interval, url, show, report, metrics)


class Watch:
    """Polls drives round by round into a folder. `words` name them; without any, all SSDs are polled."""

    def __init__(self, folder: Path, words: Sequence[str] = (), root: str | Path = "/"):
        self.folder, self.root = Path(folder), root
        self._named = [inventory.find(word, root) for word in words]
        self._words = list(words)
        for drive in self._named:
            if not drive.serial or identity.placeholder(drive.serial):
                raise UsageError(
                    "a drive with its own serial",
                    f"{drive.node}, which reports {printable(drive.serial) or 'none'}",
                    "without it its polls cannot be kept apart from another drive's",
                )
        self._seen: dict[str, Drive] = {}  # key of Identity -> the drive, while it is there
        self._full: dict[str, tuple[str, dict]] = {}  # key -> UTC day and the full document of it
        self._before: dict[str, dict] = {}  # key -> newest answered poll
        self._same = {"host": socket.gethostname(), "boot_id": _boot_id(root)}

    def round(self, say: Callable[[str], None]) -> list[dict]:
        """Poll all drives together and store each answer. Returns for each {"utc_ns", "drive", "skipped" or "failed"
        (words) or neither, "kept": {"file", "bytes"} or None, "snapshot" (counters.snapshot) or None, "since": what the
        power did since the poll before, "record": all of it}."""
        from ssdrig.drive import guard  # here: `watch --help` needs none of it
        from ssdrig.drive.smart import collect

        drives, gone = self._drives(say)
        drives, twins = self._told_apart(drives)
        held = [drive for drive in drives + gone if guard.busy(drive.serial, self.root)]  # a run may have cut its power
        drives, gone = ([drive for drive in some if drive not in held] for some in (drives, gone))
        day = time.strftime("%Y-%m-%d", time.gmtime())
        likes = [
            full if full_day == day else None
            for full_day, full in (self._full.get(drive.key, ("", None)) for drive in drives)
        ]
        documents = collect.poll_all(drives, likes)
        now_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
        records = [self._record(drive, skipped="a run holds the drive") for drive in held]
        records += [self._record(drive, failed="it is no longer there") for drive in gone]
        records += [self._record(drive, failed=f"not polled: {why}") for drive, why in twins]
        for drive, like, document in zip(drives, likes, documents, strict=True):
            if not answered(document):
                records.append(self._record(drive, failed="; ".join(document["gaps"]) or "no answer"))
                continue
            if like is None:
                self._full[drive.key] = day, document
            middle_ns = (document["t_start_ns"] + document["t_end_ns"]) // 2
            records.append(self._record(drive) | document | {"utc_ns": now_ns - (monotonic_ns - middle_ns)})
        return [self._stored(record, say) for record in records]

    def _drives(self, say) -> tuple[list[Drive], list[Drive]]:
        """The drives that are there now, and those that were in the round before and are gone."""
        if self._words:
            there, gone = [], []
            for i, word in enumerate(self._words):
                try:
                    self._named[i] = inventory.find(word, self.root)
                    there.append(self._named[i])
                except UsageError:
                    gone.append(self._named[i])
            return there, gone
        drives: dict[str, Drive] = {}
        for drive in inventory.all_drives(self.root):
            if drive.rotational or drive.interface in WITHOUT_SMART or not drive.capacity_bytes:
                continue
            if not drive.serial or identity.placeholder(drive.serial):
                what = f"serial {printable(drive.serial)}, which is not unique," if drive.serial else "no serial number"
                say(f"{drive.node} left out: it reports {what} so its polls cannot be identified")
            else:  # namespaces of one controller share their SMART
                drives.setdefault(drive.key, drive)
        gone = [drive for key, drive in self._seen.items() if key not in drives]
        self._seen = drives
        return list(drives.values()), gone

    def _told_apart(self, drives: list[Drive]) -> tuple[list[Drive], list[tuple[Drive, str]]]:
        """The drives that no other disk can be taken for, and the others, twins that were not asked for too, each with
        the reason."""
        there = inventory.all_drives(self.root)
        alone, twins = [], {}
        for drive in drives:
            others = identity.twins(drive, there)
            if not others:
                alone.append(drive)
            for one in (drive, *others) if others else ():
                nodes = ", ".join(other.node for other in identity.twins(one, there))
                twins[one.name] = one, f"{nodes} shows its serial too, so their polls could not be distinguished"
        return alone, list(twins.values())

    def _record(self, drive: Drive, **more) -> dict:
        return {
            "utc_ns": time.time_ns(),
            **self._same,
            "drive": {key: getattr(drive, key) for key in DRIVE_KEYS + PROOF_KEYS},
            **more,
        }

    def _stored(self, record: dict, say) -> dict:
        key = serial_key(record["drive"]["serial"])
        out = {key: record[key] for key in ("utc_ns", "drive", "skipped", "failed") if key in record}
        out |= {"kept": None, "snapshot": None, "since": None, "record": record}
        if answered(record):
            before = self._before.get(key) or last_answered(self.folder, record["drive"])
            if before and identity.conflict(before["drive"], record["drive"]):
                before = None  # the enclosure has another disk now
            out["snapshot"] = counters.snapshot(record)
            out["since"] = since(before, record) if before else None
            self._before[key] = record
        try:
            path, length = keep(self.folder, record)
            out["kept"] = {"file": str(path), "bytes": length}
        except JournalError as error:
            say(str(error))
        return out


def since(before: dict, after: dict) -> dict:
    """What the power did between two answered polls: {"utc_ns" of the first, "power_cycles", "unsafe_shutdowns": how
    many more (None: not known), "same_boot": whether the host ran on}. Cycles within one boot: the drive lost power, or
    reset itself."""
    a, b = counters.snapshot(before), counters.snapshot(after)
    more = {
        key: None if a[key] is None or b[key] is None else b[key] - a[key]
        for key in ("power_cycles", "unsafe_shutdowns")
    }
    same = before.get("boot_id") == after.get("boot_id") if before.get("boot_id") and after.get("boot_id") else None
    return {"utc_ns": before["utc_ns"], **more, "same_boot": same}


def _boot_id(root: str | Path) -> str | None:
    try:
        return (Path(root) / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


# ---- one round


def _once(watch: Watch, url: str | None, show: Progress, report, metrics: Metrics | None) -> int:
    try:
        upload = _upload(watch.folder, url, show) if url else None
    except JournalError as error:  # the service sends it
        show.say(str(error))
        upload = None
    results = watch.round(show.say)
    if not results:
        raise DriveError(
            "at least one SSD", "none that answers SMART", "see ./ssdrig drives; name a drive by its serial"
        )
    for result in results:
        _tell(result, show)
        if report:
            report(result)
    if not report:
        print("\n".join(table(results)), flush=True)
    if metrics:
        metrics.write(results)
    if any(result["kept"] is None for result in results):
        raise JournalError(
            f"to keep all polls in {watch.folder}", "see above", "free disk space or fix its permissions"
        )
    if upload:
        upload.finish(ONCE_SEND_S)
    if any("failed" in result for result in results):
        raise DriveError("all drives to answer", "see above", "look at ./ssdrig drives")
    return 0


COLUMNS = ("MODEL", "SERIAL", "HEALTH", "USED", "SPARE", "°C", "HOST WRITTEN", "NAND WRITTEN", "HOURS", "CYCLES")


def table(results: list[dict]) -> list[str]:
    """Lines of text: a header and one line a drive; "-" is not known."""
    rows: list[tuple[str, ...]] = [COLUMNS]
    words = []
    for result in results:
        s = result["snapshot"]
        if s is None:
            why = result.get("skipped") or result.get("failed")
            words.append(f"{result['drive']['model']} {result['drive']['serial']}: {why}")
            continue
        state = s["health"]
        if s["health_reasons"]:
            name = f"{result['drive']['model']} {result['drive']['serial']}"
            words.append(f"{name}: {printable(health.sentence(s['health_reasons']))}")
        rows.append(
            (
                printable(result["drive"]["model"]),
                printable(result["drive"]["serial"]),
                "-" if state == health.UNKNOWN else state if state == health.OK else state.upper(),
                _number(s["percentage_used"], " %"),
                _number(s["available_spare_percent"], " %"),
                _number(s["temperature_C"]),
                _size(s["host_written_bytes"]),
                _size(s["nand_written_bytes"]),
                _number(s["power_on_hours"]),
                _number(s["power_cycles"]),
            )
        )
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(COLUMNS))]
    return [
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ] + words


def _number(value, unit: str = "") -> str:
    return "-" if value is None else f"{value:g}{unit}"


def _size(value) -> str:
    return "-" if value is None else size(value)


def _tell(result: dict, show: Progress) -> None:
    """Notes about a poll besides its figures."""
    name = f"{result['drive']['model']} {result['drive']['serial']}"
    if "failed" in result:
        show.say(f"{name} does not answer: {result['failed']}")
    since = result["since"]
    if since and since["same_boot"] and since["power_cycles"]:
        show.say(f"{name}: {since['power_cycles']} power cycles since the poll before, while this host ran on")


def _print_json(result: dict) -> None:
    print(json.dumps({key: of for key, of in result.items() if key != "record"}, ensure_ascii=False), flush=True)


# ---- round after round


def _serve(watch: Watch, interval_s: float, url: str | None, show: Progress, report, metrics: Metrics | None) -> int:
    ended, sender = threading.Event(), None
    # an Event's own lock may be held by who waits for it, so a handler that set it would wait for ever
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()
    caught: list[int] = []

    def on_signal(number: int, _) -> None:
        caught.append(number)
        signals.put(number)
        if number == signal.SIGINT and len(caught) > 1 + caught.count(signal.SIGHUP):
            raise KeyboardInterrupt  # asked twice: do not wait for the poll

    ends = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
        ends.append(signal.SIGHUP)
    handlers = {number: signal.signal(number, on_signal) for number in ends}
    try:
        if url:
            _target(url)  # an invalid address is reported now
            sender = threading.Thread(target=_send, args=(watch.folder, url, show, ended), daemon=True)
            sender.start()
        notify("READY=1")
        first = next_ns = _boottime_ns()
        while not caught:
            results = watch.round(show.say)
            for result in results:
                _tell(result, show)
                if report:
                    report(result)
            if metrics:
                try:
                    metrics.write(results)
                except JournalError as error:  # the polls are kept; the next round tries again
                    show.say(str(error))
            _say_round(results, show)
            next_ns = grid(first, interval_s, _boottime_ns())
            while not caught and (left_s := (next_ns - _boottime_ns()) / 1e9) > 0:
                notify("WATCHDOG=1")
                with contextlib.suppress(queue.Empty):
                    signals.get(timeout=min(left_s, SLICE_S))  # in slices: a suspend stops the clock of a wait
        notify("STOPPING=1")
        ended.set()
        if sender:
            sender.join(2)  # unsent points follow after the next start
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if caught[-1] == signal.SIGINT:
        raise KeyboardInterrupt
    return 0


def grid(first_ns: int, interval_s: float, now_ns: int) -> int:
    """The next time after now that is a whole number of intervals after the first: polls do not drift, and those missed
    while the host slept are not made up for."""
    interval_ns = max(1, round(interval_s * 1e9))
    return first_ns + ((now_ns - first_ns) // interval_ns + 1) * interval_ns


def _boottime_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _say_round(results: list[dict], show: Progress) -> None:
    skipped, failed = (sum(key in result for result in results) for key in ("skipped", "failed"))
    lost = sum(result["kept"] is None for result in results)
    words = [f"{len(results) - skipped - failed} drives polled"]
    words += [
        f"{number} {what}"
        for number, what in ((skipped, "skipped"), (failed, "did not answer"), (lost, "NOT KEPT"))
        if number
    ]
    show.say(", ".join(words))
    notify("WATCHDOG=1\nSTATUS=" + ", ".join(words))


def notify(text: str, environ: Mapping[str, str] = os.environ) -> None:
    """Notify systemd (sd_notify), if it listens."""
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        try:
            link.connect("\0" + address[1:] if address.startswith("@") else address)
            link.sendall(text.encode())
        except OSError:
            pass  # without systemd, go on


def _target(url: str):
    from ssdrig.publish.influx import sender as influx  # slow import, needed only to send

    return influx.target(url)


def _upload(folder: Path, url: str, show: Progress):
    from ssdrig.publish.watch.upload import Upload

    return Upload(folder, _target(url), show.say)


def _send(folder: Path, url: str, show: Progress, ended: threading.Event) -> None:
    """Send what the folder holds until the end; in a thread, so that a server that hangs delays no poll."""
    message = ""
    while not ended.is_set():
        try:
            upload = _upload(folder, url, show)
            try:
                while not ended.is_set():
                    if not upload.step():
                        ended.wait(1.0)
            finally:
                upload.close()
        except (SsdrigError, OSError) as error:
            if str(error) != message:
                message = str(error)
                show.say(f"nothing is sent now, tried again each minute: {message}")
            ended.wait(60)
