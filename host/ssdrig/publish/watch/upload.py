"""A watch folder's polls as points, sent to InfluxDB: made from the months' files alone, kept in points.lp until a
server has acknowledged them, as with runs (publish/influx/points.py, publish/influx/sender.py).

A watch folder's polls as lines of InfluxDB line protocol: each of its record, and of the month's first."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from ssdrig.base.errors import UploadIncomplete
from ssdrig.base.files import write_atomically
from ssdrig.drive.smart import counters
from ssdrig.drive.smart import watch_folder as folder
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.drive.smart.watch_folder import lines
from ssdrig.publish.influx import line_protocol, sender, smart_points
from ssdrig.publish.influx.line_protocol import SCHEMA
from ssdrig.publish.influx.link import LAST_S
from ssdrig.publish.influx.outbox import Outbox

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


FORGET_BYTES = 16 << 20  # acknowledged lines beyond this are dropped: the months' files have them
NEW_FILES_S = 1.0


class Upload:
    """One at a time: it locks points.lp. points.made states how far each month's file has been made into lines, and for
    whom; without it, or for another server, all is made and sent again, which changes nothing in a database that has
    it."""

    def __init__(self, folder: Path, to: sender.Target, say: Callable[[str], None]):
        self.folder, self.to, self.say = Path(folder), to, say
        self._lines = Lines()
        self._looked = -NEW_FILES_S
        self._outbox = Outbox(self.folder)
        made = self._read_made()
        if made is None:
            self._outbox.empty()
            made = {}
        self._made = made
        self._sender = sender.Sender(self.folder, to, say=say)

    def close(self) -> None:
        self._sender.close()
        self._outbox.close()

    def step(self) -> bool:
        """Make lines of new polls, send at most one batch. Returns whether more may follow immediately."""
        if time.monotonic() - self._looked >= NEW_FILES_S:
            self.make()
            self._looked = time.monotonic()
        moved = self._sender.attempt()
        if self._sender.offset >= self._outbox.size > FORGET_BYTES:
            self._outbox.empty()
            self._sender.close()
            self._sender = sender.Sender(self.folder, self.to, say=self.say)
        return moved

    def finish(self, timeout_s: float) -> None:
        """Send all there is. UploadIncomplete if the server took nothing for timeout_s, or refused a line."""
        self.make()
        moved_at = time.monotonic()
        while self._sender.offset < self._outbox.size:
            late = time.monotonic() - moved_at >= timeout_s
            self._sender.until = moved_at + timeout_s + LAST_S
            if self._sender.attempt(last=late):
                moved_at = time.monotonic()
            elif late:
                break
            else:
                time.sleep(min(0.2, timeout_s))
        pending, rejected = self._sender.pending(), self._sender.rejected
        self.close()
        if pending:
            raise UploadIncomplete(
                f"all points in {self.to}", f"{pending} not sent yet", "they are kept; the next ssdrig watch sends them"
            )
        if rejected:
            raise UploadIncomplete(
                f"all points in {self.to}", f"{rejected} refused for good", f"read {self.folder / 'rejected.jsonl'}"
            )

    def make(self) -> int:
        """Append the new records of the months' files to points.lp. Returns how many lines."""
        made = 0
        for path in sorted(self.folder.glob("*/*.jsonl")):
            name = f"{path.parent.name}/{path.name}"
            start = self._made.get(name, 0)
            if path.stat().st_size <= start:
                continue
            block, end = [], start
            for line_ in lines(path, start):
                end = line_.end
                if line_.record is not None and answered(line_.record):
                    block += self._lines.of(path, line_.record)
            if end > start:
                self._outbox.append(b"".join(block))  # before points.made: a crash between makes them twice, the same
                self._made[name] = end
                content = {"schema": SCHEMA, "to": str(self.to), "files": self._made}
                write_atomically(self.folder / "points.made", json.dumps(content).encode() + b"\n")
                made += len(block)
        return made

    def _read_made(self) -> dict[str, int] | None:
        try:
            content = json.loads((self.folder / "points.made").read_bytes())
            if content["schema"] == SCHEMA and content["to"] == str(self.to):
                return {str(name): int(end) for name, end in content["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            pass
        return None
