"""Small cuts whose verdict is known, for the tests of powerloss and for its mutants: what the random histories of
powerloss_machine do not have."""

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ssdrig.powerloss import promise, record, verdict
from ssdrig.powerloss.findings import NAMES
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, NOT_BLANK, ROW, TRIM, WRITE
from ssdrig.powerloss.promise import Promise

CUT_NS, ON_NS = 1_000_000, 600_000_000
FIRST_SEQ = 100
KEPT = Promise(promise.FLUSH, 4096, 8, 16, 0, "zeros", True, "the drive's write cache is volatile")
ZEROS, ONES, UNKNOWN = record.ZEROS, record.ONES, record.UNKNOWN
RUN = 0x5EED


class Checker(NamedTuple):
    """The modules under test; a mutant takes the place of one."""

    record: ModuleType = record
    promise: ModuleType = promise
    verdict: ModuleType = verdict


class Scene(NamedTuple):
    """Commands are (kind, lba, n, submit_ns, done_ns, flags, status), the last two 0 where left out; their seq is 100
    and up. `blocks`: {lba: (content before, content seen, class expected)}; the content of a torn block is a list, of
    its parts. `trimmed`: blocks in which a trim of an earlier session may still take effect."""

    name: str
    commands: list[tuple]
    blocks: dict[int, tuple]
    promise: Promise = KEPT
    session: dict[str, Any] = {}
    canaries: tuple[int, ...] = ()
    trimmed: tuple[int, ...] = ()


