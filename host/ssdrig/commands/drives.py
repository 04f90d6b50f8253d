"""`ssdrig drives`: every whole disk of this machine, whether it is safe to test and if not why, its health, wear and
temperature."""

import json
import os
import shutil
import sys
import textwrap
from dataclasses import asdict

from ssdrig.base.errors import SsdrigError, UsageError
from ssdrig.base.terminal import painter, printable
from ssdrig.base.words import size
from ssdrig.drive import guard, identity, inventory, unrestored, uses
from ssdrig.drive.inventory import Drive
from ssdrig.drive.smart import collect, counters, health

OF_SMART = ("health", "health_reasons", "health_ok", "percentage_used", "temperature_C")
POLL_TIMEOUT_S = 20
NOT_ASKED = "not asked (--no-smart)"
WIDE = (240, 24)  # output to a file is not wrapped
UNKNOWN = "-"
SHADES = {"safe": "green", "has data": "yellow", "NO": "red"}
EXAMPLES = (
    ("drives", "as root: also health, wear, temperature"),
    ("drives --json --no-smart", "for a script"),
    ("drives --put-back SERIAL", "after a killed run"),
)


def add_arguments(parser) -> None:
    parser.add_argument("--json", action="store_true", help="print a list of objects on stdout")
    parser.add_argument(
        "--no-smart", action="store_true", help="do not ask the drives: no health, wear and temperature"
    )
    parser.add_argument(
        "--put-back", metavar="SERIAL", help="restore the settings of a drive that a killed run left changed"
    )


def command(args) -> int:
    if args.put_back is not None:
        return _put_back(args)
    rows = survey(smart=not args.no_smart)
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        print(table(rows, shutil.get_terminal_size(WIDE).columns) if rows else "no whole disk on this machine")
    if os.geteuid() != 0:
        print(
            "not root: SMART, signatures and what other users' programs write to could not be seen (sudo ./ssdrig"
            " drives)",
            file=sys.stderr,
        )
    return 0


def _put_back(args) -> int:
    """Raises DriveError where a setting is not back, UnsafeTarget while a run holds the drive."""
    if args.json or args.no_smart:
        raise UsageError("--put-back alone", "--json or --no-smart", "leave it out")
    drive = inventory.find(args.put_back)
    with guard.hold(drive, reads=True) as held, held.named() as now:
        left = unrestored.of(now, held.path, guard.busy)
        for one in left:
            unrestored.put_back(one, now)
            print("\n".join(f"{key} is {one.before[key][0]} again" for key in one.now))
    if not left:
        print("each setting is as it was before the last run")
    return 0


def survey(smart: bool = True, root: str | os.PathLike = "/") -> list[dict]:
    """One dict per drive, in order of the kernel's names: the fields of Drive, "consent" (what --destroy-data must
    repeat), "twins" (nodes of other disks with its serial), "safe" (nothing speaks against a test),
    "refusals" ([{"check", "why", "override"}]), "health", "health_reasons", "health_ok", "percentage_used",
    "temperature_C", and "smart_trouble": why these are not known, None if the drive answered. A drive that a run holds
    is not asked."""
    machine = uses.survey(root)
    rows = []
    for drive in machine.drives:
        against = guard.refusals(drive, root=root, machine=machine)
        twins = [other.node for other in identity.twins(drive, machine.drives)]
        rows.append(asdict(drive) | {"consent": drive.consent, "twins": twins})
        rows[-1] |= {"safe": not against, "refusals": [asdict(r) for r in against]}
        rows[-1] |= dict.fromkeys(OF_SMART) | {"health": "unknown", "health_reasons": [], "smart_trouble": NOT_ASKED}
    if smart:
        asked = []
        for drive, row in zip(machine.drives, rows, strict=True):
            if guard.busy(drive.serial, root):
                row["smart_trouble"] = "not asked: a run holds the drive"
            else:
                asked.append((drive, row))
        for row, seen in zip([row for _, row in asked], _health([drive for drive, _ in asked]), strict=True):
            row |= seen
    return rows


