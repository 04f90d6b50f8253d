"""Traces of others: each format's lines, hostile ones, and what is made of places and times."""

import errno
import gzip
import json
import os
import random
import tracemalloc

import numpy as np
import pytest

from ssdrig import cli
from ssdrig.base.errors import UsageError
from ssdrig.commands import trace
from ssdrig.load import trace_convert, trace_facts, trace_formats, trace_kernel, traceform
from ssdrig.load.trace_player import How
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES

ALIBABA = """\
419,W,8792731648,16384,1577808144360767
725,R,59110326272,360448,1577808144360813
419,R,512,4096,1577808144361000
419,R,0,512,1577808144360900
"""
MSR = """\
Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,310983680,512,1386
"""
BLKPARSE = """\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   N [kjournald]
  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]
  8,0    0        0     0.000002500     0  m   N cfq697 insert_request
  8,0    3        4     0.000003000   697  Q  FWS [jbd2/sda1-8]
  8,0    3        5     0.000004000   697  Q FWFS 100 + 8 [jbd2/sda1-8]
  8,0    1        6     0.000005000   700  Q   D 2048 + 16 [fstrim]
  8,0    1        7     0.000005500   700  A   R 8 + 8 <- (8,1) 0
  8,0    1        8     0.000006000   700  Q  RA 8 + 8 [cat]
  8,0    1        9     0.000007000     0  C   R 8 + 8 [0]
CPU0 (sda):
 Reads Queued:           0,        0KiB\t Writes Queued:         23,       92KiB
"""
IOLOG3 = """\
fio version 3 iolog
19 /tmp/f add
126 /tmp/f open
129 /tmp/f read 61440 4096
20910 /tmp/f write 491520 4096
34840 /tmp/f sync 368640 0
67840 /tmp/f trim 954368 4096
72888 /tmp/f close
"""
IOLOG2 = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb write 0 4096\n/dev/sdb datasync 0 0\n"
JESD = "e 1024 8\ns 4096 64\nh\n"
TRACEPOINT = """\
              dd-29480   [000] ..... 15631.667038: block_bio_queue: 7,0 WS 0 + 128 [dd]
              dd-29480   [000] .N... 15631.668035: block_bio_queue: 7,0 WS 128 + 128 [dd]
              dd-29480   [000] ..... 15631.668107: block_bio_queue: 7,0 FWS 0 + 0 [dd]
      blkdiscard-29484   [001] ..... 15631.686226: block_bio_queue: 7,0 RA 8064 + 8 [blkdiscard]
"""  # a loop device, Linux 6.18
FILES = {
    "tracepoint": TRACEPOINT,
    "alibaba": ALIBABA,
    "msr": MSR,
    "blkparse": BLKPARSE,
    "iolog3": IOLOG3,
    "iolog2": IOLOG2,
    "jesd": JESD,
}


def converted(tmp_path, text: str | bytes, **more) -> list[tuple]:
    path = tmp_path / "source"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rows = np.concatenate(list(trace_convert.Conversion(path, trace_convert.Asked(**more)).windows()))
    assert traceform.why_not(rows) is None
    return rows[["t_ns", "offset_bytes", "length_bytes", "op"]].tolist()


def depths(tmp_path, text: str, **more) -> tuple[list[int] | None, str | None]:
    """Of each I/O, None where they are not known; and why they are not."""
    path = tmp_path / "source"
    path.write_text(text)
    made = trace_convert.Conversion(path, trace_convert.Asked(**more))
    rows, words = np.concatenate(list(made.windows())), made.words()
    return (rows["depth"].tolist() if words["depths"] else None), words["depths_why"]


def test_each_format_says_what_its_lines_say(tmp_path):
    assert converted(tmp_path, ALIBABA, device="419") == [
        (0, 8792731648, 16384, WRITE),
        (133_000, 0, 512, READ),
        (233_000, 512, 4096, READ),
    ]
    assert converted(tmp_path, MSR) == [(0, 383496192, 32768, READ), (1_332_052_600, 310983680, 512, WRITE)]
    assert converted(tmp_path, BLKPARSE) == [
        (0, 223490 * 512, 4096, WRITE),
        (803, 0, 0, FLUSH),
        (1803, 0, 0, FLUSH),
        (1803, 51200, 4096, WRITE),
        (2803, 1 << 20, 8192, TRIM),
        (3803, 4096, 4096, READ),
    ]
    assert converted(tmp_path, IOLOG3) == [
        (0, 61440, 4096, READ),
        (20_781_000, 491520, 4096, WRITE),
        (34_711_000, 0, 0, FLUSH),
        (67_711_000, 954368, 4096, TRIM),
    ]
    assert converted(tmp_path, TRACEPOINT) == [
        (0, 0, 65536, WRITE),
        (997_000, 65536, 65536, WRITE),
        (1_069_000, 0, 0, FLUSH),
        (19_188_000, 8064 * 512, 4096, READ),
    ]
    assert converted(tmp_path, IOLOG2) == [(0, 0, 4096, WRITE), (1, 0, 0, FLUSH)]
    assert converted(tmp_path, JESD) == [(0, 524288, 4096, WRITE), (1, 2097152, 32768, TRIM), (2, 0, 0, FLUSH)]