ACKED = KEPT._replace(mode=promise.ACK)
W0 = (WRITE, 0, 1, 10, 20)
SCENES = (
    Scene("an unflushed write may be lost or kept", [W0, (WRITE, 1, 1, 10, 20)], {0: (7, 7, "OK"), 1: (8, 101, "OK")}),
    Scene("FUA keeps it", [(*W0, FUA)], {0: (7, 7, "LOST_FUA")}),
    Scene("FLUSH keeps it", [W0, (FLUSH, 0, 0, 20, 30)], {0: (7, 7, "LOST_FLUSHED")}),
    Scene("the latest FLUSH counts", [W0, (FLUSH, 0, 0, 5, 9), (FLUSH, 0, 0, 30, 40)], {0: (7, 7, "LOST_FLUSHED")}),
    Scene("an acknowledgement keeps it without a cache", [W0], {0: (7, 7, "LOST_ACKED")}, ACKED),
    Scene("a FLUSH that was under way keeps nothing", [W0, (FLUSH, 0, 0, 20, NEVER)], {0: (7, 7, "OK")}),
    Scene("a FLUSH that failed keeps nothing", [W0, (FLUSH, 0, 0, 20, 30, 0, -5)], {0: (7, 7, "OK")}),
    Scene("a FLUSH repeated after power returned keeps nothing", [W0, (FLUSH, 0, 0, 20, ON_NS)], {0: (7, 7, "OK")}),
    Scene("after a glitch nothing is known", [(*W0, FUA)], {0: (7, 7, "OK")}, session={"glitches_ns": (15,)}),
    Scene("before a glitch all is known", [(*W0, FUA)], {0: (7, 7, "LOST_FUA")}, session={"glitches_ns": (21,)}),
    Scene("blocks read too early accuse nobody", [(*W0, FUA)], {0: (7, 7, "OK")}, session={"settled_ns": ON_NS + 20}),
    Scene("a writer that never settled, too", [(*W0, FUA)], {0: (7, 7, "OK")}, session={"settled_ns": None}),
    Scene("what was lost is older than the FUA write", [W0, (WRITE, 0, 1, 25, 30, FUA)], {0: (7, 100, "LOST_FUA")}),
    Scene("what overlapped the FUA write is not", [(*W0[:4], 26), (WRITE, 0, 1, 25, 30, FUA)], {0: (7, 100, "OK")}),
    Scene("nor what ended as it began", [W0, (WRITE, 0, 1, 20, 30, FUA)], {0: (7, 100, "OK")}),
    Scene("nobody wrote it and it is older", [], {0: (7, 6, "STALE"), 1: (7, 7, "OK"), 2: (7, ZEROS, "STALE")}),
    Scene("it was absent after the cut before", [], {0: (7, 9, "GHOST")}),
    Scene("the same where queues live on", [], {0: (7, 9, "GHOST_UNSURE")}, session={"queues_deleted": False}),
    Scene("a command that the history lacks", [W0], {0: (7, 104, "UNRECORDED"), 1: (8, 8, "OK")}),
    Scene(
        "what is not known accuses nobody", [W0], {0: (UNKNOWN, record.CORRUPT, "OK"), 1: (UNKNOWN, 104, "UNRECORDED")}
    ),
    Scene(
        "what no write may leave",
        [(WRITE, 0, 5, 10, NEVER)],
        {
            0: (7, record.TORN, "TORN_LB"),
            1: (7, record.MISDIRECTED, "MISDIRECTED"),
            2: (7, record.CORRUPT, "CORRUPT"),
            3: (7, record.UNREADABLE, "UNREADABLE"),
            4: (7, record.UNSTABLE, "UNSTABLE"),
        },
    ),
    Scene(
        "a block beside a write under way",
        [(WRITE, 17, 1, 10, NEVER), (WRITE, 40, 1, 10, 20)],
        {15: (7, 6, "STALE"), 16: (7, record.CORRUPT, "COLLATERAL"), 31: (7, 6, "COLLATERAL"), 32: (7, 6, "STALE")},
    ),
    Scene("many at once", [], dict.fromkeys(range(64), (7, 6, "METADATA"))),
    Scene("one less", [], dict.fromkeys(range(63), (7, 6, "STALE"))),
    Scene("a canary", [(*W0, FUA)], {0: (7, 7, "LOST_FUA"), 9: (0, ZEROS, "METADATA")}, canaries=(9,)),
    Scene("a trim undone, not flushed", [(TRIM, 0, 1, 10, 20), (BLANK, 0, 1, 30, 40)], {0: (7, 7, "OK")}),
    Scene(
        "a trim undone that was seen and flushed",
        [(TRIM, 0, 2, 10, 20), (BLANK, 0, 1, 30, 40), (FLUSH, 0, 0, 50, 60)],
        {0: (7, 7, "TRIM_UNDONE"), 1: (0, 0, "TRIM_KEPT")},
    ),
    Scene(
        "trims shorter than those which the drive executes",
        [
            (TRIM, 8, 4, 10, 20),
            (BLANK, 8, 2, 30, 40),
            (TRIM, 16, 3, 10, 20),
            (TRIM, 24, 4, 10, 20),
            (FLUSH, 0, 0, 50, 60),
        ],
        {11: (7, 7, "TRIM_KEPT"), 16: (7, 7, "OK"), 24: (7, 7, "TRIM_KEPT")},
    ),
    Scene("a trim that may be ignored", [(TRIM, 0, 1, 10, 20), (FLUSH, 0, 0, 50, 60)], {0: (7, 7, "OK")}),
    Scene(
        "a trim that stays", [(TRIM, 0, 1, 10, 20), (BLANK, 0, 1, 30, 40), (FLUSH, 0, 0, 50, 60)], {0: (7, ZEROS, "OK")}
    ),
    Scene(
        "a drive that promises nothing of trimmed blocks",
        [(TRIM, 0, 2, 10, 20), (BLANK, 0, 2, 30, 40), (FLUSH, 0, 0, 50, 60)],
        {0: (7, 7, "OK"), 1: (7, ONES, "OK"), 2: (ZEROS, ONES, "STALE")},
        KEPT._replace(after_trim=None),
    ),
    Scene(
        "a trim of an earlier session, of which nothing is promised",
        [(WRITE, 1, 3, 10, 20), (WRITE, 2, 1, 30, 40, FUA)],
        {0: (7, 6, "OK"), 1: (7, record.CORRUPT, "OK"), 2: (7, 7, "LOST_FUA"), 4: (7, 6, "STALE")},
        KEPT._replace(after_trim=None),
        trimmed=(0, 1, 2),
    ),
    Scene(
        "a trim of an earlier session, after which zeros are promised",
        [(WRITE, 2, 1, 30, 40, FUA)],
        {0: (7, ZEROS, "OK"), 1: (7, 6, "STALE"), 2: (7, ZEROS, "LOST_FUA"), 3: (7, ZEROS, "STALE"), 4: (7, 7, "OK")},
        trimmed=(0, 1, 2, 4),
    ),
    Scene(
        "whose trimmed blocks may read as anything, unless a durable write came after",
        [(*W0[:1], 0, 3, 10, 20, FUA), (TRIM, 0, 3, 30, 40), (WRITE, 1, 1, 50, 60, FUA), (WRITE, 2, 1, 50, 60)],
        {0: (7, 6, "OK"), 1: (7, 6, "LOST_FUA"), 2: (7, record.UNSTABLE, "OK"), 3: (7, 6, "STALE")},
        KEPT._replace(after_trim=None),
    ),
    Scene(
        "a drive that ignores trims while it has power",
        [
            *((TRIM, 0, 1, 10, 20), (BLANK, 0, 1, 30, 40, 0, NOT_BLANK)),
            *((TRIM, 1, 1, 10, 20), (BLANK, 1, 1, 30, 40), (FLUSH, 0, 0, 50, 60)),
        ],
        {0: (7, 7, "OK"), 1: (7, ZEROS, "OK")},
    ),
    Scene(
        "where no block is promised to be whole",
        [(WRITE, 0, 2, 10, NEVER), (WRITE, 2, 2, 10, 20, FUA), (WRITE, 3, 1, 30, 40), (WRITE, 5, 1, 10, 20, FUA)],
        {
            0: (7, [7, 100], "OK"),  # of what was there and what was under way
            1: (7, record.CORRUPT, "CORRUPT"),
            2: (7, [101, 7], "LOST_FUA"),
            3: (7, [101, 102], "OK"),
            5: (7, [103, ZEROS], "LOST_FUA"),
            40: (7, [7, 6], "STALE"),
        },
        KEPT._replace(atomic_blocks=0),
    ),
    Scene(
        "where a block is promised to be whole",
        [(WRITE, 0, 2, 10, NEVER)],
        {0: (7, [7, 100], "TORN_LB"), 1: (7, [7, 7], "TORN_LB")},
    ),
    Scene(
        "a torn block, one part of which is older than a durable write",
        [(WRITE, 0, 1, 10, 20, FUA), (WRITE, 0, 1, 30, 40)],
        {0: (7, [101, 101, 7], "LOST_FUA")},
        KEPT._replace(atomic_blocks=0),
    ),
    Scene(
        "a torn block that was trimmed",
        [],
        {0: (7, [6, ZEROS], "OK"), 1: (7, [7, ZEROS], "STALE")},
        KEPT._replace(atomic_blocks=0, after_trim=None),
        trimmed=(0,),
    ),
    Scene("ones where zeros are promised", [(TRIM, 0, 1, 10, 20)], {0: (7, ONES, "STALE")}),
    Scene(
        "a write within the atomic limit",
        [(WRITE, 0, 8, 10, NEVER), (WRITE, 16, 9, 10, NEVER), (WRITE, 31, 2, 10, NEVER), (WRITE, 40, 8, 10, 20)],
        {
            0: (7, 100, "OK"),
            7: (7, 7, "TORN_ATOMIC"),
            16: (7, 101, "OK"),  # one block too long
            24: (7, 7, "OK"),
            31: (7, 102, "OK"),  # crosses a boundary
            32: (7, 7, "OK"),
            40: (7, 103, "OK"),
            47: (7, 7, "TORN_CACHED"),  # ends at a boundary, and was acknowledged
        },
    ),
    Scene(
        "of a completed write in a volatile cache each block may be older",
        [(WRITE, 0, 2, 10, 20), (WRITE, 1, 1, 30, 40), (WRITE, 4, 2, 50, NEVER), (WRITE, 4, 2, 10, 20)],
        {0: (7, 100, "OK"), 1: (7, 7, "TORN_CACHED"), 4: (7, 102, "OK"), 5: (7, 103, "TORN_ATOMIC")},
    ),
    Scene(
        "a physical sector that was being written may be unreadable",
        [(WRITE, 1, 1, 10, NEVER), (WRITE, 9, 1, 10, 20), (WRITE, 17, 1, 10, 20, FUA), (WRITE, 26, 1, 10, 20, FUA)],
        {
            1: (7, record.UNREADABLE, "UNREADABLE_OPEN"),
            7: (7, record.UNREADABLE, "UNREADABLE_OPEN"),
            8: (7, record.UNREADABLE, "UNREADABLE_OPEN"),  # in the cache, which may be being written out
            15: (7, 6, "COLLATERAL"),  # what is read must be right
            16: (7, record.UNREADABLE, "COLLATERAL"),  # of another physical sector
            26: (7, record.UNREADABLE, "UNREADABLE"),
            133: (7, record.UNREADABLE, "UNREADABLE"),
        },
        KEPT._replace(block_bytes=512, atomic_blocks=1, boundary_blocks=0, sector_blocks=8),
    ),
    Scene(
        "a part of it may be overwritten",
        [(WRITE, 0, 2, 10, NEVER), (WRITE, 1, 1, 10, NEVER), (WRITE, 4, 2, 10, 20), (WRITE, 5, 1, 30, 40)],
        {0: (7, 100, "OK"), 1: (7, 101, "OK"), 4: (7, 102, "OK"), 5: (7, 103, "OK")},
    ),
    Scene("lost and torn is lost", [(WRITE, 0, 2, 10, 20, FUA)], {0: (7, 100, "OK"), 1: (7, 7, "LOST_FUA")}),
)


