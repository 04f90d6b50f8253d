"""Runs in the guest: makes each holder of a JSON list on stdin, asks the guard, undoes it. Where the kernel has no
claim on the disk, so that nothing but the guard protects it, it tries to purge the disk too.

A holder is {"name", "make", "undo" (shell), "disk" (kernel name), "serial", "checks", "needs": [programs]}. One line of
JSON each on stdout: {"name", "skip"} or {"name", "checks": {check: why} of the disk, "others": {serial: checks} of
disks that are refused beside it, "purge": null or {"exit_code", "said", "intact"}}; or {"name", "failed"}. One process
for all, because each start of Python costs the guest two seconds."""

import contextlib
import functools
import io
import json
import mmap
import os
import shutil
import subprocess
import sys
import time

from ssdrig import cli
from ssdrig.drive.target import guard, uses
from ssdrig.drive.wear import warranty

WITNESS_AT_BYTES, WITNESS_BYTES = 56 << 20, 1 << 20  # beyond what the holders use of a disk
HEAD_BYTES = 64 << 10
WITNESS = b"this was here before\n" * (WITNESS_BYTES // 21 + 1)


def shell(script: str) -> None:
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode} of: {script}\n{done.stdout}{done.stderr}")


def read(node: str, at: int, length: int) -> bytes:
    """Past the page cache: what the disk itself holds."""
    fd = os.open(node, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, length) as page:
        os.preadv(fd, [page], at)
        os.close(fd)
        return page[:]


def write(node: str, at: int, content: bytes) -> None:
    fd = os.open(node, os.O_WRONLY | os.O_DIRECT)
    with mmap.mmap(-1, len(content)) as page:
        page[:] = content
        os.pwritev(fd, [page], at)
        os.close(fd)


def state(node: str) -> tuple[bytes, bytes]:
    return read(node, 0, HEAD_BYTES), read(node, WITNESS_AT_BYTES, WITNESS_BYTES)


def purge(serial: str) -> tuple[int, str]:
    """`ssdrig purge SERIAL --destroy-data SERIAL` with its exit code and all that it says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = cli.main(["purge", serial, "--destroy-data", serial])
        except SystemExit as end:
            code = end.code
    return code, said.getvalue()


def unclaimed(holder: dict) -> bool:
    """The kernel would let this process open the disk exclusively."""
    return "busy" not in holder["checks"]


def look(holder: dict, retries: int = 3) -> dict:
    serial = holder["serial"]
    for _ in range(retries):  # udev opens the others for a moment, some of them exclusively
        machine = uses.survey()
        found = {
            d.serial: {r.check: r.why for r in guard.refusals(d, d.serial, machine=machine)} for d in machine.drives
        }
        others = {
            key: checks for key, checks in found.items() if key != serial and key not in holder["also"] and checks
        }
        if not others:
            break
        time.sleep(0.2)
    return {
        "checks": found[serial],
        "also": {key: sorted(found[key]) for key in holder["also"]},
        "others": others,
        "purge": try_to_purge(holder) if unclaimed(holder) else None,
    }


def try_to_purge(holder: dict) -> dict:
    node = f"/dev/{holder['disk']}"
    os.sync()  # a file system that the holder has mounted would write its superblock seconds later
    before = state(node)
    code, said = purge(holder["serial"])
    after = state(node)
    intact = before[0] == after[0] and before[1] == after[1] == WITNESS[:WITNESS_BYTES]
    return {"exit_code": code, "said": said, "intact": intact}


def main() -> None:
    warranty._rows = functools.cache(warranty._rows)  # a table of the package: read once
    for holder in json.load(sys.stdin):
        out = {"name": holder["name"]}
        missing = [program for program in holder["needs"] if not shutil.which(program)]
        begun = time.monotonic()
        if missing:
            out["skip"] = f"no {', '.join(missing)}"
        else:
            try:
                if unclaimed(holder):
                    write(f"/dev/{holder['disk']}", WITNESS_AT_BYTES, WITNESS[:WITNESS_BYTES])
                try:
                    shell(holder["make"])
                    out |= look(holder)
                finally:
                    shell(holder["undo"])
                for disk in (holder["disk"], *holder["wipe"]):
                    write(f"/dev/{disk}", 0, bytes(HEAD_BYTES))
            except Exception as error:
                out["failed"] = f"{error}, after {error.__context__}"
        out["seconds"] = round(time.monotonic() - begun, 2)
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
