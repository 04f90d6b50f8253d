"""Events and records that are torn, damaged, gone or moved: left out, and said."""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_book import book  # noqa: F401  fixtures

from ssdrig.runs import integrity, journal, rigbin, rigrecords, walk


def test_torn_last_event_is_left_out_and_measured(book):
    event = book.event("note", text="kept")
    with open(book.path / "events.jsonl", "ab") as f:
        f.write(b'{"t_ns": 1, "kind": "no')
    events, _, left = journal.read_events(book.path)
    assert events == [event] and left == 23


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[]\n",
        b'{"t_ns": 1.5, "kind": "x"}\n',
        b'{"t_ns": -1, "kind": "x"}\n',
        b'{"kind": "x"}\n',
        b"\xff\xfe\n",
        b'{"t_ns": 1, "kind": "x"}\n',  # good but for the CRC that the others have
        b"[" * 100_000 + b"\n",
        b"\0" * 50 + b"\n",
    ],
)
def test_a_damaged_line_is_left_out_and_said(book, line):
    event = book.event("note", text="kept")
    with open(book.path / "events.jsonl", "ab") as f:
        f.write(line)
    behind = book.event("note", text="behind")
    assert journal.read_events(book.path)[0::2] == ([event, behind], 0)
    assert integrity.damage(book.path) == [f"events.jsonl: 1 damaged lines ({len(line)} bytes) were left out"]


def test_lines_that_are_gone_or_moved_or_there_twice_are_said(book):
    for text in "abcd":
        book.event("note", text=text)
    path = book.path / "events.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    assert integrity.damage(book.path) == []
    for changed, words in (
        ([0, 1, 3], "1 lines are missing"),
        ([1, 2, 3], "1 lines are missing"),
        ([0, 1, 1, 2, 3], "1 lines are there twice"),
        ([0, 2, 1, 3], "not in the order"),
    ):
        path.write_bytes(b"".join(whole[i] for i in changed))
        assert words in " ".join(integrity.damage(book.path))
        assert len(journal.events(book.path)) == len(changed)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_changed_byte_of_a_line_is_seen(data):
    made = [{"t_ns": k, "kind": "note", "text": "µ" * k} for k in range(4)]
    file = bytearray(b"".join(integrity.sealed(event, k) for k, event in enumerate(made)))
    assert integrity.lines(bytes(file)).events == made
    file[data.draw(st.integers(0, len(file) - 1))] ^= data.draw(st.integers(1, 255))
    lines = integrity.lines(bytes(file))
    assert lines.damaged or lines.left_bytes
    assert all(event in made for event in lines.events) and len(lines.events) >= 2


def test_lines_of_older_folders_have_no_crc():
    lines = integrity.lines(b'{"t_ns": 1, "kind": "note"}\n{"t_ns": 2, "kind": "no\n{"t_ns": 3, "kind": "note"}\n')
    assert [event["t_ns"] for event in lines.events] == [1, 3] and lines.damaged == [24]


def test_sums_of_a_closed_run(book):
    book.event("run.start", pid=1)
    book.put("smart/001.json", b"{}")
    book.put("fio/load/out.json", b"x" * 100)
    book.record(1, b"abc", 1)
    assert integrity.damage(book.path) == []
    book.close("complete")
    assert [e["kind"] for e in journal.events(book.path)] == ["run.start", "sums", "run.end"]
    assert set(journal.events(book.path)[1]["files"]) == {"run.json", "rig.bin", "smart/001.json", "fio/load/out.json"}
    assert integrity.damage(book.path) == []
    (book.path / "report.html").write_text("made later")
    assert integrity.damage(book.path) == []
    (book.path / "fio/load/out.json").write_bytes(b"x" * 60)
    (book.path / "smart/001.json").write_bytes(b"[]")
    (book.path / "smart/002.json").write_bytes(b"{}")
    with open(book.path / "rig.bin", "ab") as f:
        f.write(b"more")
    (book.path / "run.json").unlink()
    damage = integrity.damage(book.path)
    for words in (
        "fio/load/out.json: 60 of 100 bytes are left",
        "smart/001.json: is damaged",
        "smart/002.json: was not written",
        "rig.bin: has 4 bytes that",
        "run.json: is missing",
    ):
        assert any(one.startswith(words) for one in damage), damage


