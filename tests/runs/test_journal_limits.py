"""The run folder's limits, each from both sides: numbers of a header, fields of an event, layout of a record, words on
what is damaged."""

import json
from zlib import crc32

import pytest
from looking import open_below

from ssdrig.base.errors import JournalError
from ssdrig.runs import integrity, journal, rigbin, rigrecords

HEADER = {
    "schema": 1,
    "run": "r",
    "started": {"t_ns": 5, "utc_ns": 0},
    "drive": {"preset": "p"},
    "method": {"name": "m"},
    "rig": None,
    "plan": {},
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(b"")
    return tmp_path


def header(folder, part: str, key: str, value) -> dict:
    header_ = json.loads(json.dumps(HEADER))
    (header_[part] if part else header_)[key] = value
    (folder / "run.json").write_text(json.dumps(header_))
    return journal.run_header(folder)


@pytest.mark.parametrize(
    ("part", "key", "good", "bad"),
    [
        ("", "run", ["x"], [None, 1]),
        *(("", key, [None, {}], [1, []]) for key in ("rig", "plan", "host")),
        ("", "drive", [{}], [None, 1]),
        *(("started", key, [0, 1 << 62], [-1, (1 << 62) + 1, None, 1.0, True]) for key in ("t_ns", "utc_ns")),
        *(("plan", key, ["x", None], [1, []]) for key in ("name", "variant", "text")),
        ("plan", "params", [{}, None], [1, []]),
        *(("drive", key, [0, 3e14, None], ["x", -1, []]) for key in ("rated_write_bytes", "rated_pe_cycles")),
        ("drive", "power_states", [[], None], [5, "x"]),
        ("drive", "logical_block_bytes", [1, 1 << 40, None], [0, "512", (1 << 40) + 1]),
        ("drive", "time_dilation", [1, 1_000_000, None], [0, 1_000_001, 1.5, True]),
        *(("drive", key, ["x", None], [1]) for key in ("model", "serial", "preset", "firmware", "interface")),
        *(("drive", key, [0, 1 << 62, None], [-1, (1 << 62) + 1, "1"]) for key in ("capacity_bytes", "raw_nand_bytes")),
        ("method", "name", ["x", None], [1]),
        ("method", "op_percent", [0, 12.5, 100, None], [-0.1, 100.1, "1", True]),
        *(
            ("method", key, [0, 1 << 40, None], [-1, (1 << 40) + 1, 1.5])
            for key in ("duration_s", "zoom_s", "smart_interval_s", "idle_s")
        ),
        *(
            ("method", key, [0, 1 << 62, None], [-1, (1 << 62) + 1])
            for key in ("tested_bytes", "block_bytes", "fill_block_bytes", "queue_depth", "seed")
        ),
    ],
)
def test_what_a_header_may_say(folder, part, key, good, bad):
    for value in good:
        header_ = header(folder, part, key, value)
        assert (header_[part] if part else header_)[key] == value
    for value in bad:
        with pytest.raises(JournalError) as error:
            header(folder, part, key, value)
        assert f"{part}.{key}".strip(".") in str(error.value)


@pytest.mark.parametrize(
    ("drive", "method", "name"),
    [
        ({"preset": "p q", "serial": "s", "model": "m"}, {"name": "mix"}, "19700101T000002Z-mix-p-q-"),
        ({"serial": "s/1", "model": "m"}, {"name": "-"}, "19700101T000002Z-x-s-1-"),
        ({"model": "m"}, {}, "19700101T000002Z-run-m-"),
        ({}, {}, "19700101T000002Z-run-drive-"),
    ],
)
def test_the_name_of_a_run(drive, method, name):
    made = journal._name({"started": {"utc_ns": 2_999_999_999}, "drive": drive, "method": method})
    assert made.startswith(name) and len(made) == len(name) + 4


def test_the_reserve_is_64_KiB_and_gone_after_the_end(tmp_path):
    book = journal.create(tmp_path, HEADER | {"run": "a"})
    assert (book.path / "reserve").stat().st_size == 65_536
    end = book.close("interrupted")
    assert (end["why"], end["exit_code"]) == (None, 0) and book.close("failed", "again", 3) == end
    assert not (book.path / "reserve").exists()
    with pytest.raises(JournalError, match="closed"):
        book.event("note", text="late")


@pytest.mark.parametrize("state", ["", "running", "died"])
def test_no_run_ends_in_another_state(tmp_path, state):
    book = journal.create(tmp_path, HEADER | {"run": "a"})
    with pytest.raises(ValueError):
        book.close(state)
    book.close("complete")


def test_a_record_byte_by_byte():
    made = rigbin.encode(2, b"abc", 0x0102030405060708)
    head = b"SJR1\x02\0\0\0\x03\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01"
    assert made == head + crc32(head + b"abc").to_bytes(4, "little") + b"abc"


def test_damage_between_records_is_skipped_and_at_the_end_left():
    a, b = rigbin.encode(1, b"", 7), rigbin.encode(2, b"xyz", 8)
    records = rigrecords.decode(a + b"??" + b + a[:-1], 100)
    assert (records.kind.tolist(), records.t_ns.tolist(), records.length.tolist()) == ([1, 2], [7, 8], [0, 3])
    assert (records.payload(1), records.skipped_bytes, records.left_bytes) == (b"xyz", 2, len(a) - 1)
    assert records.next_offset == 100 + len(a + b) + 2
    part = records.part(1, 2)
    assert (len(part), part.payload(0), part.next_offset, part.skipped_bytes) == (1, b"xyz", records.next_offset, 2)
    false = rigrecords.decode(b"SJR1SJR1" + b)
    assert (false.skipped_bytes, false.payload(0)) == (8, b"xyz")
    assert rigrecords.decode(b"?" + a[:-1]).left_bytes == len(a)
    assert len(rigrecords.decode(b"")) == 0


# ---- lines


def line(number: int, crc=True, **event) -> bytes:
    event_ = {"t_ns": 1, "kind": "note", **event}
    return integrity.sealed(event_, number) if crc else json.dumps(event_).encode() + b"\n"


@pytest.mark.parametrize(
    ("event", "good"),
    [
        ({}, True),
        ({"t_ns": 0}, True),
        ({"t_ns": (1 << 62) - 1}, True),
        ({"t_ns": 1 << 62}, False),
        ({"t_ns": -1}, False),
        ({"t_ns": 1.0}, False),
        ({"t_ns": True}, False),
        ({"kind": 1}, False),
        ({"kind": "clock.anchor", "utc_ns": 1}, True),
        ({"kind": "clock.anchor"}, False),
        ({"kind": "step.start", "step": 1}, False),
        ({"kind": "step.end", "step": "load"}, True),
        ({"kind": "smart.start", "n": True}, False),
        ({"kind": "smart.end", "n": 1}, False),
        ({"kind": "smart.end", "n": 1, "ok": True}, True),
        ({"kind": "rig.hello", "hello": []}, False),
        ({"kind": "sums", "files": {}}, True),
        ({"kind": "run.end", "state": None}, False),
    ],
)
def test_what_an_event_must_have(event, good):
    lines = integrity.lines(line(0, **event))
    assert len(lines.events) == good and (lines.damaged == []) == good


def test_lines_with_and_without_a_seal():
    old = line(0, crc=False)
    assert integrity.lines(old * 2).numbers == [None, None]
    mixed = integrity.lines(line(0) + old + line(2) + b"torn")
    assert (mixed.numbers, mixed.damaged) == ([0, 2], [len(old)])
    assert (mixed.left_bytes, mixed.whole_bytes) == (4, len(line(0) + old + line(2)))
    assert mixed.events == [{"t_ns": 1, "kind": "note"}] * 2
    for text in (b"{}\n", b"[]\n", b"null\n", b"{\n", b'{"t_ns": 1}\n'):
        assert integrity.lines(text).damaged == [len(text)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["has no event"]),
        (b"x\n", ["1 damaged lines (2 bytes) were left out"]),
        (line(0) + b"abc", ["3 bytes at its end are not a whole line"]),
        (line(0) + line(1), []),
        (line(0) + line(2), ["1 lines are missing"]),
        (line(1), ["1 lines are missing"]),
        (line(0) + b"x\n" + line(2), ["1 damaged lines (2 bytes) were left out"]),
        (line(0) + b"x\n" + line(3), ["1 damaged lines (2 bytes) were left out", "1 lines are missing"]),
        (line(0) + line(1) + line(1), ["1 lines are there twice"]),
        (line(0) + line(2) + line(1), ["its lines are not in the order of their numbers"]),
        (line(0, crc=False) * 3, []),
    ],
)
def test_words_on_lines(folder, data, words):
    (folder / "events.jsonl").write_bytes(data)
    assert integrity.damage(folder) == [f"events.jsonl: {word}" for word in words]