def rows(commands: list[tuple], first_seq: int = FIRST_SEQ) -> np.ndarray:
    """history.ROW[n] of a scene's commands."""
    out = np.zeros(len(commands), ROW)
    for i, (kind, lba, n, submit_ns, done_ns, *rest) in enumerate(commands):
        flags, status = (*rest, 0, 0)[:2]
        out[i] = (first_seq + i, lba, n, kind, flags, status, submit_ns, done_ns)
    return out


def asked(scene: Scene) -> tuple[verdict.Session, verdict.Blocks]:
    """What a scene asks the verdict."""
    times: dict[str, Any] = {"cut_ns": CUT_NS, "on_ns": ON_NS, "settled_ns": ON_NS + 5, "verify_ns": ON_NS + 10}
    lba = np.array(list(scene.blocks), np.int64)
    base, contents, _ = zip(*scene.blocks.values())
    seen = np.array([record.TORN if isinstance(content, list) else content for content in contents])
    parts = [(at, part) for at, content in zip(scene.blocks, contents) if isinstance(content, list) for part in content]
    part_lba, part_seen = np.array(parts, np.int64).reshape(-1, 2).T
    session = verdict.Session(rows(scene.commands), **times | scene.session)
    blocks = verdict.Blocks(lba, np.array(base), seen, np.isin(lba, scene.canaries), np.isin(lba, scene.trimmed))
    return session, blocks._replace(part_lba=part_lba, part_seen=part_seen)


