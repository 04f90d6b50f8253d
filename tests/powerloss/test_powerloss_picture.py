"""What the page shows of one session."""

import json

import numpy as np

from selfcheck import powerloss_scenes
from selfcheck.powerloss_scenes import KEPT
from ssdrig.powerloss import picture, promise, verdict
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, WRITE

MS = 1_000_000
CUT = 1000 * MS  # of the clock


def pictured(commands, blocks, held=KEPT):
    """Of commands (kind, lba, n, submit_ms, done_ms, flags): times relative to the cut."""
    at = lambda ms: NEVER if ms == NEVER else CUT + round(ms * MS)
    rows = [(kind, lba, n, at(submit), at(done), *more) for kind, lba, n, submit, done, *more in commands]
    session = verdict.Session(powerloss_scenes.rows(rows), CUT, CUT + 600 * MS, CUT + 700 * MS, CUT + 800 * MS)
    lba = np.array(list(blocks), np.int64)
    seen = np.array(list(blocks.values()), np.int64)
    of = verdict.Blocks(lba, np.zeros_like(lba), seen, np.zeros(len(lba), bool))
    return picture.of_cut(session, of, held, verdict.judge(session, of, held))


def test_ages_of_what_was_kept_and_lost():
    made = pictured(
        [
            (WRITE, 0, 1, -410, -400),  # kept
            (WRITE, 1, 1, -40, -32),  # kept, newer than one that is lost
            (WRITE, 2, 1, -50, -41),  # lost
            (WRITE, 3, 1, -9, -7),  # lost, too
            (WRITE, 3, 1, -5, -4.9),  # lost
            (WRITE, 4, 1, -3, -2, FUA),  # had to survive: of no age
            (WRITE, 5, 2, -1, NEVER),
        ],
        {0: 100, 1: 101, 2: 0, 3: 0, 4: 105, 5: 106, 6: 0},
    )
    by_age = lambda counts: {picture.AGES_MS[i]: n for i, n in enumerate(counts) if n}
    assert by_age(made["ages"]["kept"]) == {250: 1, 30: 1} and by_age(made["ages"]["lost"]) == {40: 1, 0: 1, 5: 1}
    assert made["lost_bytes"] == 3 * 4096 and made["suffix"] == {"newer": 4, "lost": 3}
    assert made["volatile_us"] == -41_000 and made["lost_us"] is None
    assert made["in_flight"] == {"count": 1, "since_us": -1000, "blocks": 2} and made["torn"] == [[1, 2, True]]
    assert json.loads(json.dumps(made)) == made, "a write that was there in part ended the campaign"
    assert made["fuas"] == [[-3000, -2000]] and made["flushes"] == []
    ticks = made["ticks"]["submitted"]
    assert len(ticks) == 400 and sum(ticks) == 6 and ticks[349] == 1, "the write of 410 ms before is outside"


def test_what_had_to_survive_and_did_not():
    made = pictured(
        [(WRITE, 0, 1, -30, -29), (WRITE, 1, 1, -20, -19.5), (FLUSH, 0, 0, -10, -8), (FLUSH, 0, 0, -1, NEVER)],
        {0: 100, 1: 0},
    )
    assert made["lost_us"] == -19_500 and made["volatile_us"] is None and made["suffix"] is None
    assert made["flushes"] == [[-10_000, -8000], [-1000, None]] and not sum(made["ages"]["lost"])


def test_a_session_without_commands_and_a_long_one():
    empty = pictured([], {0: 0})
    assert empty["suffix"] is None and empty["in_flight"] == {"count": 0, "since_us": None, "blocks": 0}
    acked = KEPT._replace(mode=promise.ACK)
    long = [(WRITE, i % 50, 1, -300 + i / 10, -299 + i / 10, FUA * (i % 2)) for i in range(2900)]
    made = pictured(long, {i: 2950 + i for i in range(50)}, acked)
    assert len(made["fuas"]) == picture.MOST_MARKS and len(json.dumps(made)) < 6000
    assert made["fuas"][-1][0] == -10_100