def closed(folder, **files) -> list[str]:
    (folder / "events.jsonl").write_bytes(line(0, kind="sums", files=files))
    return integrity.damage(folder)


def test_words_on_files(folder):
    (folder / "a").write_bytes(b"12345")
    right = f"{crc32(b'12345'):08x}"
    assert closed(folder, a=[5, right]) == closed(folder, a=[5, None]) == []
    assert closed(folder, a=[6, right]) == ["a: 5 of 6 bytes are left"]
    assert closed(folder, a=[4, right]) == ["a: has 1 bytes that the run did not write"]
    assert closed(folder, a=[5, "0" * 8]) == ["a: is damaged, its content is not what the run wrote"]
    assert closed(folder, a=[5, right], b=[0, right]) == ["b: is missing"]
    assert closed(folder) == ["a: was not written by the run"]
    (folder / "rig.bin").write_bytes(b"123")
    assert integrity.sums(folder) == {"a": [5, right], "rig.bin": [3, None]}


def test_files_that_are_not_the_runs_have_no_sum(folder):
    for name in (*integrity.APART, ".hidden", "truth"):
        (folder / name).write_bytes(b"")
    (folder / "sub").mkdir()
    (folder / "sub" / "x").write_bytes(b"")
    (folder / "sub" / ".y").write_bytes(b"")
    assert list(integrity.sums(folder)) == ["sub/x"]


