"""The bench that a run works on: a drive, its abilities, and the port of its rig. There are two
kinds: the virtual bench behind NBD, which needs no root, and a block device of this machine, which the guard holds from
start to end."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

from ssdrig.base.errors import DriveError, SsdrigError, UnsafeTarget
from ssdrig.base.progress import Progress
from ssdrig.drive import block, conditions, door, features, guard, placement, purge, telemetry, witness, zones
from ssdrig.drive.inventory import Drive
from ssdrig.drive.smart import collect
from ssdrig.drive.wear import warranty
from ssdrig.drive.wear.endurance import Limits
from ssdrig.meter import meter
from ssdrig.powerloss import target
from ssdrig.powerloss.target import Target
from ssdrig.run import virtual_settings
from ssdrig.run.bursts import Connect
from ssdrig.runs import parts
from ssdrig.virtual import adminclient
from ssdrig.virtual.bench import VirtualBench

EFFECT_PROBE_BYTES = 4096
TRIM_BYTES = 64 << 20  # of one command


def _cannot_trim(range_bytes: int) -> None:
    raise DriveError("a drive that can trim", "one that cannot", "leave the step out")


def _cannot_reset() -> NoReturn:
    raise DriveError("a drive with zones", "one without", "leave the step out")


def _cannot_place() -> NoReturn:
    raise DriveError("a drive with data placement", "one without", "leave the step out")


def _cannot_write(*_) -> NoReturn:
    raise DriveError("a drive whose blocks can be read and written", "one that cannot", "leave the step out")


def _cannot_change(key: str, *_) -> NoReturn:
    raise DriveError(f"a drive whose {key} can be set", "one that has no such thing", "leave the step out")


@dataclass(frozen=True)
class Bench:
    """`drive` is its part of run.json; `target_now` gives fio_target. The functions raise DriveError or UnsafeTarget;
    `purge` reports the method and its verified effect, `poll` makes a SMART document (given an earlier one, it asks
    only that one's sources again), `check` verifies that the target is still this drive, that no other program uses it
    and, after an absence, that one of the places (4 KiB at byte offsets) is as it was that `remember` was given last
    (it returns Held.digests()),
    `trim` discards this many bytes from its beginning, `reset_zones` resets all zones and reports their number and
    size, `placed` holds the device of placed writes and gives its path, `setting` returns a condition, `change` sets
    it, `put_back` takes what `setting` returned, `conditions` reads all, `witness` reads the kernel's own counts of its
    I/O (of a SIMULATED drive also how late it answered, from a second on), `write_blocks` writes blocks of 4 KiB {byte
    offset: content} and flushes, `read_blocks` reads some (None: the drive reports an error), `reads_as` is what a
    block that was written reads as (a SIMULATED drive keeps a check of it alone), `keep` has a SIMULATED drive outlive
    the bench in the folder of a run. `port` None: power is not measured.
    `telemetry` saves the drive's own log of itself in a file; None: it has none.
    `target`: of a power-loss campaign. `connect` opens a link for bursts of reads (True: of writes, too); None: there
    does not exist."""

    drive: dict
    target_now: Callable[[], str]
    port: str | None
    simulated: bool
    purge: Callable[[Progress], dict]
    poll: Callable[[dict | None], dict]
    flush: Callable[[], None]
    check: Callable[[], object]
    trim: Callable[[int], None] = _cannot_trim
    reset_zones: Callable[[], dict] = _cannot_reset
    placed: Callable[[], AbstractContextManager[str]] = _cannot_place
    setting: Callable[[str], list[str]] = _cannot_change
    change: Callable[[str, str], None] = _cannot_change
    put_back: Callable[[str, list[str]], None] = _cannot_change
    conditions: Callable[[], dict] = conditions.host
    witness: Callable[[int], dict] = lambda since: witness.read(None)
    keep: Callable[[Path | None], None] = lambda run: None
    write_blocks: Callable[[dict[int, bytes]], None] = _cannot_write
    read_blocks: Callable[[list[int]], list[bytes | None]] = _cannot_write
    reads_as: Callable[[int, bytes], bytes] = lambda offset, content: content
    remember: Callable[[list[int]], dict[int, str] | None] = lambda offsets: None
    telemetry: Callable[[Path], dict] | None = None
    target: Target | None = None
    connect: Connect | None = None

    @property
    def fio_target(self) -> str:
        """What fio and the player open: the URI of a virtual bench, or the path of the descriptor by which the drive is
        held. Asked for at each start, and never stored: a drive that is not held has none. Raises DriveError,
        UnsafeTarget."""
        return self.target_now()


def _kept_as(offset: int, content: bytes) -> bytes:
    from ssdrig.virtual.device import store  # imports numba, which few runs need

    return store.reads_as(offset, content)


def virtual(running: VirtualBench) -> Bench:
    """The virtual bench that runs as `running`."""
    from ssdrig.blockio.nbd import NbdClient, NbdError

    admin, socket, capacity = running.drive["admin"], running.drive["socket"], running.drive["capacity_bytes"]

    def purge_(show: Progress) -> dict:
        adminclient.ask(admin, {"op": "format"})
        with NbdClient(socket) as nbd:
            last = capacity - EFFECT_PROBE_BYTES
            probes = (0, last // 2 // EFFECT_PROBE_BYTES * EFFECT_PROBE_BYTES, last)
            for offset in probes:
                if any(nbd.read(offset, EFFECT_PROBE_BYTES)):
                    raise DriveError(
                        "zeros after the purge",
                        f"data at byte {offset}",
                        "the drive did not purge; do not use its figures",
                    )
        return {"method": "format", "effect": {"blocks_read": len(probes), "zero": len(probes)}, "ok": True}

    def flush() -> None:
        with NbdClient(socket) as nbd:
            nbd.flush()

    def trim(range_bytes: int) -> None:
        with NbdClient(socket) as nbd:
            for offset in range(0, range_bytes, TRIM_BYTES):
                nbd.trim(offset, min(TRIM_BYTES, range_bytes - offset))

    def conditions_() -> dict:
        host = conditions.host()
        return {**host, "found": host["found"] | virtual_settings.read(admin)}

    def write_blocks(blocks: dict[int, bytes]) -> None:
        with NbdClient(socket) as nbd:
            for offset, content in blocks.items():
                nbd.write(offset, content)
            nbd.flush()

    def read_blocks(offsets: list[int]) -> list[bytes | None]:
        blocks: list[bytes | None] = []
        with NbdClient(socket) as nbd:
            for offset in offsets:
                try:
                    blocks.append(nbd.read(offset, EFFECT_PROBE_BYTES))
                except NbdError:
                    blocks.append(None)
        return blocks

    def announce() -> None:
        adminclient.ask(admin, {"op": "shut_down"})

    drive = {
        "interface": "nbd",
        "logical_block_bytes": 4096,
        **{k: v for k, v in running.drive.items() if k not in ("socket", "admin")},
    }
    return Bench(
        drive,
        lambda: running.fio_target,
        running.port,
        True,
        purge_,
        lambda like: adminclient.poll(admin),
        flush,
        lambda: None,
        trim,
        setting=lambda key: virtual_settings.setting(admin, key),
        change=lambda key, value: virtual_settings.change(admin, key, value),
        put_back=lambda key, before: virtual_settings.put_back(admin, key, before),
        conditions=conditions_,
        witness=lambda since: witness.read(None) | {"pace": adminclient.pace(admin, since)},
        keep=lambda run: running.keep(run and run / parts.DRIVE),
        write_blocks=write_blocks,
        read_blocks=read_blocks,
        connect=lambda write: NbdClient(socket),
        reads_as=_kept_as,
        target=target.of_virtual(
            running.fio_target, running.drive, announce, lambda: running.server.poll() is not None
        ),
    )


def nbd(uri: str, drive: dict, commands: tuple[str, str], plp_claimed: bool) -> Bench:
    """An NBD server whose power is switched by two commands of a shell. It has no SMART, and can be neither purged nor
    trimmed."""

    def none(*_) -> NoReturn:
        raise DriveError("a drive that can be asked", "an NBD server, which has no such thing", "leave the step out")

    made = target.of_nbd(uri, commands, plp_claimed)
    return Bench(drive, lambda: uri, None, False, none, none, none, lambda: None, target=made)


@contextmanager
def real(
    drive: Drive,
    limits: Limits | None,
    destroy_serial: str | None,
    purge_method: str,
    raw_nand_bytes: int | None,
    port: str | None,
    raw_nand_assumed: bool = False,
    commands: tuple[str, str] | None = None,
    plp_claimed: bool = False,
    reads: bool = False,
    handles: Sequence[int] = (),
    resumed: Path | None = None,
    digests: Mapping[int, str] | None = None,
) -> Iterator[Bench]:
    """A block device with what its maker warrants, held by the guard until the end. `commands`: of a shell, that take
    its power and give it back; `plp_claimed`: the user claims that it keeps all acknowledged data; `reads`: it may be
    in use, and this bench has no way to change it; `handles`: handles_of(); `resumed`: the run that goes on, `digests`:
    those of its marks. Raises UnsafeTarget, with every reason against it, or ExchangedDrive, before anything is
    touched."""
    with guard.hold(drive, destroy_serial, reads=reads, resumed=resumed) as held:
        if digests is not None:
            held.prove_digests(digests)
        words = asdict(drive) | {
            "raw_nand_bytes": raw_nand_bytes,
            "raw_nand_assumed": raw_nand_assumed,
            **rating(limits),
            "time_dilation": 1,
            "power_states": states_of(drive),
            "placement_handles": list(handles),
        }
        if commands:
            words |= {"power_off": commands[0], "power_on": commands[1], "plp_claimed": plp_claimed}

        zoned = drive.has_zones

        def purge_(show: Progress) -> dict:
            check()
            return purge.purge(held, purge_method, show)

        @contextmanager
        def settable(key: str) -> Iterator[Drive]:
            if not conditions.is_of_drive(key):
                yield held.drive
                return
            held.recheck()
            with held.named() as drive:
                yield drive

        def setting(key: str) -> list[str]:
            with settable(key) as drive, conditions.awake(key, held.path):
                return conditions.setting(key, drive.name, controller=drive.controller)

        def change(key: str, value: str) -> None:
            with settable(key) as drive:
                conditions.change(key, value, drive.name, controller=drive.controller)

        def put_back(key: str, before: list[str]) -> None:
            with settable(key) as drive:
                conditions.put_back(key, before, drive.name, controller=drive.controller)

        def poll(like: dict | None) -> dict:
            with held.named() as drive:
                return polled(drive, like)

        def conditions_now() -> dict:
            try:
                with held.named() as drive:
                    return conditions.read(drive.name, controller=drive.controller, nsid=drive.nsid)
            except SsdrigError:  # it is let go or gone: its name may be another disk's
                return conditions.host()

        def counts(since: int) -> dict:
            try:
                with held.named() as drive:
                    return witness.read(drive.name)
            except SsdrigError:
                return witness.read(None) | {"name": held.drive.name}

        def save_telemetry(path: Path) -> dict:
            with held.named() as drive:
                return telemetry.save(str(drive.controller), path)

        @contextmanager
        def placed() -> Iterator[str]:
            with held.named() as drive, door.generic(drive) as path:
                yield path

        def check() -> Drive:
            held.check()
            held.prove()
            return held.drive

        made = Bench(
            words,
            lambda: held.path,
            port and meter.of_drive(port, drive.controller, drive.serial),
            drive.simulated,
            purge_,
            poll,
            lambda: block.sync(held.path),
            check,
            lambda range_bytes: block.discard(held.path, end_bytes=range_bytes),
            lambda: zones.as_json(zones.reset(held.path)),
            placed,
            setting,
            change,
            put_back,
            conditions_now,
            counts,
            write_blocks=lambda blocks: block.write(held.path, blocks),
            read_blocks=lambda offsets: block.read(held.path, offsets),
            remember=lambda offsets: target.remember(held, offsets),
            telemetry=save_telemetry if drive.controller else None,
            connect=lambda write: block.Direct(held.path, write) if not (write and zoned) else _cannot_write(),
            target=target.of_held(held, commands, plp_claimed),
        )
        yield _reading(made, held) if reads else made


def _reading(made: Bench, held: guard.Held) -> Bench:
    """The same without any way to change the drive."""

    def none(*_) -> NoReturn:
        raise UnsafeTarget("a step that only reads", f"one that changes {held.drive.node}", "leave the step out")

    def connect(write: bool) -> block.Direct:
        return none() if write else block.Direct(held.path)

    return replace(
        made,
        target_now=none,
        purge=none,
        flush=none,
        trim=none,
        reset_zones=none,
        placed=none,
        change=none,
        put_back=none,
        write_blocks=none,
        remember=lambda offsets: None,
        connect=connect,
        target=None,
    )


def rating(limits: Limits | None) -> dict:
    """The maker's ratings of a real drive, for run.json; None if no table has them."""
    limits = limits or Limits()
    return {
        "rated_tbw_TB": limits.tbw_TB,
        "rated_write_bytes": warranty.rated_bytes(limits),
        "rated_pe_cycles": limits.pe_cycles,
        "rated_years": limits.years,
        "rated_class": limits.drive_class,
    }


def states_of(drive: Drive) -> list[dict]:
    """The rated figures of an NVMe drive's power states, for run.json."""
    return features.power_states(drive.controller) if drive.controller else []


def handles_of(drive: Drive, needs: Collection[str]) -> list[int]:
    """The placement handles of a drive with data placement, for run.json. A drive whose plans need none (`needs`, of
    grammar.CAPABILITIES) is not asked."""
    known = placement.read(drive)[0] if "fdp" in needs else None
    return list(known.numbers) if known else []


def polled(drive: Drive, like: dict | None = None) -> dict:
    """A SMART document, with `used_bytes` of an NVMe drive: how much of its namespace is not trimmed."""
    document = collect.poll(drive, like=like)
    if drive.controller and drive.interface.startswith("NVMe"):
        document["used_bytes"] = features.used_bytes(drive.controller, drive.nsid)
    return document