def test_a_record_is_laid_out_as_the_schema_says():
    data = rigbin.encode(2, b"\x01\x02\x03\x04", 0x1122334455667788)
    head = b"SJR1" + bytes([2, 0, 0, 0]) + (4).to_bytes(4, "little") + (0x1122334455667788).to_bytes(8, "little")
    assert data == head + crc32(head + b"\x01\x02\x03\x04").to_bytes(4, "little") + b"\x01\x02\x03\x04"
    assert len(data) == 28


rows = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=60), st.integers(0, 2**63 - 1)), max_size=12)


@given(rows, st.data())
@settings(max_examples=60, deadline=None)
def test_records_survive_cuts_and_damage(rows, data):
    """Any prefix of a file gives the whole records in it; a changed byte costs the record that it lies in. Compiled
    code finds the same."""
    parts = [rigbin.encode(*row) for row in rows]
    file = b"".join(parts)
    cut = data.draw(st.integers(0, len(file)))
    ends = np.cumsum([0] + [len(p) for p in parts])
    whole = int(np.searchsorted(ends, cut, "right")) - 1
    records = rigrecords.decode(file[:cut], 1000)
    assert [(int(records.kind[i]), records.payload(i), int(records.t_ns[i])) for i in range(len(records))] == rows[
        :whole
    ]
    assert (records.next_offset, records.left_bytes) == (1000 + ends[whole], cut - ends[whole])
    if file:
        at = data.draw(st.integers(0, len(file) - 1))
        bad = bytearray(file)
        bad[at] ^= data.draw(st.integers(1, 255))
        hit = int(np.searchsorted(ends, at, "right")) - 1
        records = rigrecords.decode(bytes(bad))
        want = [row[1] for k, row in enumerate(rows) if k != hit]
        assert [records.payload(i) for i in range(len(records))] == want
        assert records.skipped_bytes + records.left_bytes == len(parts[hit])
    for content in (file, file[:cut], *([bytes(bad)] if file else [])):
        plain, compiled = rigrecords.decode(content, 7), rigrecords.decode(content, 7, walk.in_a_row)
        assert all(np.array_equal(value, getattr(compiled, name)) for name, value in vars(plain).items())


def test_a_torn_record_whose_payload_looks_like_another_one_is_waited_for():
    """What a board may send: the reader of a run that went on ended with an IndexError."""
    whole = rigbin.encode(rigbin.FRAME, b"first", 1)
    for inner in (rigbin.RECORD.pack(rigbin.MAGIC, 1, 1 << 20, 0, 0), rigbin.encode(1, b"x" * 9, 2)[:-1]):
        torn = rigbin.encode(rigbin.FRAME, b"log " + inner + bytes(8), 3)
        for before in (b"", whole):
            for cut in range(1, len(torn)):
                data = before + torn[:-cut]
                plain, compiled = rigrecords.decode(data), rigrecords.decode(data, in_a_row=walk.in_a_row)
                assert len(plain) == bool(before) and plain.next_offset == len(before)
                assert all(np.array_equal(value, getattr(compiled, name)) for name, value in vars(plain).items())


def test_records_can_be_followed_in_pieces(book):
    book.record(rigbin.FRAME, b"one", 1)
    a = journal.records(book.path)
    book.record_all([(rigbin.PING, b"two!", 2), (rigbin.DAMAGE, b"", 3)])
    b = journal.records(book.path, a.next_offset, 30)  # the second record and the start of the third
    c = journal.records(book.path, b.next_offset)
    assert [x.payload(0) for x in (a, b, c)] == [b"one", b"two!", b""]
    assert [(len(x), x.left_bytes) for x in (a, b, c)] == [(1, 0), (1, 2), (1, 0)]
    assert c.kind.tolist() == [rigbin.DAMAGE] and c.t_ns.tolist() == [3]


def test_line_numbers_that_no_run_reaches_cost_no_memory():
    event = {"t_ns": 1, "kind": "x"}
    lines = integrity.lines(integrity.sealed(event, 0) + integrity.sealed(event, 10**12 - 1))
    assert integrity._line_words(lines) == [f"events.jsonl: {10**12 - 2} lines are missing"]


@pytest.mark.parametrize("name", ["/dev/zero", "../other"])
def test_sums_reach_only_into_the_folder(book, name):
    (book.path.parent / "other").touch()
    assert "outside" in integrity._sum_words(book.path, {name: [0, "00000000"]})[0]