@pytest.mark.parametrize(("count", "count_named"), [(8, 8), (9, 9), (10, 9)])
def test_at_most_eight_files_are_named_in_full(folder, count, count_named):
    damage = closed(folder, **{f"f{i}": [0, None] for i in range(count)})
    assert len(damage) == count_named
    if count > 8:
        names = ", ".join(f"f{i}" for i in range(8, count))
        assert damage[-1] == f"and {count - 8} more files: {names}"


# ---- what the writer leaves behind


def test_numbers_that_the_schema_says():
    assert (rigbin.FRAME, rigbin.PING, rigbin.DAMAGE, rigbin.PORT) == (1, 2, 3, 4)
    assert journal.SYNC_S <= 1  # the disk has an append at least once a second
    assert rigrecords.decode(b"").next_offset == 0


def test_a_new_folder_says_when_it_began_and_is_on_the_disk(tmp_path, monkeypatch):
    on_disk = []
    monkeypatch.setattr(journal, "fsync_folder", on_disk.append)
    book = journal.create(tmp_path, {"run": "a"})
    assert on_disk == [tmp_path] and book.sync() == (0, 0)
    started = journal.open_run(book.path)["started"]
    assert started["t_ns"] > 0 and started["utc_ns"] > 10**18
    assert (book.path / "lock").stat().st_mode & 0o111 == 0
    book.close("complete")


def test_nothing_stays_open(tmp_path):
    book = journal.create(tmp_path, HEADER | {"run": "a"})
    assert open_below(tmp_path)
    with pytest.raises(JournalError):
        journal.create(tmp_path, HEADER | {"run": "a"})
    assert journal.state(book.path) == "running"
    book.close("complete")
    assert journal.state(book.path) == "complete" and not book._syncer.is_alive()
    assert open_below(tmp_path) == []


def test_the_end_is_brought_to_the_disk(tmp_path, monkeypatch):
    book = journal.create(tmp_path, HEADER | {"run": "a"})
    synced = []
    monkeypatch.setattr(journal.os, "fdatasync", synced.append)
    book.close("complete")
    assert synced


def test_what_the_system_said_is_repeated(tmp_path):
    book = journal.create(tmp_path, HEADER | {"run": "a"})
    with pytest.raises(JournalError) as error:
        book._fail(OSError(28, "No space left on device"))
    assert error.value.seen == "No space left on device"
    book.close("failed")
    with pytest.raises(JournalError) as error:
        journal.open_run(tmp_path / "none")
    assert error.value.seen == "No such file or directory"
    (book.path / "rig.bin").unlink()
    assert len(journal.records(book.path)) == 0
    (book.path / "rig.bin").mkdir()
    with pytest.raises(JournalError, match="a readable rig.bin"):
        journal.records(book.path)


def test_an_anchor_at_no_time_is_a_damaged_line(folder):
    events = [{"t_ns": 5, "kind": "clock.anchor", "utc_ns": utc_ns} for utc_ns in (0, -1, 1 << 62, 1 << 70, 7)]
    (folder / "events.jsonl").write_bytes(b"".join(integrity.sealed(event, i) for i, event in enumerate(events)))
    assert [event["utc_ns"] for event in journal.events(folder)] == [0, 7]
    assert "3 damaged lines" in integrity.damage(folder)[0]


def test_a_step_or_an_end_that_says_another_kind_is_a_damaged_line(folder):
    good = [{"kind": "step.start", "step": "a", "round": 1}, {"kind": "run.end", "state": "failed", "why": None}]
    odd = [{"kind": "step.end", "step": "a", "round": []}, {"kind": "step.end", "step": "a", "why": 5}]
    odd += [{"kind": "not_run", "label": {}}, {"kind": "run.end", "state": "failed", "why": float("inf")}]
    lines = [integrity.sealed({"t_ns": 5} | event, i) for i, event in enumerate([*good, *odd])]
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    assert [event["kind"] for event in journal.events(folder)] == ["step.start", "run.end"]
