"""powerloss/sessions.py: what of a session is believed after its files were damaged."""

import random

import numpy as np
import pytest
from journal_book import book  # noqa: F401  fixtures

from ssdrig.powerloss import history, sessions
from ssdrig.powerloss.verdict import Blocks, Verdict

RECORD = {"cut": 7, "failed": True, "judged": True, "control": None, "findings": {"LOST_FUA": 1}}


def put(book, record=RECORD):
    blocks = Blocks(*(np.zeros(1, np.int64) for _ in range(3)), np.zeros(1, bool))
    verdict = Verdict(np.zeros(1, np.uint8), *(np.zeros(1, np.int64) for _ in range(4)), np.zeros(1, bool), "")
    proofs = [{"class": "LOST_FUA", "sentences": ["Block 3: ..."]}]
    sessions.put(book, record, np.zeros(1, history.ROW), blocks, verdict, proofs, {"report": None}, None)
    return book.path / sessions.folder(record["cut"])


@pytest.mark.slow
def test_no_flipped_byte_makes_another_session_of_it(book):
    path = put(book) / "verdict.json"
    data, chance = path.read_bytes(), random.Random(2)
    assert sessions.judged([book.path]) == {7: RECORD}
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        assert sessions.judged([book.path]) in ({}, {7: RECORD})
    for at in range(len(data)):
        path.write_bytes(data[:at])
        assert sessions.judged([book.path]) == {}


def test_a_session_that_was_told_is_judged_whatever_became_of_its_files(book):
    path = put(book) / "verdict.json"
    book.event(sessions.JUDGED, step="cuts", **RECORD)
    path.write_bytes(b"{")
    assert sessions.judged([book.path]) == {7: RECORD}
    path.unlink()
    assert sessions.judged([book.path]) == {7: RECORD}


def test_proofs_are_as_they_were_written_or_none(book):
    folder = put(book)
    document = sessions.unsealed(folder / "verdict.json")
    (proof,) = sessions.proofs_of(folder, document)
    assert proof["class"] == "LOST_FUA" and sessions.proofs_of(folder, {}) == []
    data = (folder / "proofs.json").read_bytes()
    (folder / "proofs.json").write_bytes(data.replace(b"3", b"4"))
    assert sessions.proofs_of(folder, document) == []


def test_a_damaged_history_gives_no_number_that_no_command_can_have(tmp_path):
    folder = tmp_path / sessions.folder(1)
    folder.mkdir(parents=True)
    rows = np.zeros(3, history.ROW)
    rows["seq"], rows["kind"] = np.arange(5, 8), history.WRITE
    (folder / "history.bin").write_bytes(rows.tobytes())
    base = np.array([2])
    assert sessions.first_seq([tmp_path], base) == 8 + sessions.LOST_ROWS
    rows["seq"] += np.uint64(1 << 62)
    (folder / "history.bin").write_bytes(rows.tobytes())
    assert sessions.first_seq([tmp_path], base) == 3 + sessions.LOST_ROWS
