"""The table of ATA attributes (ata_units.toml): meaning and unit of each attribute, by drive.

Roles: host_written, host_read, nand_written, nand_written_tlc, nand_written_slc (bytes; conversion = unit in bytes, a
list of units among which the drive's own figures choose, "?" = not known), host_read_high, host_written_high,
nand_written_high (the second half of a counter, which must be 0), host_pages and ftl_pages (pages of unknown size),
pe_mean, pe_max, pe_min, pe_rated, the names of snapshot fields, and "nothing": the attribute is not what its name
suggests, later rows do not apply to it.

Conversions: "raw"; "word 0" … "word 2" (16 bits each of raw, word 0 the lowest); "low 8 bits"; "low 24 bits";
"count behind percent" (Intel's EAh as smartctl orders its bytes: percent, then 32 bits of count; printed "0/5");
"raw / 1024"; "normalised"; "100 - normalised"; "raw, 100 - normalised" (raw counts what is used; it is taken where the
two agree); "100 - life left" (raw counts what is left, on controllers whose normalised value may always be 100:
raw if 0 < raw <= 100 and (normalised = 100 or raw = normalised), else normalised); "percent word 0" (16 bits 0xabcd are
ab.cd %); "raw unless normalised" (unknown where raw only repeats the normalised value); "raw unless a rate" (unknown
where the normalised value is above 100).

Recognise the controller family of an ATA drive that smartctl's database does not list: by model, firmware and the
set of its attributes (ata_families.toml). Pure, except for reading that table once."""

import functools
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import owner
from ssdrig.base.errors import UsageError
from ssdrig.drive.smart.json_numbers import inside, objects, text
from ssdrig.drive.smart.plausible import ERROR_COUNTERS


class Family(NamedTuple):
    """name: as smartctl's database calls the family; names: what its attributes are called there, by id; evidence: what
    the row rests on."""

    name: str
    names: dict[int, str]
    evidence: str


class _Row(NamedTuple):
    model: re.Pattern
    firmware: re.Pattern
    ids: frozenset[int]
    family: Family


def family_of(model: str, firmware: str, ids: frozenset[int]) -> Family | None:
    """The family of a drive.

    model, firmware: as the drive reports them. ids: its attributes; a row holds where it asks for no other.
    None without a model, and where no row fits."""
    if not model:
        return None
    for row in _rows():
        if row.model.search(model) and row.firmware.search(firmware) and row.ids <= ids:
            return row.family
    return None


@functools.cache
def _rows() -> tuple[_Row, ...]:
    document = tomllib.loads(Path(__file__).with_name("ata_families.toml").read_text("utf-8"))
    return tuple(
        _Row(
            re.compile(row.get("model", "")),
            re.compile(row.get("firmware", "")),
            frozenset(row["ids"]),
            Family(row["family"], {int(key): name for key, name in row["names"].items()}, row["evidence"]),
        )
        for row in document["families"]
    )


SHIPPED = Path(__file__).with_name("ata_units.toml")
BYTE_ROLES = ("host_written", "host_read", "nand_written", "nand_written_tlc", "nand_written_slc")
SECOND_HALVES = {
    "host_written_high": "host_written",
    "host_read_high": "host_read",
    "nand_written_high": "nand_written",
}
PE_ROLES = ("pe_mean", "pe_max", "pe_min", "pe_rated")
OTHER_ROLES = (
    *PE_ROLES,
    "host_pages",
    "ftl_pages",
    "percentage_used",
    "available_spare_percent",
    "workload_wear_percent",
    "workload_reads_percent",
    "workload_timer_min",
    "temperature_C",
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
    "throttle_count",
    *ERROR_COUNTERS,
)
NOTHING = "nothing"
CONVERSIONS = {
    "raw",
    "word 0",
    "word 1",
    "word 2",
    "low 8 bits",
    "low 24 bits",
    "count behind percent",
    "raw / 1024",
    "normalised",
    "100 - normalised",
    "raw, 100 - normalised",
    "100 - life left",
    "percent word 0",
    "raw unless normalised",
    "raw unless a rate",
}
KEYS = {"family", "model", "firmware", "proof", "evidence", "compresses", "rows"}


Conversion = int | str | tuple[int, ...]


class Entry:
    """One [[drives]] of the table: three patterns (None: not asked), attribute names that prove the family where a
    saved file does not have it, whether the controller compresses, and its rows."""

    def __init__(self, table: dict, path: Path):
        try:
            self.family, self.model, self.firmware = (
                re.compile(table[name]) if name in table else None for name in ("family", "model", "firmware")
            )
        except (TypeError, re.error) as error:
            raise UsageError(f"regular expressions in {path}", repr(error), "correct it") from None
        proof, rows = table.get("proof", []), table.get("rows", [])
        good = self.family is not None or self.model is not None
        good = good and isinstance(proof, list) and isinstance(rows, list) and KEYS.issuperset(table)
        if not good or not isinstance(table.get("compresses", False), bool):
            raise UsageError(
                f"family or model, rows, and optionally firmware, proof, compresses, in {path}",
                ", ".join(map(str, table)) or "nothing",
                "see the head of ssdrig's ata_units.toml",
            )
        self.proof, self.compresses = frozenset(map(str, proof)), table.get("compresses", False)
        self.rows = [_checked(row, path) for row in rows]

    def fits(self, family: str | None, listed: bool | None, model: str, firmware: str, names: frozenset) -> bool:
        """listed: whether the drive is in smartctl's database; None if the file does not say, as after `smartctl -A`:
        then a name that only the database knows is proof enough."""
        if self.model is not None and not self.model.search(model):
            return False
        if self.firmware is not None and not self.firmware.search(firmware):
            return False
        if self.family is None:
            return True
        if self.family.pattern == "":
            return listed is not False
        if family is not None:
            return bool(self.family.search(family))
        return listed is None and not self.proof.isdisjoint(names)