def test_a_format_is_known_by_its_first_line():
    for name, text in FILES.items():
        trace_format = trace_formats.of(text.splitlines()[0])
        assert trace_format and trace_format.parse is getattr(trace_formats, "jesd219" if name == "jesd" else name)
    for known in trace_formats.FORMATS:
        assert known.parse(known.example)
    assert all(trace_formats.of(line) is None for line in ("", "hello", "fio version 4 iolog", "1,2,3", "e 1"))


NAMES = {"D": "issue", "C": "complete", "R": "requeue"}


def event(t_us, name, letters, sector, sectors):
    size = f" {512 * sectors} ()" if name == "rq_issue" else " ()" if name in ("rq_complete", "rq_requeue") else ""
    rest = "" if name == "bio_queue" else " be,0,4"
    return f"  dd-9   [001] ..s1.  587.{t_us:06}: block_{name}: 7,0 {letters}{size} {sector} + {sectors}{rest} [0]\n"


def blk(t_us, action, letters, sector, sectors):
    return f"  8,0    1  {t_us}   0.{t_us:06}000  697  {action}  {letters} {sector} + {sectors} [fio]\n"


@pytest.mark.parametrize("letters", ["WZ", "WZS", "WZFSM"])
def test_write_zeroes_stays_write_zeroes(tmp_path, letters):
    text = event(1, "bio_queue", letters, 0, 8388608) + event(2, "bio_queue", "WS", 8, 8)
    rows = converted(tmp_path, text)
    assert [row[2:] for row in rows] == [(1 << 31, ZEROES), (1 << 31, ZEROES), (4096, WRITE)]
    assert converted(tmp_path, text, leave_out=(ZEROES,)) == [(0, 4096, 4096, WRITE)]


def test_an_io_that_the_kernel_names_n_is_write_zeroes_only_without_zones(tmp_path):
    """Linux prints Write Zeroes and Zone Append so (blkdiscard -z of a loop device, 6.18)."""
    text = event(1, "bio_queue", "NS", 0, 131072)
    assert converted(tmp_path, text, zones=False) == [(0, 0, 64 << 20, ZEROES)]
    with pytest.raises(UsageError, match="line 1"):
        converted(tmp_path, text)
    assert len(converted(tmp_path, event(1, "bio_queue", "N", 0, 0) + event(2, "bio_queue", "R", 0, 8))) == 1


@pytest.mark.parametrize("letters", ["ZA", "ZAS", "ZR", "ZRA", "ZO", "ZC", "ZF", "DE", "DES", "X"])
@pytest.mark.parametrize("line", [lambda *what: event(2, "bio_queue", *what), lambda *what: blk(2, "Q", *what)])
def test_what_no_drive_without_zones_can_be_asked_for_is_refused(tmp_path, letters, line):
    before = line("R", 0, 8)
    with pytest.raises(UsageError, match="line 2"):
        converted(tmp_path, before + line(letters, 4096, 8))


def test_a_reset_of_a_zone_is_refused_where_the_kernel_names_it_n(tmp_path):
    with pytest.raises(UsageError, match="zone.*line 1"):
        converted(tmp_path, event(1, "bio_queue", "N", 524288, 0), zones=False)


def test_writes_that_blkparse_cannot_tell_from_write_zeroes_are_refused(tmp_path):
    text = blk(1, "Q", "WS", 0, 8388608) + blk(2, "Q", "W", 0, 8)
    with pytest.raises(UsageError, match="Write Zeroes.*line 1"):
        converted(tmp_path, text)
    assert converted(tmp_path, text, leave_out=(ZEROES,)) == [(0, 0, 4096, WRITE)]


