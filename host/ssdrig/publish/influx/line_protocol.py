"""InfluxDB line protocol: points in, lines out, the form that every generation (1.6 to 3) reads alike.

    measurement,tag=value,… field=value,… utc_ns

What may be written is schemas/influx.toml and nothing else; tags stand in the order given there. Rules that are
stricter than any one server's, because each is a trap in one of them:
- control characters (line ends too) become spaces, a backslash in a tag becomes "/", an empty tag is left out;
- NaN and infinities, and integers beyond 64 bits, cannot be written: the field is left out and named to the caller;
- text is forced into valid UTF-8.

The tags by which points of one run belong together."""

import functools
import math
import operator
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig.base import shipped
from ssdrig.drive.identity import ENCLOSURE, Identity


def drive_tag(header: Mapping) -> str:
    """Model and serial: unique to the drive, and readable in a legend; of a disk that shows its enclosure's serial also
    its identity in the database. An unknown figure is left out."""
    drive = header["drive"]
    serial = drive.get("serial") or ""
    if drive.get("serial_source") == ENCLOSURE:
        serial = Identity.of(drive).consent
    return f"{drive.get('model') or ''} {serial}"


def host_tag(header: Mapping) -> str:
    """The name of the machine the drive sat in; "" if the run does not record it."""
    host = header.get("host")
    name = host.get("name") if isinstance(host, Mapping) else None
    return name if isinstance(name, str) else ""


SCHEMA_FILE = shipped.path("schemas/influx.toml")
SCHEMA = 3
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_SERIES_END = re.compile(rb"(?<!\\) ")
_ESCAPED = re.compile(r"\\([,= ])")
_FIELD = re.compile(rb'(\w+)=(?:"(?:[^"\\]|\\.)*"|[^," ]+)')


class PointError(ValueError):
    """A point that the schema does not know: a defect of the caller, never of the data."""


class Measurement(NamedTuple):
    """One table of influx.toml. tags in writing order; fields: name -> "i", "f", "s" or "b"."""

    name: str
    tags: tuple[str, ...]
    fields: dict[str, str]


class Line(NamedTuple):
    """line without its line end, None if no field could be written; left_out: names of fields that could not."""

    line: bytes | None
    left_out: tuple[str, ...]


def parse_schema(text: str) -> dict[str, Measurement]:
    """Text of influx.toml -> measurements by name. PointError if some server would misread it."""
    document = tomllib.loads(text)
    if document.pop("schema", None) != SCHEMA:
        raise PointError(f"influx.toml: schema is not {SCHEMA}")
    return {name: _measurement(name, table) for name, table in document.items()}


@functools.cache
def read_schema(path: Path = SCHEMA_FILE) -> dict[str, Measurement]:
    return parse_schema(path.read_text(encoding="utf-8"))


def _measurement(name: str, table: dict) -> Measurement:
    tags, fields = table["tags"], table["fields"]
    keys = [*tags, *fields]
    for key in [name, *keys]:
        if not _NAME.fullmatch(key) or key == "time":
            raise PointError(f"influx.toml: {key!r} cannot be a name")
    if len(set(keys)) != len(keys):
        raise PointError(f"influx.toml: {name} uses a key twice, InfluxDB 3 refuses that")
    if tags != sorted(tags):
        raise PointError(f"influx.toml: the tags of {name} are not in alphabetical order")
    if not fields or set(fields.values()) - set("ifsb"):
        raise PointError(f"influx.toml: {name} has no fields or one of an unknown type")
    return Measurement(name, tuple(tags), dict(fields))


def fits(value: Any, kind: str) -> bool:
    """Whether a value is of the kind that the schema states; a run folder may come from a third party."""
    if kind in "if":
        return isinstance(value, int if kind == "i" else int | float) and not isinstance(value, bool)
    return isinstance(value, str if kind == "s" else bool)


