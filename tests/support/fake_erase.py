"""Stand-ins for `nvme` and `hdparm` that erase a file: told by a state file which drive they are and how it misbehaves:
a dict as Python writes it, for `import json` is half of the time that such a process takes.

Words, exit codes and layouts as in nvme-cli 2.3 and hdparm 9.65 (Debian 12), read there and in their sources. Started
as `fake_erase.py STATE nvme|hdparm ARGS…` by the two scripts that `install` makes. Not a test itself."""

import os
import sys
import time


def install(folder, backing, **drive):
    """Make folder/nvme and folder/hdparm (put folder first on PATH) for a drive that keeps its data in `backing`.
    Returns the state's path."""
    state = folder / "drive"
    state.write_text(repr({"backing": str(backing), "calls": [], **drive}))
    for name in ("nvme", "hdparm"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {os.path.abspath(__file__)} {state} {name} "$@"\n')
        script.chmod(0o755)
    return state


def read(state) -> dict:
    with open(state) as f:
        return eval(f.read(), {})


def main(state: str, name: str, args: list[str]) -> int:
    drive = read(state)
    drive["calls"].append([name, *args])
    try:
        return {"nvme": nvme, "hdparm": hdparm}[name](drive, args)
    finally:
        half = f"{state}.{os.getpid()}"
        with open(half, "w") as f:
            f.write(repr(drive))
        os.replace(half, state)


def erase(drive: dict, byte: int = 0) -> None:
    if drive.get("keeps"):
        return
    with open(drive["backing"], "r+b") as f:
        length = f.seek(0, 2)
        f.seek(0)
        f.write(os.urandom(length) if drive.get("scrambles") else bytes([byte]) * length)


def take_time(drive: dict) -> None:
    """So many seconds, or until a file is there, which never takes longer than two minutes."""
    time.sleep(drive.get("seconds", 0))
    deadline = time.monotonic() + 1200
    while "until" in drive and not os.path.exists(drive["until"]) and time.monotonic() < deadline:
        time.sleep(0.02)


def status(words: str, code: int) -> int:
    print(f"NVMe status: {words}(0x{code:x})", file=sys.stderr)
    return 1


# ---- nvme-cli 2.3


def nvme(drive: dict, args: list[str]) -> int:
    what, option = args[0], dict(a.split("=", 1) for a in args if a.startswith("--") and "=" in a)
    if drive.get("garbage"):
        sys.stdout.buffer.write(os.urandom(100))
        return 0
    if what == "version":
        print("nvme version 2.3 (git 2.3)\nlibnvme version 1.3 (git 1.3)")
    elif what == "id-ctrl":
        page = bytearray(4096)
        page[256:258] = (drive.get("oacs", 2)).to_bytes(2, "little")
        page[328:332] = drive.get("sanicap", 0).to_bytes(4, "little")
        page[524] = drive.get("fna", 0)
        page[516:520] = drive.get("nn", 1).to_bytes(4, "little")
        sys.stdout.buffer.write(page)
    elif what == "id-ns":
        page, blocks = bytearray(4096), os.path.getsize(drive["backing"]) // 512
        page[0:8] = page[8:16] = blocks.to_bytes(8, "little")
        page[16:24] = drive.get("used", blocks).to_bytes(8, "little")
        page[26], page[29], page[33] = drive.get("flbas", 0), drive.get("dps", 0), drive.get("dlfeat", 1)
        sys.stdout.buffer.write(page)
    elif what == "admin-passthru" and option["--opcode"] == "0x06":
        numbers = drive.get(f"cns {option['--cdw10']}")
        if numbers is None:
            return status("Invalid Field in Command: A reserved coded value", 0x2002)
        print("Admin Command Identify is Success and result: 0x00000000", file=sys.stderr)
        sys.stdout.buffer.write(b"".join(n.to_bytes(4, "little") for n in numbers).ljust(4096, b"\0"))
    elif what == "get-log" and int(option["--log-id"], 0) == 0x81:
        return sanitize_log(drive)
    elif what == "format":
        return format_(drive, option)
    elif what == "sanitize":
        drive["sanitize"] = {"action": int(args[args.index("-a") + 1]), "polls": 0}
        if drive.get("refuses"):
            return status(
                "Invalid Field in Command: A reserved coded value or an unsupported value in a defined field", 0x4002
            )
    else:
        print(f"fake nvme: unknown {args}", file=sys.stderr)
        return 22
    return 0


def format_(drive: dict, option: dict) -> int:
    if drive.get("refuses"):
        return status(
            "Access Denied: Access to the namespace and/or LBA range is denied due to lack of access rights", 0x4286
        )
    open(os.path.join(os.path.dirname(drive["backing"]), "drive.formatting"), "w").close()
    take_time(drive)
    erase(drive)
    drive["used"], drive["lbaf"], drive["ses"] = 0, int(option["--lbaf"]), int(option["--ses"])
    print("Success formatting namespace:1")
    return 0


def sanitize_log(drive: dict) -> int:
    if not drive.get("sanicap"):
        return status("Invalid Log Page: The log page indicated is invalid", 0x4109)
    drive["polls"] = drive.get("polls", 0) + 1
    if drive["polls"] in drive.get("silent", ()):
        print("log page: Input/output error", file=sys.stderr)
        return 1
    page, running = bytearray(512), drive.get("sanitize")
    page[0:2] = (0xFFFF).to_bytes(2, "little")
    for at, seconds in ((8, 0xFFFFFFFF), (12, 120), (16, 5)):
        page[at : at + 4] = seconds.to_bytes(4, "little")
    if running:
        running["polls"] += 1
        share = drive.get("stuck_at") or min(1.0, running["polls"] / drive.get("polls_to_end", 1))
        page[4] = running["action"] | 8
        if share < 1:
            page[0:2] = int(share * 65536).to_bytes(2, "little")
            page[2] = 2
        elif drive.get("fails"):
            page[2] = 3
        else:
            if not running.get("done"):
                erase(drive)
                running["done"] = True
            page[2], page[3] = 1, 1
    sys.stdout.buffer.write(page)
    return 0


# ---- hdparm 9.65


def identify_words(drive: dict) -> list[int]:
    words = [0] * 256
    words[0], words[49], words[80], words[83], words[84], words[87] = 0x0040, 0x0300, 0x03FE, 0x7400, 0x4000, 0x4000
    words[69] = drive.get("word69", 0)
    words[82] = 2 if drive.get("security", 1) else 0
    words[89], words[90] = drive.get("word89", 1), drive.get("word90", 1)
    words[169] = 1
    bits = ("security", "enabled", "locked", "frozen", "expired", "enhanced")
    words[128] = sum(1 << n for n, name in enumerate(bits) if drive.get(name, name == "security"))
    return words


def hdparm(drive: dict, args: list[str]) -> int:
    node = args[-1]
    if args == ["-V"]:
        print("hdparm v9.65")
        return 0
    print(f"\n{node}:")
    if drive.get("garbage"):
        print("0040 zzzz\n" * 4)
        return 0
    if "--Istdout" in args:
        words = identify_words(drive)
        for at in range(0, 256, 8):
            print(" ".join(f"{word:04x}" for word in words[at : at + 8]))
        return 0
    what = next(a for a in args if a.startswith("--security-") and a != "--security-mode")
    password = args[args.index(what) + 1]
    print(f' Issuing {what[2:].replace("-", "_").upper()} command, password="{password}", user=user')
    wrong = drive.get("password") not in (None, password)
    if drive.get("frozen") or wrong or what in drive.get("fails", ()):
        print(f"{what[2:].replace('-', '_').upper()}: Input/output error", file=sys.stderr)
        return 5
    if what == "--security-set-pass":
        drive |= {"enabled": 1, "password": password}
    elif what == "--security-unlock":
        drive["locked"] = 0
    elif what == "--security-disable":
        drive |= {"enabled": 0, "password": None}
    elif what in ("--security-erase", "--security-erase-enhanced"):
        take_time(drive)
        if drive.get("power_lost"):  # the drive comes back locked, in the middle of it
            drive["locked"] = 1
            return 5
        erase(drive)
        drive |= {"enabled": 0, "password": None}
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