@pytest.mark.parametrize("letters, op", [("D", TRIM), ("DS", TRIM), ("RA", READ), ("WFSM", WRITE), ("WSMU", WRITE)])
def test_letters_behind_the_operation_change_nothing(tmp_path, letters, op):
    for text in (blk(1, "Q", letters, 8, 8), event(1, "bio_queue", letters, 8, 8)):
        assert converted(tmp_path, text) == [(0, 4096, 4096, op)]


def test_fua_of_a_write_stays_with_it_and_of_another_operation_is_counted(tmp_path):
    letters = ["WFS", "FWFSM", "W", "FWS", "WZF", "WFSMU"]
    for line in (lambda *w: blk(w[0], "D", *w[1:]), lambda t, *w: event(t, "rq_issue", *w)):
        (tmp_path / "s").write_text("".join(line(1 + n, name, 8 * n, 8) for n, name in enumerate(letters)))
        made = trace_convert.Conversion(tmp_path / "s", trace_convert.Asked())
        rows = np.concatenate(list(made.windows()))
        moving = rows[rows["op"] != FLUSH]
        assert moving["flags"].tolist() == [traceform.FUA, traceform.FUA, 0, 0, 0, traceform.FUA]
        assert (rows["op"] == FLUSH).sum() == 2 and list(made.words()["left_out"].values()) == [1]
        without = trace_convert.Conversion(tmp_path / "s", trace_convert.Asked(fua=False))
        assert not np.concatenate(list(without.windows()))["flags"].any()
        assert sorted(without.words()["left_out"].values()) == [1, 3]