class Rows:
    """The rows for one drive. family: the one that ssdrig recognised where smartctl names none."""

    def __init__(self, entries: list[Entry], family: Family | None = None):
        self.family = family
        self.compresses = any(entry.compresses for entry in entries)
        self._named: dict[str, list] = {}
        self._unnamed: dict[int, list] = {}
        for rank, (key, name, role, conversion) in enumerate(row for entry in entries for row in entry.rows):
            row = (rank, key, role, conversion)
            if name:
                self._named.setdefault(name, []).append(row)
            else:
                self._unnamed.setdefault(key, []).append(row)

    def name_of(self, key: int, name: str) -> str:
        """The attribute's name: smartctl's, or that of the recognised family, which its default names hide."""
        return self.family.names.get(key, name) if self.family else name

    def of(self, key: int, name: str) -> list[tuple[int, str, Conversion]]:
        """[(rank, role, conversion)] of an attribute, the first of each role; a lower rank goes first."""
        out, roles = [], set()
        matches = [row for row in self._named.get(name, ()) if row[1] in (0, key)]
        for rank, _, role, conversion in sorted(
            [*matches, *self._unnamed.get(key, ()), *self._unnamed.get(0, ())], key=lambda row: row[0]
        ):
            if role == NOTHING:
                break
            if role not in roles:
                roles.add(role)
                out.append((rank, role, conversion))
        return out


def rows_for(document: dict, smartctl: dict) -> Rows:
    """The rows for the drive of a SMART document. Raises UsageError for a table that cannot be used."""
    family, known = text(smartctl.get("model_family")), smartctl.get("in_smartctl_database")
    listed = True if family is not None else known if isinstance(known, bool) else None
    model = text(smartctl.get("model_name")) or text(inside(document, "drive", "model")) or ""
    firmware = text(smartctl.get("firmware_version")) or text(inside(document, "drive", "firmware")) or ""
    names: frozenset[str] = frozenset()
    table = objects(inside(smartctl, "ata_smart_attributes", "table"))
    if listed is None:
        names = frozenset(row["name"] for row in table if isinstance(row.get("name"), str))
    ids = frozenset(row["id"] for row in table if type(row.get("id")) is int)
    return _rows_for(family, listed, model, firmware, names, ids if family is None else frozenset())


@functools.lru_cache(256)
def _rows_for(
    family: str | None, listed: bool | None, model: str, firmware: str, names: frozenset, ids: frozenset
) -> Rows:
    own = family_of(model, firmware, ids) if family is None and listed is not True else None
    if own is not None:
        family, listed = own.name, True
    return Rows([entry for entry in entries() if entry.fits(family, listed, model, firmware, names)], own)


def user_file() -> Path:
    """$XDG_CONFIG_HOME/ssdrig/ata_units.toml, whose rows win over the shipped ones."""
    return owner.base("XDG_CONFIG_HOME", ".config") / "ssdrig" / "ata_units.toml"


@functools.cache
def entries() -> tuple[Entry, ...]:
    """The user's table first; read once. Raises UsageError for a file that cannot be used."""
    out = []
    for path in (user_file(), SHIPPED):
        try:
            document = tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise UsageError(
                f"a table of attributes in {path}", str(error), "correct the file, or move it away"
            ) from None
        drives = document.get("drives")
        if not isinstance(drives, list) or not all(isinstance(table, dict) for table in drives):
            raise UsageError(
                f"[[drives]] in {path}", ", ".join(document) or "nothing", "write it as ata_units.toml of ssdrig is"
            )
        out += [Entry(table, path) for table in drives]
    return tuple(out)


def forget() -> None:
    """Read the tables again at the next call (tests)."""
    entries.cache_clear()
    forget_rows()


def forget_rows() -> None:
    """Choose the rows of each drive again at the next call."""
    _rows_for.cache_clear()


def _checked(row, path: Path) -> tuple[int, str, str, Conversion]:
    good = isinstance(row, list) and len(row) == 4 and isinstance(row[0], int) and isinstance(row[1], str)
    if good:
        role, how = row[2:]
        if role in BYTE_ROLES:
            units = how if isinstance(how, list) else [how]
            good = how == "?" or bool(units) and all(type(unit) is int and unit > 0 for unit in units)
        elif role == NOTHING:
            good = how == ""
        else:
            good = (role in OTHER_ROLES or role in SECOND_HALVES) and how in CONVERSIONS
    if not good:
        raise UsageError(
            f'[id, "name", "role", conversion] in {path}',
            repr(row),
            "see ssdrig/drive/ata_table.py for roles and conversions",
        )
    return row[0], row[1], role, tuple(how) if isinstance(how, list) else how
