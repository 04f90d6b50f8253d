"""What one line of a trace of others is, whatever its format."""

import re
from collections.abc import Callable
from typing import NamedTuple

QUEUED, ISSUED, DONE, REQUEUED = "queued by the program", "issued to the drive", "completed", "taken back"
NO_END = "its lines have no end time"
RESPONSES = "response times"


class Line(NamedTuple):
    """What one line asks of one device; t_ns None where the format has no times.

    `stage`: an I/O of a recording passes several, and each has its line. `lasts_ns`: until its end, None where the line
    does not state. `refusal`: why it cannot be played on a drive, "" where it can; `unnamed`: it is Write Zeroes on a
    drive without zones, and may be Zone Append on another. `passed`: why it is left out, "" where it is not. `fua`: it
    has ended once it is on the medium."""

    t_ns: int | None
    op: int
    offset_bytes: int
    length_bytes: int
    device: str
    stage: str = QUEUED
    lasts_ns: int | None = None
    refusal: str = ""
    unnamed: bool = False
    passed: str = ""
    fua: bool = False


class Format(NamedTuple):
    """`parse` makes Lines of a line, none where it asks nothing of a drive, or None where it is not such a line;
    `header` is what the first line may be instead, `end` what the last lines begin with. `depths`: where queue depths
    come from,
    `depths_why`: or the reason without any. `staged`: an I/O may have several lines. `step_ns`: its times are whole
    multiples of this. `record_bytes`: of a binary format, whose lines are records of this size."""

    name: str
    example: str
    timed: bool
    parse: Callable[[str], tuple[Line, ...] | None]
    header: re.Pattern[str] | None = None
    end: re.Pattern[str] | None = None
    depths: str = ""
    depths_why: str = ""
    staged: bool = False
    step_ns: int = 1
    record_bytes: int = 0