def test_fua_is_shown_with_its_bytes(tmp_path, capsys):
    (tmp_path / "s").write_text(blk(1, "D", "WFS", 0, 8) + blk(2, "D", "W", 8, 8) + blk(3, "D", "WF", 16, 16))
    assert cli.main(["trace", "convert", str(tmp_path / "s"), str(tmp_path / "t")]) == 0
    capsys.readouterr()
    assert cli.main(["trace", "show", str(tmp_path / "t"), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert (figures["fua_writes"], figures["fua_bytes"], figures["written_bytes"]) == (2, 12288, 16384)


def in_flight(plan, begin, end):
    """Lines of I/Os (begin, end) in µs, and the depth of each by a count of its own."""
    marks = sorted([(b, 1, n) for n, (b, _) in enumerate(plan)] + [(e, 0, n) for n, (_, e) in enumerate(plan)])
    text = "".join((begin if is_begin else end)(t, n) for t, is_begin, n in marks)
    order = [n for _, is_begin, n in marks if is_begin]
    return text, [sum(b <= plan[n][0] < e for b, e in plan) for n in order]


def drawn(n=300, seed=5):
    rng = random.Random(seed)
    begins = rng.sample(range(1, 20 * n), n)
    return [(begin, begin + rng.randint(1, 200)) for begin in sorted(begins)]


@pytest.mark.parametrize("action", ["Q", "D"])
def test_depth_is_what_is_under_way_by_blkparse(tmp_path, action):
    text, expected = in_flight(
        drawn(), lambda t, n: blk(t, action, "W", 8 * n, 8), lambda t, n: blk(t, "C", "W", 8 * n, 8)
    )
    assert depths(tmp_path, text) == (expected, None) and max(expected) > 5


def test_depth_of_blkparse_is_the_drives_where_queued_and_issued_are_there(tmp_path):
    text = "".join(blk(1 + n, "Q", "W", 8 * n, 8) for n in range(4))  # merged into one request, and one of its own
    text += blk(10, "D", "W", 0, 24) + blk(11, "D", "W", 24, 8) + blk(12, "C", "W", 0, 24) + blk(13, "C", "W", 24, 8)
    assert converted(tmp_path, text) == [(0, 0, 24 * 512, WRITE), (1000, 24 * 512, 4096, WRITE)]
    assert depths(tmp_path, text) == ([1, 2], None)
    again = text + blk(20, "D", "R", 0, 8) + blk(21, "R", "R", 0, 8) + blk(22, "D", "R", 0, 8) + blk(23, "C", "R", 0, 8)
    assert len(converted(tmp_path, again)) == 3  # requeued, and issued once more


@pytest.mark.parametrize("ops", ["RR", "RW", "WW", "WR"])
def test_two_ios_at_one_place_at_one_time_are_two(tmp_path, ops):
    """Programs may read and write one place together; only a line of a requeue makes the second issue the first."""
    first, second = ops
    kinds = [READ if letter == "R" else WRITE for letter in ops]
    rows = [(0, 0, 4096, kinds[0]), (1000, 0, 4096, kinds[1]), (2000, 4096, 4096, READ)]
    text = blk(1, "D", first, 0, 8) + blk(2, "D", second, 0, 8) + blk(3, "D", "R", 8, 8)
    text += blk(4, "C", second, 0, 8) + blk(6, "C", first, 0, 8) + blk(9, "C", "R", 8, 8) + blk(10, "D", "R", 99, 8)
    rows.append((9000, 99 * 512, 4096, READ))
    assert converted(tmp_path, text) == rows and depths(tmp_path, text) == ([1, 2, 3, 1], None)
    made = trace_convert.Conversion(tmp_path / "source", trace_convert.Asked())
    list(made.windows())
    lasts_us = {READ: [], WRITE: []}
    same = first == second  # nothing tells which of two alike has ended: the first
    for kind, begin, end in ((kinds[0], 1, 4 if same else 6), (kinds[1], 2, 6 if same else 4), (READ, 3, 9)):
        lasts_us[kind].append(end - begin)
    for side, kind in (("reads", READ), ("writes", WRITE)):
        of = made.words()["service"][side]
        assert (of and of["mean_us"]) == (np.mean(lasts_us[kind]) if lasts_us[kind] else None)


@pytest.mark.parametrize("line", [blk, lambda t, action, *what: event(t, f"rq_{NAMES[action]}", *what)])
def test_an_io_that_is_issued_again_after_a_requeue_is_one(tmp_path, line):
    text = line(1, "D", "W", 0, 8) + line(2, "R", "W", 0, 8) + line(3, "D", "W", 0, 8) + line(4, "D", "R", 8, 8)
    text += line(5, "C", "W", 0, 8) + line(6, "C", "R", 8, 8) + line(7, "D", "W", 0, 8)
    rows = [(0, 0, 4096, WRITE), (3000, 4096, 4096, READ), (6000, 0, 4096, WRITE)]
    assert converted(tmp_path, text) == rows and depths(tmp_path, text) == ([1, 2, 1], None)
    begins = line(1, "D", "W", 0, 8) + line(2, "R", "W", 0, 8) + line(3, "D", "W", 0, 8) + line(4, "D", "R", 8, 8)
    assert converted(tmp_path, begins) == rows[:2]


@pytest.mark.parametrize("line", [blk, lambda t, action, *what: event(t, f"rq_{NAMES[action]}", *what)])
@pytest.mark.parametrize("ends", [True, False])
def test_io_that_grew_after_a_requeue_is_written_once(tmp_path, line, ends):
    """The kernel merges others with a request in its queue: two taken back, and three pieces around them."""
    text = line(1, "D", "W", 8, 8) + line(2, "D", "W", 24, 8) + line(3, "R", "W", 8, 8) + line(4, "R", "W", 24, 8)
    text += line(5, "D", "R", 8, 8) + line(6, "D", "W", 0, 40)
    text += line(7, "C", "R", 8, 8) + line(8, "C", "W", 0, 40) if ends else ""
    text += line(9, "D", "R", 99, 8)
    rows = [(0, 8, 8, WRITE), (1000, 24, 8, WRITE), (4000, 8, 8, READ)]
    rows += [(5000, 0, 8, WRITE), (5000, 16, 8, WRITE), (5000, 32, 8, WRITE), (8000, 99, 8, READ)]
    assert converted(tmp_path, text) == [(t, 512 * at, 512 * n, op) for t, at, n, op in rows]
    assert not ends or depths(tmp_path, text) == ([1, 2, 3, 2, 2, 2, 1], None)


def test_blank_lines_are_no_ios(tmp_path):
    for text in (ALIBABA.replace("725", "419"), IOLOG3, JESD):
        spaced = "\n" + text.replace("\n", "\r\n \n") + "\n\n"
        assert converted(tmp_path, spaced) == converted(tmp_path, text)


def test_depth_by_the_kernels_events(tmp_path):
    text, expected = in_flight(
        drawn(), lambda t, n: event(t, "bio_queue", "R", 8 * n, 8), lambda t, n: event(t, "rq_complete", "R", 8 * n, 8)
    )
    assert depths(tmp_path, text) == (expected, None)
    merged = event(1, "bio_queue", "R", 0, 8) + event(2, "bio_queue", "R", 8, 8) + event(3, "rq_complete", "R", 0, 16)
    assert depths(tmp_path, merged + event(4, "bio_queue", "R", 0, 8)) == ([1, 2, 1], None)
    parts = event(1, "bio_queue", "R", 0, 16) + event(2, "rq_complete", "R", 0, 8) + event(3, "bio_queue", "R", 64, 8)
    parts += event(4, "rq_complete", "R", 8, 8) + event(5, "bio_queue", "R", 72, 8)
    assert depths(tmp_path, parts) == ([1, 2, 2], None)


def test_depth_by_response_times(tmp_path):
    plan = drawn()
    expected = [sum(b <= begin < e for b, e in plan) for begin, _ in plan]
    text = "".join(f"{10**17 + b},hm,1,Read,{4096 * n},4096,{e - b}\n" for n, (b, e) in enumerate(plan))
    assert depths(tmp_path, text) == (expected, None)
    together = "".join(f"{10**17},hm,1,Read,{4096 * n},4096,0\n" for n in range(3))
    assert depths(tmp_path, together)[0] == [3, 3, 3]


@pytest.mark.parametrize(
    "text",
    [
        IOLOG3,
        IOLOG2,
        JESD,
        TRACEPOINT,
        ALIBABA.replace("725", "419"),
        blk(1, "D", "W", 0, 8) + blk(2, "D", "W", 8, 8),
        "".join(blk(t, "D", "W", 8 * t, 8) for t in range(9)) + "  8,0 1 9 99.000000000 0 C W 0 + 8 [0]\n"
        "  8,0 1 10 99.100000000 0 Q R 0 + 8 [0]\n  8,0 1 10 99.100000000 0 D R 0 + 8 [0]\n",
    ],
)
def test_a_depth_that_the_source_does_not_say_is_not_known(tmp_path, text):
    depths_, why = depths(tmp_path, text)
    assert depths_ is None and why
    assert set(depths(tmp_path, text, depth=8)[0]) == {8}


def test_completions_that_fit_nothing_make_no_depth(tmp_path):
    text = "".join(blk(2 * n, "D", "W", 8 * n, 8) + blk(2 * n + 1, "C", "W", 8 * n + 3, 2) for n in range(1, 300))
    assert depths(tmp_path, text)[0] is None
    few = (
        "".join(blk(n, "C", "W", 8 * n + 3, 2) for n in range(1, 40))
        + blk(99, "D", "W", 0, 8)
        + blk(100, "C", "W", 0, 8)
    )
    assert depths(tmp_path, few) == ([1], None)  # they had begun before the recording


def test_a_trace_without_depths_is_shown_and_played_so(tmp_path, capsys):
    (tmp_path / "s").write_text(IOLOG3)
    assert cli.main(["trace", "convert", str(tmp_path / "s"), str(tmp_path / "t")]) == 0
    capsys.readouterr()
    assert cli.main(["trace", "show", str(tmp_path / "t"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"]["depth_percent"] is None
    assert cli.main(["trace", "show", str(tmp_path / "t")]) == 0 and "not known" in capsys.readouterr().out
    words = ["trace", "play", str(tmp_path / "t"), "--virtual", "sata-tlc", "--closed", "--fill"]
    assert cli.main(words) == UsageError.exit_code and "--depth" in capsys.readouterr().err
    with pytest.raises(UsageError, match="depth"):
        trace_facts.of_file(tmp_path / "t", How(closed=True))


def test_a_file_of_the_kernels_tracing_begins_with_comments_and_has_other_events(tmp_path):
    text = "# tracer: nop\n#\n#     TASK-PID\n" + TRACEPOINT.splitlines(True)[0]
    text += "  kworker/0:0H-10  [000] .....   592.847200: block_rq_insert: 7,0 NS 0 () 0 + 8 [k]\n".replace(
        "rq", "plug"
    )
    text += "  kworker/0:0H-10  [000] .....   592.847200: sched_wakeup: comm=x pid=1\n"
    assert len(converted(tmp_path, text)) == 1


def test_places_are_aligned_and_wrapped_to_the_range(tmp_path):
    text = "e 1 8\ne 65535 16\ne 1000000001 8\ns 0 200000\n"
    rows = converted(tmp_path, text, block_bytes=4096, range_bytes=32 << 20)
    assert rows[0][1:3] == (0, 8192)  # 512 to 4608 lie in two blocks
    assert rows[1][1:3] == ((32 << 20) - 12288, 12288)  # what would end behind the range ends with it
    assert rows[2][1:3] == (1000000001 * 512 // 4096 * 4096 % (32 << 20), 8192)
    assert rows[3][1:3] == (0, 32 << 20)
    pieces = converted(tmp_path, f"e 0 {80 << 11}\ne 5 1\n")
    assert [row[2] >> 20 for row in pieces] == [32, 32, 16, 0] and [row[1] >> 20 for row in pieces[:3]] == [0, 32, 64]


def test_lines_slightly_out_of_order_are_sorted_and_more_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_convert, "WINDOW_IOS", 50)
    times = [n * 10 + (n % 7) * 30 for n in range(400)]
    text = "".join(f"1,R,0,4096,{t}\n" for t in times)
    assert [row[0] for row in converted(tmp_path, text)] == [1000 * t for t in sorted(times)]
    with pytest.raises(UsageError, match="times that rise.*in line 401"):
        converted(tmp_path, text + "1,R,0,4096,5\n")


@pytest.mark.parametrize(
    "text, seen",
    [
        (ALIBABA, "one device.*'725' in line 2"),
        (ALIBABA + "419,X,0,1,2\n", "one device"),
        (IOLOG2 + "/dev/sdb wait 1000 0\n", "line 6"),
        ("e 1 8\ne 1\n", "line 2"),
        ("e 1 0\n", "0 bytes.*line 1"),
        ("h\ne 999999999999999999 8\n", "line 2"),
        (f"e 1 8\n{'9' * 5000}\n", "at most 4096 bytes.*line 2"),
        ("", "none in line 0"),
        ("hello\n", "format that is known.*line 1"),
        (BLKPARSE.replace("CPU0", "?"), "line 11"),
        ("1,R,0,4096,1\n1,R,0,4096,99999999999999999\n", "30 years"),
        (MSR.splitlines()[0], "I/Os; seen none"),
        ("fio version 3 iolog\n5 /f read\n", "line 2"),
        ("e 1 8\n\x00\xff\n", "line 2"),
        (TRACEPOINT + "CPU:1 [LOST 12 EVENTS]\n", "LOST 12 EVENTS.*line 5"),
    ],
)
def test_a_hostile_line_is_one_error_with_its_number(tmp_path, text, seen):
    with pytest.raises(UsageError, match=seen):
        converted(tmp_path, text)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_trace_that_can_be_played_or_one_error(tmp_path, name):
    rng, source = random.Random(name), FILES[name].encode()
    refused = 0
    for _ in range(120):
        text = bytearray(source)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(text) + 1) - 1 if len(text) else 0
            how = rng.randrange(4)
            if how == 0 and text:
                text[at] = rng.choice([rng.randrange(256), rng.choice(b"0123456789")])
            elif how == 1:
                del text[at : at + rng.randint(1, 20)]
            elif how == 2:
                text[at:at] = rng.choice([b"9" * 30, b"-", b"\n", b",", b" ", b"0", b"\xb2", b"e+9", b"\x1b[2J"])
            else:
                text[at:at] = text[max(0, at - 40) : at]
        try:
            converted(tmp_path, bytes(text), device="419" if name == "alibaba" else "")
        except UsageError as error:
            refused += 1
            assert " in line " in error.seen and "\x1b" not in str(error)
    assert 20 < refused < 120, "all of one kind"


def test_the_command_converts_and_says_what_it_made(tmp_path, capsys):
    (tmp_path / "msr.csv.gz").write_bytes(gzip.compress(MSR.encode()))
    words = [
        "trace",
        "convert",
        str(tmp_path / "msr.csv.gz"),
        str(tmp_path / "t"),
        "--range",
        "64MiB",
        "--block",
        "4096",
    ]
    assert cli.main([*words, "--ios", "1", "--json"]) == 0
    header = json.loads(capsys.readouterr().out)
    assert header["ios"] == 1 and header["scaled"] and header["source"] == "MSR Cambridge trace, device hm.1"
    assert traceform.read(tmp_path / "t")[0] == header and not header["synthetic"] and header["timed"]
    (tmp_path / "bad.gz").write_bytes(gzip.compress(MSR.encode())[:-9])
    assert cli.main(["trace", "convert", str(tmp_path / "bad.gz"), str(tmp_path / "u")]) == UsageError.exit_code
    assert not (tmp_path / "u").exists() and "compressed" in capsys.readouterr().err
    (tmp_path / "j").write_text(JESD)
    assert cli.main(["trace", "convert", str(tmp_path / "j"), str(tmp_path / "v"), "--no-trims", "--no-flushes"]) == 0
    assert traceform.read(tmp_path / "v")[1].tolist() == [(0, 524288, 4096, WRITE, 0, 0)]
    capsys.readouterr()
    assert cli.main(["trace", "play", str(tmp_path / "v"), "--virtual", "sata-tlc"]) == UsageError.exit_code
    assert "--closed" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_one_error(tmp_path, monkeypatch, capsys):
    """A recording of hours must not end there, so a folder is looked at before; a disk may still be full."""
    (tmp_path / "one").write_text("1,W,0,4096,5\n")
    words = ["trace", "convert", str(tmp_path / "one"), str(tmp_path / "x")]

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(traceform, "write", full)
        assert cli.main(words) == UsageError.exit_code
    assert "No space left on device" in capsys.readouterr().err
    monkeypatch.setattr(trace.os, "access", lambda path, mode: path != tmp_path)
    assert cli.main(words) == UsageError.exit_code and "one that cannot" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


FTRACE = "# tracer: nop\n#\n# entries-in-buffer/entries-written: {}   #P:2\n#\n"


def issued(t_us, sector, sectors=8, cpu=0):
    return f" fio-9 [{cpu:03d}] d..2. 1.{t_us:06d}: block_rq_issue: 8,0 W 4096 () {sector} + {sectors} none,0,0 [fio]\n"


def completed(t_us, sector, sectors=8, cpu=1):
    return f" fio-9 [{cpu:03d}] d.h2. 1.{t_us:06d}: block_rq_complete: 8,0 W () {sector} + {sectors} none,0,0 [0]\n"


@pytest.mark.parametrize("first", ["issued", "completed", "shuffled"])
def test_depth_follows_times_whatever_order_the_buffers_of_processors_come_in(tmp_path, first):
    """`cat per_cpu/cpu*/trace`: all of one processor before the next one."""
    begun = [issued(1000 * n, 8 * n) for n in range(40)]
    ended = [completed(1000 * n + 1500, 8 * n) for n in range(40)]  # two at a time
    lines = begun + ended if first == "issued" else ended + begun
    if first == "shuffled":
        random.Random(1).shuffle(lines)
    expected = [1] + [2] * 39
    assert depths(tmp_path, FTRACE.format("80/80") + "".join(lines)) == (expected, None)


def test_lines_of_completions_far_out_of_order_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_convert, "WINDOW_IOS", 8)
    text = "".join(issued(1000 * n, 8 * n) for n in range(40)) + "".join(completed(9, 8 * n) for n in range(40))
    with pytest.raises(UsageError) as caught:
        converted(tmp_path, FTRACE.format("80/80") + text)
    assert "sort" in caught.value.do


def test_completion_that_is_missing_long_before_the_end_makes_depths_unknown(tmp_path):
    text = FTRACE.format("9/9") + issued(0, 800)
    text += "".join(issued(50_000 * n, 8 * n) + completed(50_000 * n + 100, 8 * n) for n in range(1, 19))
    assert depths(tmp_path, text)[0] is not None  # 0.85 s: it may still be under way
    text += (issued(100_000, 0) + completed(100_100, 0)).replace(" 1.", " 2.")
    counted, why = depths(tmp_path, text)
    assert counted is None and "of 1 I/Os" in why


@pytest.mark.parametrize("loss", ["CPU:1 [LOST 1234 EVENTS]", "CPU:1 [1234 EVENTS DROPPED]"])
def test_events_that_the_recording_lost_are_refused_with_the_remedy(tmp_path, loss):
    with pytest.raises(UsageError) as caught:
        converted(tmp_path, FTRACE.format("2/2") + issued(0, 0) + loss + "\n" + completed(9, 0))
    assert "buffer" in caught.value.do and "line 6" in caught.value.seen


@pytest.mark.parametrize("line", [blk, lambda t, action, *what: event(t, f"rq_{NAMES[action]}", *what)])
def test_what_makes_no_io_is_counted_by_its_reason(tmp_path, line):
    """Writes of 0 bytes, commands of a driver, and completions whose issue is not in the file."""
    text = line(1, "D", "W", 8, 8) + line(2, "D", "W", 16, 0) + line(3, "C", "W", 16, 0) + line(4, "D", "N", 0, 0)
    text += line(5, "C", "N", 0, 0) + line(6, "D", "FWS", 0, 0) + line(7, "C", "W", 8, 8) + line(8, "C", "R", 800, 8)
    (tmp_path / "s").write_text(text)
    made = trace_convert.Conversion(tmp_path / "s", trace_convert.Asked())
    assert [row["op"] for row in np.concatenate(list(made.windows()))] == [WRITE, FLUSH]
    counted = {trace_kernel.NO_DATA: 1, trace_kernel.COMMANDS: 1, trace_convert.NO_BEGIN: 1}
    assert made.words()["left_out"] == counted


def test_what_makes_no_io_chooses_neither_device_nor_stage(tmp_path):
    other = "  8,16   3        1     0.000000500   697  D   N 0 + 0 [x]\n"
    assert converted(tmp_path, other + blk(1, "Q", "W", 8, 8) + other) == [(0, 4096, 4096, WRITE)]


def test_an_action_that_blkparse_does_not_have_is_counted(tmp_path):
    (tmp_path / "s").write_text(blk(1, "D", "W", 8, 8) + blk(2, "Z", "W", 8, 8) + blk(3, "G", "W", 8, 8))
    made = trace_convert.Conversion(tmp_path / "s", trace_convert.Asked())
    assert len(np.concatenate(list(made.windows()))) == 1
    assert made.words()["left_out"] == {trace_kernel.NO_ACTION: 1}


@pytest.mark.parametrize(
    "text, do",
    [
        (MSR + MSR, "joined"),
        (IOLOG3 + IOLOG3, "joined"),
        (MSR + "\0" * 80 + "\n", "NUL"),
        ("\0" * 80 + "\n" + MSR, "NUL"),
        (blk(1, "Q", "W", 8, 8) + blk(2, "Q", "W", 8, 8).replace("0.0", "0,0"), "point"),
        (blk(2, "Q", "W", 8, 8).replace("0.0", "0,0"), "point"),
        (MSR + MSR.splitlines()[1].replace(",38", ",-38") + "\n", "overflow"),
        (blk(1, "Q", "W", 8, 8) + blk(2, "Q", "W", -8, 8), "overflow"),
        (blk(1, "Q", "W", (1 << 32) - 8, 8) + blk(2, "Q", "W", 0, 8), "64 bits"),
        (blk(1, "Q", "W", (1 << 32) - 8, 16) + blk(2, "Q", "R", 0, 8) + blk(3, "Q", "W", 8, 8), "64 bits"),
    ],
)
def test_what_is_often_wrong_with_a_file_has_its_own_hint(tmp_path, text, do):
    with pytest.raises(UsageError) as refused:
        converted(tmp_path, text)
    assert do in refused.value.do and " in line " in refused.value.seen


def test_sector_numbers_beyond_32_bits_are_no_wrap(tmp_path):
    above, far = blk(2, "Q", "W", (1 << 32) + 8, 8), blk(3, "Q", "W", 8, 8)
    assert len(converted(tmp_path, blk(1, "Q", "W", (1 << 32) - 8, 16) + above + far)) == 3
    between = "".join(blk(2 + n, "Q", "W", 8000 + n, 8) for n in range(trace_convert.WRAP_LINES))
    assert len(converted(tmp_path, blk(1, "Q", "W", (1 << 32) - 8, 8) + between + blk(99, "Q", "W", 0, 8))) > 2


@pytest.mark.parametrize("head", ["", MSR, "x", BLKPARSE])
def test_a_sparse_line_of_2_gb_is_refused_without_being_read(tmp_path, head):
    (tmp_path / "s").write_text(head)
    os.truncate(tmp_path / "s", 2 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError) as refused:
            list(trace_convert.Conversion(tmp_path / "s", trace_convert.Asked()).windows())
        assert "NUL" in refused.value.do and tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_overwritten_events_are_counted(tmp_path):
    path = tmp_path / "source"
    path.write_text(FTRACE.format("2/9000") + issued(0, 0) + completed(9, 0))
    made = trace_convert.Conversion(path, trace_convert.Asked())
    list(made.windows())
    assert list(made.words()["left_out"].values()) == [8998]


def test_recording_behind_the_sums_of_another_one_is_refused(tmp_path):
    with pytest.raises(UsageError) as caught:
        converted(tmp_path, BLKPARSE + BLKPARSE)
    assert f"line {len(BLKPARSE.splitlines()) + 3} " in caught.value.seen


def test_trim_is_made_smaller_to_whole_blocks_and_counted_where_none_is_left(tmp_path):
    """The rest of its block was not trimmed."""
    path = tmp_path / "source"
    path.write_text(blk(1, "D", "D", 1, 30) + blk(2, "D", "D", 1, 6) + blk(3, "D", "W", 1, 6))
    made = trace_convert.Conversion(path, trace_convert.Asked(block_bytes=4096))
    rows = np.concatenate(list(made.windows()))[["offset_bytes", "length_bytes", "op"]].tolist()
    assert rows == [(4096, 8192, TRIM), (0, 4096, WRITE)] and list(made.words()["left_out"].values()) == [1]
