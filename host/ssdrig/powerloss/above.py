"""Guarantees of file systems and databases on the drive, their state after a cut, and whose fault a
difference is. Pure.

A client (clients.py) reports when each of its records was acknowledged. One that was acknowledged before power returned
was promised: a drive without power answers nothing, and the file systems were taken down before it had power again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ssdrig.base.errors import SsdrigError, Suspicion

JUDGED = "filesystems.judged"  # an event of the journal
DRIVE, FILESYSTEM = "drive", "file system or its options"
NOT_DOWN = (
    "the kernel had not ended the file systems when power returned, so its repeated writes are unknown: a longer"
    " off_time gives it time"
)
NAMED = 10  # lost records of a client


def client(
    report: Mapping[str, Any], left: Mapping[str, Any] | None, until_ns: int, fired_ns: int | None = None
) -> dict[str, Any]:
    """One client of one file system: how many records were `promised`, how many of all are `left`, how many of the
    promised are `lost` or `corrupt`, and `extra`, never begun.

    report: {"filesystem", "client", "session", "begun", "acked_ns", "at_rest"}, the times ascending; at rest: of an
        earlier session, found whole then and unmounted in order.
    left: as clients.Left has it; None: the file system cannot be mounted.
    until_ns: data acknowledged before that counts.
    fired_ns: when power was cut, to date lost data."""
    rests = bool(report.get("at_rest"))
    promised = sum(t_ns < until_ns for t_ns in report["acked_ns"])
    whole = left["whole"] if left else []
    differs = [record for record in (left["differs"] if left else []) if record <= promised]
    there = sum(last - first + 1 for first, last in whole)
    surviving = sum(max(0, min(last, promised) - first + 1) for first, last in whole)
    missing = _missing(whole, differs, promised)
    lost = promised - surviving - len(differs)
    ages = [(fired_ns - report["acked_ns"][n - 1]) / 1e6 for n in missing] if fired_ns and not rests else []
    return {
        "filesystem": report["filesystem"],
        "client": f"{report['client']}, at rest" if rests else report["client"],
        "session": report["session"],
        "promised": promised,
        "left": there,
        "lost": lost,
        "corrupt": len(differs),
        "extra": left["extra"] if left else 0,
        "first_lost": missing[0] if missing else None,
        "oldest_lost_ms": round(max(ages), 3) if ages else None,
        "why": left["why"] if left else "",
    }


def _missing(whole: Iterable[Sequence[int]], differs: Sequence[int], promised: int) -> list[int]:
    """The first and the last of the promised records that are not there at all, and some between."""
    there = set(differs)
    for first, last in whole:
        there.update(range(first, min(last, promised) + 1))
    lacking = [record for record in range(1, promised + 1) if record not in there]
    return lacking if len(lacking) <= NAMED else [*lacking[: NAMED - 1], lacking[-1]]


def broken(judged: Mapping[str, Any]) -> bool:
    """Whether a client has lost guaranteed data. An inconsistent database has, whatever rows it shows."""
    return bool(judged["lost"] or judged["corrupt"] or judged["extra"] or (judged["why"] and judged["promised"]))


def sound(filesystem: Mapping[str, Any]) -> bool:
    """Whether a file system, as mounts.py reports it, could be mounted and is consistent."""
    return filesystem.get("mounted") is True and filesystem["check"] == ""


def judge(
    cut: int,
    reports: Sequence[Mapping[str, Any]],
    seen: Mapping[str, Any],
    until_ns: int,
    fired_ns: int | None,
    down_ns: int | None,
    why_not: str,
    block_failed: bool,
) -> dict[str, Any]:
    """The verdict above the block after one session: {"cut", "judged", "why_not", "clients", "filesystems", "failed",
    "fault"}.

    reports, seen: what the clients reported, and what mounts.py found after the cut.
    until_ns: power had not returned before; NEVER of a session without a cut.
    fired_ns: when power was taken, None: it was not.
    down_ns: when the file systems were unmounted for certain; None: they were not.
    why_not: why the block test judges no cut, "" where it does.
    block_failed: the block test has proven a broken promise in this session."""
    if not why_not and (down_ns is None or down_ns >= until_ns):
        why_not = NOT_DOWN
    named = {(entry["filesystem"], entry["client"], entry["session"]): entry for entry in seen["clients"]}
    clients = [client(r, named.get((r["filesystem"], r["client"], r["session"])), until_ns, fired_ns) for r in reports]
    filesystems = [dict(entry) for entry in seen["filesystems"]]
    failed = any(map(broken, clients)) or not all(map(sound, filesystems))
    judged = not why_not
    return {
        "cut": cut,
        "judged": judged,
        "why_not": why_not,
        "clients": clients,
        "filesystems": filesystems,
        "failed": judged and failed,
        "fault": (DRIVE if block_failed else FILESYSTEM) if judged and failed else None,
    }


def damaged(events: Iterable[Mapping[str, Any]]) -> list[int]:
    """The sessions of a campaign's events after which something failed, of all its parts."""
    return [
        event["cut"] for event in events if event.get("kind") == JUDGED and well_formed(event) and event.get("failed")
    ]