def _health(drives: list[Drive]) -> list[dict]:
    if not drives:
        return []
    try:
        documents = collect.poll_all(drives, timeout_s=POLL_TIMEOUT_S)
    except SsdrigError as error:  # no tool at all
        return [{"smart_trouble": str(error)} for _ in drives]
    out = []
    for document in documents:
        trouble = None if collect.answered(document) else "; ".join(document.get("gaps") or ["it did not answer"])
        seen = counters.snapshot(document)
        out.append({key: seen[key] for key in OF_SMART} | {"smart_trouble": trouble})
    return out


# --- for people


def table(rows: list[dict], columns: int) -> str:
    """The drives as a table, or as a block each where `columns` are too few."""
    head = ("DEVICE", "SERIAL", "MODEL", "FIRMWARE", "SIZE", "INTERFACE", "HEALTH", "WEAR", "TEMP", "TEST")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    if sum(widths) + 2 * len(widths) - 2 > columns:
        return "\n\n".join(_block(row, columns) for row in rows)
    out, paint = [], painter(sys.stdout)
    for line, row in zip(cells, [None, *rows], strict=True):
        before = "  ".join(cell.ljust(width) for cell, width in zip(line[:-1], widths[:-1], strict=True))
        out.append(f"{before}  {paint(line[-1], SHADES[line[-1]]) if row else line[-1]}")
        if row:
            out += _below(row, columns)
    return "\n".join(out)


def _cells(row: dict) -> tuple[str, ...]:
    state = row["health"]
    shown = UNKNOWN if state == health.UNKNOWN else state if state == health.OK else state.upper()
    used = UNKNOWN if row["percentage_used"] is None else f"{row['percentage_used']:g} %"
    heat = UNKNOWN if row["temperature_C"] is None else f"{row['temperature_C']:g} °C"
    return (
        os.path.basename(row["node"]) or UNKNOWN,
        printable(row["serial"]) or UNKNOWN,
        printable(row["model"]) or UNKNOWN,
        printable(row["firmware"]) or UNKNOWN,
        size(row["capacity_bytes"]),
        _interface(row),
        shown,
        used,
        heat,
        _verdict(row),
    )


def _verdict(row: dict) -> str:
    return "safe" if row["safe"] else "has data" if all(r["override"] for r in row["refusals"]) else "NO"


def _interface(row: dict) -> str:
    """ "NVMe PCIe 4.0 x4", "SATA 6.0 Gb/s": the link speed names SATA, SAS and USB itself."""
    link, interface = row["link"], row["interface"]
    bridge = f" bridge {row['usb_id']}" if row["usb_id"] else ""
    return (link if link.startswith(interface) else f"{interface} {link}".strip()) + bridge


def _below(row: dict, columns: int) -> list[str]:
    """The lines under a drive: its names, what speaks against a test, why its health is not known."""
    lines = [row["by_id"] or f"{row['node']}, which has no by-id link"]
    if row["serial_source"] == identity.ENCLOSURE:
        lines.append(
            f"serial {printable(row['serial'])} is its enclosure's, whatever disk is in it; to write over data:"
            f" --destroy-data {printable(row['consent'])}"
        )
    elif row["serial_source"] == identity.IDENTIFY and row["enclosure_serial"]:
        lines.append(f"in an enclosure with serial {printable(row['enclosure_serial'])}")
    lines += [
        f"{r['check']}: {r['why']}" + (f" [unless {r['override']}]" if r["override"] else "") for r in row["refusals"]
    ]
    lines += [f"health: {reason['words']}" for reason in row["health_reasons"]]
    if row["smart_trouble"] not in (None, NOT_ASKED):
        lines.append(f"SMART: {row['smart_trouble']}")
    wrap = textwrap.TextWrapper(
        max(columns, 30), initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [part for line in lines for part in wrap.wrap(line)]


def _block(row: dict, columns: int) -> str:
    node, serial, model, firmware, size, interface, state, used, heat, verdict = _cells(row)
    shown = painter(sys.stdout)(verdict, SHADES[verdict])
    facts = f"  {size}, {interface}, firmware {firmware}" + "".join(
        f", {what}{value}" for what, value in (("health ", state), ("wear ", used), ("", heat)) if value != UNKNOWN
    )
    return "\n".join(
        [
            f"{node}  {serial}  {model}",
            *textwrap.wrap(facts, columns, subsequent_indent="  ", break_on_hyphens=False),
            f"  test: {shown}",
            *_below(row, columns),
        ]
    )
