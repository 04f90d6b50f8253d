"""Runs in the guest's agent: makes the holders of a round, each on a disk of its own, asks the guard once for all of
them, and undoes them. Where the kernel has no claim on a disk, so that nothing but the guard protects it, it tries to
purge the disk too.

stdin: {"rounds": [[holder, …], …], "serials": {kernel name: serial}}. A holder is {"name", "make", "undo" (shell),
"disk" (kernel name), "checks", "also" (further disks that it holds), "needs": [programs]}. stdout: one line of JSON for
each holder, {"name", "skip"} or {"name", "checks": {check: why} of the disk, "also": {disk: [checks]}, "free": {disk:
checks} of the disks that nothing holds, "purge": null or {"exit_code", "said", "intact"}}; or {"name", "failed"}."""

import contextlib
import functools
import io
import json
import os
import shutil
import subprocess
import sys
import time

from guest import inside
from ssdrig import cli
from ssdrig.drive import guard, inventory, uses
from ssdrig.drive.wear import warranty

MIB = 1 << 20
WITNESS_AT_BYTES = 56 * MIB  # beyond what the holders use of a disk
HEAD_BYTES = 64 << 10
WITNESS = (b"this was here before\n" * MIB)[:MIB]


def shell(script: str, disk: str) -> None:
    """Run a script that knows its disk: $D its name, $NUMBER "major minor", $LAST its last MiB. In busybox's shell,
    which is static and does most commands itself: to link a program as it starts costs the guest ten times as much."""
    with open(f"/sys/block/{disk}/dev") as number, open(f"/sys/block/{disk}/size") as sectors:
        words = {"D": disk, "NUMBER": number.read().strip().replace(":", " "), "LAST": int(sectors.read()) // 2048 - 1}
    done = subprocess.run(
        [*inside.SHELL, "-euc", script],
        capture_output=True,
        text=True,
        env=os.environ | {name: str(value) for name, value in words.items()},
    )
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode} of: {script}\n{done.stdout}{done.stderr}")


def state(node: str) -> tuple[bytes, bytes]:
    return inside.read_disk(node, 0, HEAD_BYTES), inside.read_disk(node, WITNESS_AT_BYTES, MIB)


def unclaimed(holder: dict) -> bool:
    """The kernel would let this process open the disk exclusively."""
    return "busy" not in holder["checks"]


def look(expected: dict[str, set[str]], serials: dict[str, str]) -> tuple[uses.Machine, dict[str, dict[str, str]]]:
    """What the guard says of each disk: {disk: {check: why}}. expected: the checks that shall refuse each."""
    for _ in range(3):  # udev opens disks for a moment, some of them exclusively; a writer that was killed ends later
        machine = uses.survey()
        refusals = {
            d.name: {r.check: r.why for r in guard.refusals(d, d.serial, machine=machine)}
            for d in machine.drives
            if d.name in serials
        }
        if all(refusals[disk].keys() == checks for disk, checks in expected.items()):
            break
        time.sleep(0.2)
    return machine, refusals


@contextlib.contextmanager
def surveyed(machine: uses.Machine):
    """The guard sees what was read when all of this round's holders were in place: who uses what does not change until
    they are undone, and reading it costs the guest half a second."""
    real = guard.survey, inventory.all_drives
    guard.survey, inventory.all_drives = lambda root: machine, lambda root="/": machine.drives
    try:
        yield
    finally:
        guard.survey, inventory.all_drives = real


def try_to_purge(node: str, serial: str, before: tuple[bytes, bytes]) -> dict:
    """`ssdrig purge SERIAL --destroy-data SERIAL`: its exit code, all that it says, and whether the disk is intact."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            code = cli.main(["purge", serial, "--destroy-data", serial])
        except SystemExit as end:
            code = end.code
    return {"exit_code": code, "said": output.getvalue(), "intact": state(node) == before and before[1] == WITNESS}


def wipe(disk: str) -> None:
    """Zeros where a holder wrote what tells of it: the start, 64 MiB (btrfs's second superblock), the end (DRBD)."""
    with open(f"/sys/block/{disk}/size") as sectors:
        size = int(sectors.read()) * 512
    for at, length in ((0, 2 * MIB), (64 * MIB, MIB), (size - MIB, MIB)):
        if at + length <= size:
            inside.zero(f"/dev/{disk}", length, at)
    inside.reread_partitions(f"/dev/{disk}")


def hold(holders: list[dict], serials: dict[str, str]) -> list[dict]:
    """One round: the rows of its holders."""
    rows = {holder["name"]: {"name": holder["name"]} for holder in holders}

    def with_each(among: list[dict], step) -> list[dict]:
        """Take the step with each holder; those with which it did not fail."""
        good = []
        for holder in among:
            try:
                step(holder)
                good.append(holder)
            except Exception as error:
                rows[holder["name"]].setdefault("failed", f"{type(error).__name__}: {error}")
        return good

    def make(holder: dict) -> None:
        if unclaimed(holder):
            inside.write(f"/dev/{holder['disk']}", WITNESS, WITNESS_AT_BYTES)
        shell(holder["make"], holder["disk"])

    def undo(holder: dict) -> None:
        shell(holder["undo"], holder["disk"])
        for disk in (holder["disk"], *holder["also"]):
            wipe(disk)

    possible = []
    for holder in holders:
        if missing := [program for program in holder["needs"] if not shutil.which(program)]:
            rows[holder["name"]]["skip"] = f"no {', '.join(missing)}"
        else:
            possible.append(holder)
    try:
        made = with_each(possible, make)
        touched = {disk for holder in possible for disk in (holder["disk"], *holder["also"])}
        free = {disk: set() for disk in serials.keys() - touched}
        machine, refusals = look(free | {holder["disk"]: set(holder["checks"]) for holder in made}, serials)
        os.sync()  # a file system that a holder has mounted would write its superblock seconds later
        before = {holder["name"]: state(f"/dev/{holder['disk']}") for holder in made if unclaimed(holder)}
        for holder in made:
            rows[holder["name"]] |= {
                "checks": refusals[holder["disk"]],
                "also": {disk: sorted(refusals[disk]) for disk in holder["also"]},
                "free": {disk: refusals[disk] for disk in free if refusals[disk]},
                "purge": None,
            }
        with surveyed(machine):
            for holder in filter(unclaimed, made):
                node, serial = f"/dev/{holder['disk']}", serials[holder["disk"]]
                rows[holder["name"]]["purge"] = try_to_purge(node, serial, before[holder["name"]])
    finally:
        with_each(possible[::-1], undo)  # a mount namespace keeps what was mounted before it was made
    return list(rows.values())


def main() -> None:
    asked = json.load(sys.stdin)
    warranty._rows = functools.cache(warranty._rows)  # a table of the package: read once
    for number, holders in enumerate(asked["rounds"]):
        begun = time.monotonic()
        rows = hold(holders, asked["serials"])
        for row in rows:
            print(json.dumps(row | {"round": number, "round_s": round(time.monotonic() - begun, 2)}), flush=True)