def judged(scene: Scene, checker: Checker = Checker()) -> list[str]:  # noqa: B008 - a constant
    """The class of each block of a scene."""
    return [NAMES[n] for n in checker.verdict.judge(*asked(scene), scene.promise).finding]


def expected(scene: Scene) -> list[str]:
    return [name for _, _, name in scene.blocks.values()]


def two_cuts(checker: Checker = Checker()) -> list[list[str]]:  # noqa: B008 - a constant
    """With bytes, from stamping to the next session: four blocks of 4 KiB, of which two are written twice. The first is
    left in halves, the third belongs elsewhere; both are counted once.
    What the third holds may be anything until it is written again."""
    image = np.zeros(4 * 4096, np.uint8)
    lba = np.arange(4)
    checker.record.fill(image, RUN, 0, 0)
    base = checker.record.classify(image, RUN, lba * 8, 4096)
    new = np.zeros(4096, np.uint8)
    checker.record.fill(new, RUN, FIRST_SEQ, 0)
    image[:2048] = new[:2048]
    checker.record.fill(image[8192:12288], RUN, FIRST_SEQ + 1, 8)
    times = (CUT_NS, ON_NS, ON_NS + 5, ON_NS + 10)
    out: list[list[str]] = []
    for commands in ([W0, (WRITE, 2, 1, 10, 20)], [W0], []):
        if not commands:  # what was torn, and not written since, is whole
            checker.record.fill(image[8192:12288], RUN, 0, 16)
        seen = checker.record.classify(image, RUN, lba * 8, 4096)
        blocks = verdict.Blocks(lba, base, seen, np.zeros(4, bool))
        session = verdict.Session(rows(commands, FIRST_SEQ + 10 * len(out)), *times)
        out.append([NAMES[n] for n in checker.verdict.judge(session, blocks, KEPT).finding])
        base = checker.verdict.next_base(blocks)
    return out


TWO_CUTS = [["TORN_LB", "OK", "MISDIRECTED", "OK"], ["OK"] * 4, ["OK"] * 4]


def pages(nawupf: int = 7, nabspf: int = 15, vwc: int = 1, nsfeat: int = 2) -> tuple[bytes, bytes]:
    """Identify Controller and Identify Namespace of a drive with blocks of 4096 bytes."""
    id_ctrl, id_ns = bytearray(4096), bytearray(4096)
    id_ctrl[525] = vwc
    id_ctrl[528:530] = (3).to_bytes(2, "little")  # AWUPF, for the drive as a whole
    id_ns[0], id_ns[24], id_ns[33], id_ns[130] = 1, nsfeat, 1, 12
    id_ns[36], id_ns[44] = nawupf, nabspf
    return bytes(id_ctrl), bytes(id_ns)
