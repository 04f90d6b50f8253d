"""The proof of an accusation: it alone, without the session, leads to the same verdict; and people read it."""

import json

import numpy as np
import pytest

from selfcheck import powerloss_scenes
from selfcheck.powerloss_scenes import FIRST_SEQ, KEPT, SCENES, W0, Scene
from ssdrig.powerloss import promise, record, verdict
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, TRIM, WRITE
from ssdrig.powerloss.judging import MOST_ROWS, proof


def proofs(scene):
    session, blocks = powerloss_scenes.asked(scene)
    ruling = verdict.judge(session, blocks, scene.promise)
    return [proof(session, blocks, scene.promise, ruling, i) for i in ruling.failed()]


def row(out, seq):
    return next(entry for entry in out["rows"] if entry["seq"] == seq)


def holds(out):
    """Whether the data of a proof show what it says, by the words of the contract."""
    matches = [entry for entry in out["rows"] if entry["seq"] == out["found"]]
    done_ns = (
        matches[0]["done_ns"] if matches and matches[0]["counts"] else None
    )  # None: not bounded, or not of the session
    if out["class"] == "TORN_ATOMIC":
        torn = row(out, out["torn"])
        short = torn["n"] <= out["promise"]["atomic_blocks"] and not torn["counts"]
        return short and (not matches or done_ns < torn["submit_ns"])
    if out["class"].startswith("LOST") or out["class"] == "TRIM_UNDONE":
        durable = row(out, out["durable"])
        assert durable["counts"] and durable["kind"] == (
            "write" if out["class"] != "TRIM_UNDONE" else "read of trimmed blocks"
        )
        if out["flush"] is not None:
            flush = row(out, out["flush"])
            covered = flush["counts"] and flush["kind"] == "flush" and durable["done_ns"] <= flush["submit_ns"]
        else:
            covered = durable["fua"] or out["promise"]["mode"] == promise.ACK
        return covered and (not matches or done_ns < durable["submit_ns"])
    return out["durable"] is None or out["found"] < 0


@pytest.mark.parametrize("scene", [scene for scene in SCENES if proofs(scene)], ids=lambda scene: scene.name)
def test_each_accusation_is_proven_by_its_own_data(scene):
    for out in proofs(scene):
        assert holds(out) and out["certain"] and len(out["sentences"]) == 3
        assert json.loads(json.dumps(out)) == out


@pytest.mark.parametrize(
    "commands, seen, words",
    [
        (
            [(WRITE, 24, 1, 10, 20), (WRITE, 24, 1, 30_000, 430_000, FUA)],
            FIRST_SEQ,
            "Block 24: command 101 wrote it with FUA and was acknowledged 0.570 ms before the cut."
            " Found: the content of command 100, which was complete before command 101 was submitted."
            " This breaks the promise: a write that was acknowledged with FUA is gone.",
        ),
        (
            [(WRITE, 24, 1, 10, 20), (FLUSH, 0, 0, 5, 15), (FLUSH, 0, 0, 25, 90), (FLUSH, 0, 0, 95, 99)],
            7,
            "Block 24: command 100 wrote it and was acknowledged 1.000 ms before the cut, and the acknowledged FLUSH"
            " 102 was submitted after that. Found: the content of command 7, which it held before this session."
            " This breaks the promise: a write that an acknowledged FLUSH covers is gone.",
        ),
        (
            [(TRIM, 24, 1, 10, 20), (BLANK, 24, 1, 30, 2_000_000), (FLUSH, 0, 0, 2_000_001, 2_000_002)],
            0,
            "Block 24: command 101 read it as trimmed and was acknowledged 1.000 ms after the cut, and the acknowledged"
            " FLUSH 102 was submitted after that. Found: the content of the fill."
            " This breaks the promise: a block that had read as trimmed, and was flushed, holds data again.",
        ),
        (
            [],
            record.ZEROS,
            "Block 24: nothing in this session had to survive there."
            " Found: zeros; before this session: the content of command 7."
            " This breaks the promise: a block shows older content than was read after the cut before, and it was not"
            " written in between.",
        ),
        (
            [(WRITE, 23, 2, 10, NEVER)],
            7,
            "Command 100 wrote 2 blocks; the drive promises that up to 8 are atomic."
            " Another of its blocks holds it, but block 24 holds the content of command 7, which is older."
            " This breaks the promise: a write within the drive's atomic limit is there in part.",
        ),
    ],
    ids=["FUA", "FLUSH", "trim", "stale", "torn"],
)
def test_it_reads_as_a_person_would_say_it(commands, seen, words):
    (out,) = proofs(
        Scene("", commands, {23: (7, FIRST_SEQ, ""), 24: (7, seen, "")} if len(commands) == 1 else {24: (7, seen, "")})
    )
    assert " ".join(out["sentences"]) == words


def test_a_claim_that_is_not_the_drives_own_is_said():
    claimed = promise.nvme(*powerloss_scenes.pages(), True, claimed=True)
    (out,) = proofs(Scene("", [W0], {0: (7, 7, "")}, claimed))
    assert "the user claims" in out["sentences"][0] and out["promise"]["own"] is False


def test_distance_to_the_cut_in_commands():
    (out,) = proofs(Scene("", [(*W0, FUA), (WRITE, 5, 1, 15, 30), (WRITE, 5, 1, 21, 30)], {0: (7, 7, "")}))
    assert (out["before_cut_us"], out["commands_before_cut"]) == ((powerloss_scenes.CUT_NS - 20) / 1e3, 1)
    (out,) = proofs(Scene("", [(WRITE, 0, 2, 10, NEVER)], {0: (7, FIRST_SEQ, ""), 1: (7, 7, "")}))
    assert (out["torn"], out["before_cut_us"], out["commands_before_cut"]) == (FIRST_SEQ, None, None)


def test_a_block_that_was_written_all_the_time():
    commands = [(*W0, FUA)] + [(WRITE, 0, 1, 30 + i, NEVER) for i in range(100)]
    (out,) = proofs(Scene("", commands, {0: (7, 7, "")}))
    assert len(out["rows"]) == MOST_ROWS + 1 and out["left_out"] == 36 and row(out, FIRST_SEQ)["fua"]


def test_the_bytes_that_were_read_are_in_it():
    data = np.zeros(4096, np.uint8)
    record.fill(data, 1, 7, 0)
    data[512:1024] = 1
    session, blocks = powerloss_scenes.asked(Scene("", [(*W0, FUA)], {0: (7, record.CORRUPT, "")}))
    ruling = verdict.judge(session, blocks, KEPT)
    out = proof(session, blocks, KEPT, ruling, 0, data.tobytes())
    assert out["class"] == "CORRUPT" and bytes.fromhex(out["hex"]) == data.tobytes()
    assert [header and header["seq"] for header in out["headers"]] == [7, None, *[7] * 6]
