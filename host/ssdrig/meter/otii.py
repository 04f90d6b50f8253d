"""CSV of Qoitech's Otii 3: a file for each channel of a recording, with the quantity in its name.

"Main current - Ace.csv" has the columns "Timestamp" and "Value": seconds on the time line of the project, and A. A
sample holds from its time until the next one. Channels have rates of their own: those of the Ace up to 50 000 a second
for the current, 1000 for other voltages.

Sources: an export of the Otii 3 app and a reader that writes the same bytes, in the repository andyshinn/otiio
(its folder csvtest1, its module export, and "Statistics match the Otii app" of its readme)."""

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.base.columns import Column
from ssdrig.base.errors import UsageError
from ssdrig.meter import recordings
from ssdrig.meter.recordings import Rail, Recording

NAME = re.compile(r"(?P<rail>Main|ADC) (?P<quantity>current|voltage|power) - (?P<device>.+)\.csv(\.gz)?")
ROLES = {"current": "A", "voltage": "V", "power": "W"}
DO = "give the files the names that Otii gave them, such as 'Main current - Ace.csv' and 'Main voltage - Ace.csv'"


class Channel(NamedTuple):
    """One file. `begins_ns`: when each sample begins to hold; `values`: in A, V or W; `period_ns` of the samples."""

    begins_ns: np.ndarray
    values: np.ndarray
    period_ns: int
    notes: list[str]


def is_channel(path: Path) -> bool:
    """Whether a file has the name of a channel that read() reads."""
    return NAME.fullmatch(path.name) is not None


def read(paths: Sequence[Path], voltage: float | None = None) -> Recording:
    """The recording whose channels are in these files: of each rail its power, or its current and its voltage.

    voltage: of a rail without a recorded one
    Raises UsageError."""
    groups: dict[tuple[str, str], dict[str, Path]] = {}
    for path in paths:
        match = NAME.fullmatch(path.name)
        if match is None:
            raise UsageError("channels of Otii", path.name, DO)
        files = groups.setdefault((match["device"], match["rail"]), {})
        if match["quantity"] in files:
            raise UsageError(f"one file of {match['quantity']} of {match['rail']}", "two", "import one recording")
        files[match["quantity"]] = path
    if len({device for device, _ in groups}) > 1:
        seen = ", ".join(dict.fromkeys(device for device, _ in groups))
        raise UsageError("channels of one Otii", seen, "import one by one")
    rails, notes = [], []
    for (_, name), files in groups.items():
        rail, of_rail = _rail(name, files, voltage)
        rails.append(rail)
        notes += of_rail
    device = next(iter(groups))[0]
    return recordings.checked(Recording(f"Otii CSV ({device})", False, rails, tuple(notes)), paths[0])


def _rail(name: str, files: dict[str, Path], voltage: float | None) -> tuple[Rail, list[str]]:
    main = "power" if "power" in files else "current"
    if main not in files:
        raise UsageError(f"the current or the power of {name}", "its voltage alone", DO)
    channel = _channel(files[main], main)
    begins_ns, values, notes = channel.begins_ns, channel.values, list(channel.notes)
    if "voltage" in files:
        of_V = _channel(files["voltage"], "voltage")
        V, seen = _held(of_V, begins_ns)
        notes += of_V.notes
        if not seen.all():
            notes.append(f"{name}: {int((~seen).sum())} samples of a time without a recorded voltage are left out")
        begins_ns, values, V = begins_ns[seen], values[seen], V[seen]
    elif voltage is not None:
        V = np.full(len(values), voltage)
        notes.append(f"voltage of {name}: {voltage:g} V as given by --voltage, not measured")
    else:
        missing = f"the voltage of {name}: its file, or --voltage 5"
        raise UsageError(missing, "none", "name it; power needs both")
    W = values if main == "power" else values * V
    there = np.isfinite(V) & np.isfinite(W)
    if not there.all():
        notes.append(f"{name}: {int((~there).sum())} lines without a number are left out")
    ends_ns = begins_ns + channel.period_ns  # a sample of a Recording represents the time before it
    return Rail(name, *recordings.thinned(ends_ns[there], V[there], W[there])), notes


def _channel(path: Path, quantity: str) -> Channel:
    chosen = {"t": Column("Timestamp", "s"), ROLES[quantity]: Column("Value", ROLES[quantity])}
    try:
        t_ns, values, layout = recordings.columns_of(path, chosen)
    except (OSError, EOFError, zlib.error) as error:
        seen = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"a channel of Otii at {path}", seen, "name another file") from error
    if len(t_ns) < 2 or not (np.diff(t_ns) > 0).all():
        raise UsageError(f"times that rise in {path}", "others", "export it again")
    period_ns = max(1, int(np.median(np.diff(t_ns))))
    return Channel(t_ns, values[ROLES[quantity]], period_ns, [f"{path.name}: {note}" for note in layout.notes])


def _held(channel: Channel, at_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a channel held at these times, and whether it was recorded then."""
    last = np.searchsorted(channel.begins_ns, at_ns, "right") - 1
    ends_ns = channel.begins_ns + channel.period_ns
    held = np.clip(last, 0, None)
    return channel.values[held], (last >= 0) & (at_ns <= ends_ns[held])
