"""What can be wrong with a block, or with the drive as a whole, after a cut, one class each; the words of a report. A
certain finding is a broken promise. A suspicion states what would make it certain, and never counts as a failure; nor
does UNSURE, the undecidable case, but the bound on the chance allows for it."""

from typing import NamedTuple

UNSURE = "READY_UNSURE"  # neither a broken promise nor a suspicion: undecidable


class Class(NamedTuple):
    name: str
    certain: bool
    words: str


CLASSES = (
    Class("OK", True, "what the promise allows"),
    Class("LOST_FUA", True, "a write that was acknowledged with FUA is gone"),
    Class("LOST_FLUSHED", True, "a write that an acknowledged FLUSH covers is gone"),
    Class("LOST_ACKED", True, "an acknowledged write is gone, of a drive without a volatile cache"),
    Class("TRIM_UNDONE", True, "a block that had read as trimmed, and was flushed, holds data again"),
    Class(
        "STALE",
        True,
        "a block shows older content than was read after the cut before, and it was not written in between",
    ),
    Class("GHOST", True, "a write that was under way at an earlier cut, and was then absent, has appeared"),
    Class("TORN_LB", True, "one logical block holds parts of several commands"),
    Class("TORN_ATOMIC", True, "a write within the drive's atomic limit is there in part"),
    Class("COLLATERAL", True, "a block next to a write in flight, itself not written, has changed"),
    Class("MISDIRECTED", True, "the block holds data written to another address"),
    Class("CORRUPT", True, "the block holds data that was never written"),
    Class("UNREADABLE", True, "the block cannot be read"),
    Class("UNSTABLE", True, "two reads of a block differ, and it was not written in between"),
    Class("METADATA", True, "many blocks that were not written, or a canary, have changed"),
    Class(
        "GHOST_UNSURE",
        False,
        "a write that was under way at an earlier cut has appeared; certain where the drive's queues were deleted",
    ),
    Class(
        "TRIM_KEPT",
        False,
        "a trimmed and flushed block holds data; certain where it had been read as trimmed before the flush",
    ),
    Class(
        "TORN_CACHED",
        False,
        "a write within the atomic limit, acknowledged and only in the volatile cache, is there in part; certain where"
        " it was not acknowledged: of a completed one NVMe lets each block be older",
    ),
    Class(
        "UNREADABLE_OPEN",
        False,
        "a block cannot be read whose physical sector was being written, which neither ATA nor SCSI rules out; certain"
        " where no command was under way there",
    ),
    Class(
        "UNRECORDED",
        False,
        "the block holds a command of this session that the history does not have: the harness is incomplete",
    ),
)
OF_DRIVE = (
    Class("IDENTITY", True, "the drive comes back with another model, serial, firmware or block size"),
    Class("CAPACITY", True, "the drive comes back with another capacity"),
    Class("MISSING", False, "the drive did not come back in time; certain once it stays away for ten power cycles"),
    Class("DEAD", True, "the drive has not come back in ten power cycles"),
    Class("READ_ONLY", True, "the drive takes no writes any more"),
    Class("REFUSED", False, "the drive refused commands while it had power; certain where it takes no writes again"),
    Class("SLOW_READY", False, "the drive took ten times its usual time; certain above what the plan's `ready` allows"),
    Class("READY_TOO_LATE", True, "the drive took longer to be ready than the plan's `ready` allows"),
    Class(
        UNSURE,
        False,
        "whether the drive was ready within the plan's `ready` is unknown; certain on a host with a CPU to spare",
    ),
    Class("SMART_REGRESS", True, "a counter that only grows has gone back"),
    Class(
        "SMART_UNSAVED",
        False,
        "a counter that only grows has gone back, of an ATA drive or of a maker's own page; certain of NVMe's and OCP's"
        " logs, which are kept over power cycles",
    ),
    Class(
        "SMART_MISCOUNT",
        False,
        "power cycles or unsafe shutdowns differ from the cuts; certain if the rail was seen low",
    ),
    Class("SPARE_MEDIA", False, "spare fell or media errors rose over a cut; certain if they keep on doing so"),
    Class("PLP_DEGRADED", False, "the capacitors have less energy; certain where a write is lost, too"),
)
NAMES = tuple(item.name for item in CLASSES)
NUMBER = {name: i for i, name in enumerate(NAMES)}
BY_NAME = {one.name: one for one in CLASSES + OF_DRIVE}
