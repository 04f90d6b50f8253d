"""A watch folder's polls as lines of InfluxDB line protocol: each of its record, and of the month's first."""

from pathlib import Path

from ssdrig.drive.smart import counters
from ssdrig.drive.smart import watch_folder as folder
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.publish.influx import line_protocol, smart_points

RUN = "watch"  # the tag `run`


class Lines:
    """left_out: values that no database can hold."""

    def __init__(self):
        self.left_out = 0
        self._schema = line_protocol.read_schema()
        # month's file -> identity and snapshot of its first answered poll
        self._first: dict[Path, tuple[dict, dict]] = {}

    def of(self, path: Path, record: dict) -> list[bytes]:
        """The lines, each with its line end, of an answered poll that the month's file `path` holds."""
        if path not in self._first:
            records = (one.record for one in folder.lines(path))
            first = next(one for one in records if one is not None and answered(one))
            self._first[path] = smart_points.identity(first), counters.snapshot(first)
        identity, base = self._first[path]
        snapshot = counters.snapshot(record)
        drive = record["drive"]
        ours = {
            "run": RUN,
            "host": str(record.get("host") or ""),
            "drive": f"{drive.get('model', '')} {drive.get('serial', '')}",
        }
        out = []
        since = base if base["t_ns"] != snapshot["t_ns"] else None  # None: the first poll itself
        for measurement, tags, fields in smart_points.of_poll(record, identity, snapshot, since):
            m = self._schema[measurement]
            tags = {name: value for name, value in ours.items() if name in m.tags} | tags
            fields = fields | {name: value for name, value in ours.items() if name in m.fields}
            encoded = line_protocol.encode(m, tags, fields, record["utc_ns"])
            self.left_out += len(encoded.left_out)
            if encoded.line is not None:
                out.append(encoded.line + b"\n")
        return out

    def tell(self, result: dict) -> None:
        """Print the lines of a poll on stdout, for Telegraf's inputs.execd: none of one that was not answered, or not
        kept."""
        if result["kept"] and answered(result["record"]):
            print(b"".join(self.of(Path(result["kept"]["file"]), result["record"])).decode(), end="", flush=True)