def outcome(damaged: Sequence[int]) -> SsdrigError | None:
    """Outcome of a campaign whose block test proves nothing, where file systems or clients lack promised
    data after these sessions."""
    if not damaged:
        return None
    numbers = ", ".join(map(str, damaged[:NAMED])) + (", …" if len(damaged) > NAMED else "")
    seen = f"less after session {numbers}, without a block that the drive is proven to have lost"
    do = "./ssdrig report names each; check the mount options and the layers between file system and drive"
    return Suspicion("file systems and databases that have all that they promised", seen, do)


def totals(judged: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All sessions together, a row for each client of each file system and one (client "") for the file system itself:
    {"filesystem", "client", "options", "sessions", "promised", "left", "lost", "corrupt", "extra", "failing": numbers
    of sessions, "by_drive": how many of these the block test proves}."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for session in judged:
        if not well_formed(session) or not session["judged"]:
            continue
        by_drive = session["fault"] == DRIVE
        options = {part["filesystem"]: part["options"] for part in session["filesystems"]}
        for entry in [*session["filesystems"], *session["clients"]]:
            name = entry.get("client", "")
            row = rows.setdefault(
                (entry["filesystem"], name),
                {"filesystem": entry["filesystem"], "client": name, "options": options.get(entry["filesystem"], "")}
                | dict.fromkeys(("sessions", *COUNTED), 0)
                | {"failing": [], "by_drive": 0},
            )
            row["sessions"] += 1
            for key in COUNTED:
                row[key] += entry.get(key, 0)
            if broken(entry) if name else not sound(entry):
                row["failing"].append(session["cut"])
                row["by_drive"] += by_drive
    return sorted(rows.values(), key=lambda row: (row["filesystem"], row["client"]))


def well_formed(session: Mapping[str, Any]) -> bool:
    """Whether it is what judge() makes; a run folder may be damaged."""
    of = [session.get(key) for key in ("clients", "filesystems")]
    if type(session.get("judged")) is not bool or type(session.get("cut")) is not int:
        return False
    if not all(isinstance(part, list) and all(isinstance(one, Mapping) for one in part) for part in of):
        return False
    return all(
        all(isinstance(one.get(key), str) for key in ("filesystem", "client", "why"))
        and all(type(one.get(key)) is int and 0 <= one[key] < MOST for key in COUNTED)
        for one in session["clients"]
    ) and all(
        all(isinstance(one.get(key), str) for key in ("filesystem", "options", "check"))
        for one in session["filesystems"]
    )


MOST = 1 << 53  # a number that no client reaches, and JSON still holds
COUNTED = ("promised", "left", "lost", "corrupt", "extra")


def words(row: Mapping[str, Any]) -> str:
    """A row of totals() as a sentence."""
    if not row["client"]:
        text = f"{row['filesystem']}: mounted and consistent after {row['sessions'] - len(row['failing'])}"
        return f"{text} of {row['sessions']} sessions" + _whose(row)
    text = f"{row['client']} on {row['filesystem']}: {row['promised']} records promised, {row['lost']} lost"
    text += f", {row['corrupt']} corrupt" if row["corrupt"] else ""
    text += f", {row['extra']} never begun" if row["extra"] else ""
    return text + _whose(row)


def _whose(row: Mapping[str, Any]) -> str:
    failing, by_drive = len(row["failing"]), row["by_drive"]
    if not failing:
        return ""
    if by_drive == failing:
        return f"; the drive's fault: the block test proves lost writes in all {failing} of these sessions"
    clause = f"; in {by_drive} of {failing} sessions the block test proves the drive's fault" if by_drive else ""
    options = f" ({row['options']})" if row["options"] else ""
    rest = failing - by_drive
    return f"{clause}; in {rest} it found no wrong block: the file system or its options{options}, or a fault it missed"
