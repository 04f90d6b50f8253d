"""Traces of others: each format's lines, hostile ones, and what is made of places and times."""

import errno
import gzip
import json
import random

import numpy as np
import pytest

from ssdrig import cli
from ssdrig.errors import UsageError
from ssdrig.load import traceform
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE
from ssdrig.trace import command, convert, formats

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
    rows = np.concatenate(list(convert.Conversion(path, convert.Asked(**more)).windows()))
    assert traceform.why_not(rows) is None
    return rows.tolist()


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
        found = formats.of(text.splitlines()[0])
        assert found and found.parse is getattr(formats, "jesd219" if name == "jesd" else name)
    for each in formats.FORMATS:
        assert each.parse(each.example)
    assert all(formats.of(line) is None for line in ("", "hello", "fio version 4 iolog", "1,2,3", "e 1"))


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
    monkeypatch.setattr(convert, "WINDOW_IOS", 50)
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
    assert not (tmp_path / "u").exists() and "gzip" in capsys.readouterr().err
    (tmp_path / "j").write_text(JESD)
    assert cli.main(["trace", "convert", str(tmp_path / "j"), str(tmp_path / "v"), "--no-trims", "--no-flushes"]) == 0
    assert traceform.read(tmp_path / "v")[1].tolist() == [(0, 524288, 4096, WRITE)]
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
    monkeypatch.setattr(command.os, "access", lambda path, mode: path != tmp_path)
    assert cli.main(words) == UsageError.exit_code and "one that cannot" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