def fitting(measurement: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a measurement whose values fit."""
    kinds = read_schema()[measurement].fields
    return {name: value for name, value in fields.items() if fits(value, kinds[name])}


def clean(value: str | bytes) -> str:
    """Text that every server stores as it is: valid UTF-8, no control characters, no space at either end."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    value = value.encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub(" ", value).strip()


def clean_tag(value: str | bytes) -> str:
    """As clean, and without backslashes: one at the end of a tag cannot be written to any generation."""
    return clean(value).replace("\\", "/")


@functools.lru_cache(maxsize=1024)
def _tag(value: str | bytes) -> str:
    """As written. The same few come again in each line."""
    return clean_tag(value).replace(",", r"\,").replace("=", r"\=").replace(" ", r"\ ")


def encode(m: Measurement, tags: Mapping[str, str], fields: Mapping[str, Any], utc_ns: int) -> Line:
    """One point as a line. Fields that are None are unknown and omitted.
    PointError: a tag or field that the schema lacks, or a value of another type."""
    for key in tags:
        if key not in m.tags:
            raise PointError(f"{m.name} has no tag {key!r}")
    head = m.name
    for key in m.tags:
        value = _tag(tags.get(key, ""))
        if value:
            head += f",{key}={value}"
    written, left_out = [], []
    for key, value in fields.items():
        if key not in m.fields:
            raise PointError(f"{m.name} has no field {key!r}")
        if value is None:
            continue
        text = _field(f"{m.name}.{key}", m.fields[key], value)
        if text is None:
            left_out.append(key)
        else:
            written.append(f"{key}={text}")
    t = _integer(f"time of {m.name}", utc_ns)
    if not INT64_MIN + 2 <= t < INT64_MAX:
        raise PointError(f"time of {m.name} is beyond 64 bits: {t}")
    if not written:
        return Line(None, tuple(left_out))
    return Line(f"{head} {','.join(written)} {t}".encode(), tuple(left_out))


def _field(name: str, kind: str, value: Any) -> str | None:
    if kind == "s":
        if not isinstance(value, (str, bytes)):
            raise PointError(f"{name} takes text, got {value!r}")
        return '"' + clean(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if kind == "b":
        if not isinstance(value, bool):
            raise PointError(f"{name} takes a boolean, got {value!r}")
        return "true" if value else "false"
    if kind == "i":
        whole = _integer(name, value)
        return f"{whole}i" if INT64_MIN <= whole <= INT64_MAX else None
    if isinstance(value, (bool, str, bytes)):
        raise PointError(f"{name} takes a number, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise PointError(f"{name} takes a number, got {value!r}") from None
    except OverflowError:
        return None
    return repr(number) if math.isfinite(number) else None


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool):
        raise PointError(f"{name} takes an integer, got {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise PointError(f"{name} takes an integer, got {value!r}") from None


def series_and_time(line: bytes) -> tuple[bytes, int]:
    """A line that encode made -> (measurement and tags as written, utc_ns). PointError if it is not one."""
    end = _SERIES_END.search(line)
    _, space, t = line.rpartition(b" ")
    if not end or not space or end.start() >= len(line) - len(t) - 1:
        raise PointError(f"not a line: {line[:80]!r}")
    try:
        return line[: end.start()], int(t)
    except ValueError:
        raise PointError(f"not a line: {line[:80]!r}") from None


def tags_of(series: bytes) -> tuple[str, dict[str, str]]:
    """What series_and_time gave -> measurement and tags."""
    name, *tags = re.split(r"(?<!\\),", series.decode())
    pairs = (tag.partition("=") for tag in tags)
    return name, {key: _ESCAPED.sub(r"\1", value) for key, _, value in pairs}


def field_names(line: bytes, series: bytes) -> list[str]:
    """The fields that a line of this series has."""
    return [name.decode() for name in _FIELD.findall(line[len(series) + 1 : line.rindex(b" ")])]
