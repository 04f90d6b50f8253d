"""Traces as people have them: files of other programs, read to the exact time, place and depth, or refused with the way
to convert them."""

import bz2
import gzip
import json
import lzma
import random
import struct

import numpy as np
import pytest

from ssdrig import cli
from ssdrig.base.columns import chosen
from ssdrig.base.errors import UsageError
from ssdrig.load import trace_convert, trace_formats, trace_tables, traceform
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE

SECTOR = 512


def converted(tmp_path, text, **more):
    """(rows as (t_ns, offset, length, op), depths or None, header words)"""
    path = tmp_path / "source"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    made = trace_convert.Conversion(path, trace_convert.Asked(**more))
    rows, words = np.concatenate(list(made.windows())), made.words()
    assert traceform.why_not(rows) is None
    plain = rows[["t_ns", "offset_bytes", "length_bytes", "op"]].tolist()
    return plain, rows["depth"].tolist() if words["depths"] else None, words


def refused(tmp_path, text, **more) -> UsageError:
    with pytest.raises(UsageError) as caught:
        converted(tmp_path, text, **more)
    return caught.value


PERF = """\
# ========
# captured on    : Thu Jul  2 10:00:00 2026
#
     randread.pl  2522 [000]  6011.824759: block:block_rq_issue: 254,16 R 8192 () 7322848 + 16 [randread.pl]
 kworker/u16:3-e 1264/1264 [001]  6011.824800:                 sched:sched_switch: prev_comm=x
            ffffffff8113d1c9 blk_peek_request ([kernel.kallsyms])

     Chrome IO Thr  2520 [000]  6011.824866: block:block_rq_issue: 254,16 WFS 4096 () 100 + 8 none,0,0 [Chrome]
          swapper     0 [006]  6011.824900: block:block_rq_complete: 254,16 R () 7322848 + 16 [0]
          swapper     0 [006]  6011.824910: block:block_rq_complete: 254,16 WFS () 100 + 8 [0]
"""
TRACE_CMD = """\
cpus=2
CPU 1 is empty
              dd-29480 [000] 15631.667038: block_bio_queue:      7,0 WS 0 + 128 [dd]
              dd-29480 [000] 15631.667040: sched_wakeup:         comm=x pid=1
              dd-29480 [000] 15631.668035667: block_bio_queue:      7,0 D 128 + 128 [dd]
"""
FTRACE = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/4   #P:2
           <...>-81      [001] .....   587.000001: block_rq_issue: 259,0 WFSU 4096 () 8 + 8 be,0,4 [kworker/1:1H]
     kworker/0:0-10      [000] d..2.   587.000002: sched_wakeup: comm=x pid=1 prio=120 target_cpu=000
          <idle>-0       [000] ..s1.   587.000101: block_rq_complete: 259,0 WFSU () 8 + 8 be,0,4 [0]
"""
BLK_TRACER = """\
# tracer: blk
#
              dd-29480 [000] ..... 15631.667038:   8,0    Q   W 8 + 8 [dd]
              dd-29480 [000] ..... 15631.667039:   8,0    G   W 8 + 8 [dd]
              dd-29480 [000] ..... 15631.667040:   8,0    D   W 8 + 8 [dd]
          <idle>-0     [000] ..s1. 15631.667540:   8,0    C   W 8 + 8 [0]
"""
DC_ONLY = """\
  8,0    1        1     0.000001000   697  D   W 8 + 8 [fio]
  8,0    1        2     0.000002000   697  D   R 64 + 8 [fio]
  8,0    1        3     0.000003000     0  C   W 8 + 8 [0]
  8,0    1        4     0.000004000     0  C   R 64 + 8 [0]
"""
SYSTOR = """\
Timestamp,Response,IOType,LUN,Offset,Size
1456135200.013118000,0.000806000,R,0,899056122368,131072
1456135200.013200000,0.001000000,W,0,4096,8192
1456135200.013300000,,,0,8192,4096
1456135200.014100000,0.000100000,R,0,0,512
"""
TENCENT = "1538323200,12910952,128,0,1063\n1538323201,0,8,1,1063\n"
SPC = "0,20941264,8192,W,0.551706\n0,20939840,8192,w,0.554041\n0, 3072, 512, R, 0.570000\n"
FIU = (
    "89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n"
    "89968195892462 20782 gzip 8 8 W 6 0 56f11b711d91a065a2b6458eca924523\n"
)
DISKSIM = "48.513000 0 524288 16 1\n48.613500 0 524304 8 0\n"
MQSIM = "4851300 1 524288 16 0\n4864300 1 524304 16 1\n"
CLOUD = "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33899,28,6656,40409911\n1,33899,35,0,0\n1,33900,12,36,0\n"
DISKMON = "0\t0.551706\t0.00012207\t0\tWrite\t6237095\t8\n1\t0.551800\t0.00000000\t0\tRead\t8\t16\n"
BIOSNOOP = """\
TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)
0.000000    kworker/23:1   9126           R 18446744073709551615 0         0.61
1.774198    ThreadPoolFore 5270   nvme0n1 W 520198144  225280    0.48
1.774381    Chrome IO Thr  686    nvme0n1 WS 490161296  65536     0.50
1.774609    ?              0              R 0          8         0.21
1.775000    jbd2/nvme0n1p3 686    nvme0n1 R 8          4096      0.10
"""
IOSNOOP = """\
STARTs          ENDs            COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
12.000100       12.000600       dd a b       9      W    8,0      2048         4096       0.50
12.000200       12.000300       dd           9      RA   8,0      64           8192       0.10
"""
ETW = """\
BeginHeader
              DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
             DiskWrite,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
          DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr
             DiskFlush,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,                           ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri
EndHeader
OS Version: 10.0.19041, Trace Start: 132000000000000000, Trace Length: 5 sec
          DiskReadInit,       8329,        xperf.exe (3984),      11844, 0xffffe288b23f1b20
              DiskRead,       8612,        xperf.exe (3984),      11844,   1, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000,         283,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, "C:\\$Mft"
             DiskWrite,       8700,        xperf.exe (3984),      11844,   1, 0xffffe288b23f1b20, 0x0000002000, 0x00000200,         100,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, "C:\\a, b"
             DiskFlush,       9000,        xperf.exe (3984),      11844,   1, 0xffffe288b23f1b20,         50,        0, 0x060043,         283,       3
"""  # noqa: E501


def vscsi(version: int, rows) -> bytes:
    """Records of (t_us, SCSI code, first sector, bytes)."""
    if version == 1:
        made = [
            struct.pack("<IIIHHQQ", n, size, 1, code, 1 << 8, lbn, t) for n, (t, code, lbn, size) in enumerate(rows)
        ]
    else:
        made = [
            struct.pack("<HHIIIQQQ", code, 2 << 8, n, size, 1, lbn, t, 5) for n, (t, code, lbn, size) in enumerate(rows)
        ]
    return b"".join(made)


VSCSI_ROWS = [(1_000_000, 0x2A, 8, 4096), (1_000_250, 0x28, 64, 8192), (1_000_300, 0x35, 0, 0), (1_000_400, 0, 0, 0)]
SAME_SECOND = [(0, 0, 4096, WRITE), (250_000, 0, 8192, READ)]


@pytest.mark.parametrize(
    "text, rows, depths",
    [
        (PERF, [(0, 7322848 * SECTOR, 8192, READ), (107_000, 100 * SECTOR, 4096, WRITE)], [1, 2]),
        (TRACE_CMD, [(0, 0, 65536, WRITE), (997_667, 65536, 65536, TRIM)], None),
        (FTRACE, [(0, 4096, 4096, WRITE)], [1]),
        (BLK_TRACER, [(0, 4096, 4096, WRITE)], [1]),
        (DC_ONLY, [(0, 4096, 4096, WRITE), (1000, 32768, 4096, READ)], [1, 2]),
        (SYSTOR, [(0, 899056122368, 131072, READ), (82_000, 4096, 8192, WRITE), (982_000, 0, 512, READ)], [1, 2, 2]),
        (
            SYSTOR.partition("\n")[2],
            [(0, 899056122368, 131072, READ), (82_000, 4096, 8192, WRITE), (982_000, 0, 512, READ)],
            [1, 2, 2],
        ),
        (TENCENT, [(0, 12910952 * SECTOR, 65536, READ), (10**9, 0, 4096, WRITE)], None),
        (
            SPC,
            [
                (0, 20941264 * SECTOR, 8192, WRITE),
                (2_335_000, 20939840 * SECTOR, 8192, WRITE),
                (18_294_000, 3072 * SECTOR, 512, READ),
            ],
            None,
        ),
        (FIU, [(0, 283193184 * SECTOR, 4096, READ), (100_000, 4096, 4096, WRITE)], None),
        (DISKSIM, [(0, 524288 * SECTOR, 8192, READ), (100_500, 524304 * SECTOR, 4096, WRITE)], None),
        (
            CLOUD,
            [(0, 42932745 * SECTOR, 512, WRITE), (10**9, 40409911 * SECTOR, 6656, READ), (10**9, 0, 0, FLUSH)],
            None,
        ),
        (DISKMON, [(0, 6237095 * SECTOR, 4096, WRITE), (94_000, 4096, 8192, READ)], None),
        (
            BIOSNOOP,
            [
                (0, 520198144 * SECTOR, 225280, WRITE),
                (163_000, 490161296 * SECTOR, 65536, WRITE),
                (1_182_000, 4096, 4096, READ),
            ],
            [1, 2, 1],
        ),
        (IOSNOOP, [(0, 2048 * SECTOR, 4096, WRITE), (100_000, 64 * SECTOR, 8192, READ)], [1, 2]),
        (ETW, [(0, 0x018F0B8000, 4096, READ), (271_000, 0x2000, 512, WRITE), (621_000, 0, 0, FLUSH)], [1, 2, 1]),
        (vscsi(1, VSCSI_ROWS), [(0, 4096, 4096, WRITE), (250_000, 32768, 8192, READ), (300_000, 0, 0, FLUSH)], None),
        (vscsi(2, VSCSI_ROWS), [(0, 4096, 4096, WRITE), (250_000, 32768, 8192, READ), (300_000, 0, 0, FLUSH)], None),
    ],
    ids=(
        "perf trace-cmd ftrace blk-tracer D-and-C systor systor-bare tencent spc fiu disksim cloudphysics diskmon "
        "biosnoop iosnoop etw vscsi1 vscsi2"
    ).split(),
)
def test_files_of_other_programs_are_read_to_their_times_places_and_depths(tmp_path, text, rows, depths):
    seen, seen_depths, words = converted(tmp_path, text)
    assert seen == rows
    assert seen_depths == depths
    assert bool(words["depths"]) != bool(words["depths_why"])


def test_a_table_in_another_order_of_columns_is_read_by_a_map(tmp_path):
    text = "who;when;what;where;how much\nx;0,001;W;16;2\ny;0,0035;R;0;1\n"
    columns = chosen(["t=when:s,offset=4:sectors", "size=how much:sectors,op=what"], trace_tables.ROLES)
    assert converted(tmp_path, text, columns=columns)[0] == [(0, 8192, 1024, WRITE), (2_500_000, 0, 512, READ)]
    columns = chosen(["t=1:ns,disk=2,offset=3:sectors,size=4:sectors,op=5:read1"], trace_tables.ROLES)
    rows = [(0, 524288 * SECTOR, 8192, WRITE), (13_000, 524304 * SECTOR, 8192, READ)]
    assert converted(tmp_path, MQSIM, columns=columns)[0] == rows


def test_codes_of_an_unknown_version_are_not_taken_as_hexadecimal(tmp_path):
    """40 and 42 are a read and a write in decimal; in hexadecimal nothing, and an UNMAP."""
    text = "version,time,op,size,lbn\n4,7,42,512,16\n4,8,40,4096,8\n"
    assert "line 2" in refused(tmp_path, text).seen
    columns = chosen(["t=time:s,op=op:scsi10,size=size:B,offset=lbn:sectors"], trace_tables.ROLES)
    assert [row[3] for row in converted(tmp_path, text, columns=columns)[0]] == [WRITE, READ]


def test_a_table_whose_headings_name_their_units_needs_no_map(tmp_path):
    text = (
        "IO Type,Init Time (ms),Complete Time (ms),Min Offset,Size (B),Disk\n"
        "Write,1.5,2.5,4096,8192,0\nRead,2.0,2.25,0,512,0\n"
    )
    seen, depths, _ = converted(tmp_path, text.replace("Complete Time", "End Time"))
    assert seen == [(0, 4096, 8192, WRITE), (500_000, 0, 512, READ)] and depths == [1, 2]
    when = "op,time,offset,size\nW,2026-11-28T10:00:00.000000250Z,0,512\nW,2026-11-28T11:00:00.5+01:00,0,512\n"
    columns = chosen(["t=time:utc,offset=offset:B,size=size:B,op=op"], trace_tables.ROLES)
    assert converted(tmp_path, when, columns=columns)[0][1][0] == 499_999_750


@pytest.mark.parametrize(
    "text, way",
    [
        (MQSIM, "--column"),
        ("TIME(ms)     DISK ID        COMM             PID    LAT(ms)\n", "biosnoop"),
        ("COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n", "iosnoop -ts"),
        ("47, 6556, 0, 1048576, 0, 0\n", "write_iolog"),
        ('{\n  "fio version" : "fio-3.33"\n}\n', "write_iolog"),
        ('"Time of Day","Process Name","PID"\n', "xperf"),
        ("Event Name,       Type,   Event ID,    Version\n", "xperf"),
        ("Attaching 3 probes...\n", "biosnoop"),
        ("[12:00:01.5] (+0.000001) host block_rq_issue: { cpu_id = 0 }, { dev = 8388608 }\n", "trace-cmd"),
        ("     0.000 fio/9 block:block_rq_issue(dev: 8388608, sector: 8, nr_sector: 8)\n", "perf script"),
        (b"\x07tae" + bytes(60), "blkparse"),
        (b"PERFILE2" + bytes(60), "perf script"),
        (b"\x17\x08Dtracing6" + bytes(60), "trace-cmd report"),
        (b"\x28\xb5\x2f\xfd" + bytes(60), "zstd"),
        (b"PK\x03\x04" + bytes(60), "unzip"),
        ("\ufeffBeginHeader\n".encode("utf-16-le"), "iconv"),
        ("419,W,8192,16384,15\n".encode("utf-16-le"), "iconv"),
        ("\ufeff8,0 0 1 0.0 9 D W 8 + 8 [x]\n".encode("utf-16-be"), "iconv"),
        (gzip.compress(gzip.compress(b"e 1 8\n", mtime=0), mtime=0), "gzip -d"),
        ("time,offset,size,type\n1,2,3,R\n", "--column"),
        ("hello\n", "--column"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_to_convert_it(tmp_path, text, way):
    error = refused(tmp_path, text)
    assert way in error.do and "line 1" in error.seen


@pytest.mark.parametrize(
    "map, way",
    [
        ("t=when:s", "--column"),
        ("t=when:parsec,offset=where:B,size=size:B,op=what", "--column"),
        ("t=nobody:s,offset=where:B,size=size:B,op=what", "--column"),
        ("end=when:s,offset=where:B,size=size:B,op=what", "--column"),
        ("offset=where:B,size=99:B,op=what", "--column"),
    ],
)
def test_a_map_that_does_not_fit_is_one_error(tmp_path, map, way):
    error = refused(tmp_path, "when,where,size,what\n1,0,512,R\n", columns=chosen([map], trace_tables.ROLES))
    assert way in error.do
    with pytest.raises(UsageError, match="--column"):
        chosen(["size"], trace_tables.ROLES)


def test_numbers_of_a_table_keep_their_decimal_mark_whatever_separates_its_fields(tmp_path):
    heading = ["IO Type", "Size (B)", "Init Time (s)", "Complete Time (s)", "Min Offset", "Disk"]
    begins = [1.0001, 1.5, 2.000100, 1002.25]
    rows = [("Write", 4096, at, at + 0.0002, f"0x{4096 * n:x}", 0) for n, at in enumerate(begins)]
    times = [round(1e9 * (at - begins[0])) for at in begins]
    for mark, decimal, group in ((";", ".", ""), ("\t", ".", ""), (";", ",", ""), (",", ".", ",")):

        def cell(value):
            text = f"{value:,.6f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
            text = text.replace(",", "_").replace(".", decimal).replace("_", group)
            return f'"{text}"' if mark in text else text

        text = mark.join(heading) + "\n" + "".join(mark.join(map(cell, row)) + "\n" for row in rows)
        seen, depths, words = converted(tmp_path, text)
        assert seen == [(at, 4096 * n, 4096, WRITE) for n, at in enumerate(times)], (mark, decimal, group)
        assert depths == [1] * 4 and words["service"]["writes"]["mean_us"] == pytest.approx(200)
    grouped = ";".join(heading) + "\nWrite;4.096;1,5;1,6;0x0;0\n"
    assert "line 2" in refused(tmp_path, grouped).seen  # 4.096 or 4096
    mixed = ";".join(heading) + "\nWrite;4096;1,5;1,6;0x0;0\nWrite;4096;1.600;1,7;0x0;0\n"
    assert "line 3" in refused(tmp_path, mixed).seen
    mixed = ";".join(heading) + "\nWrite;4096;1.5;1.6;0x0;0\nWrite;4096;1,6;1,7;0x0;0\n"
    assert "line 3" in refused(tmp_path, mixed).seen


@pytest.mark.parametrize("flags", ["", "P", "Q", "PQ"])
def test_biosnoop_is_read_by_the_columns_of_its_heading(tmp_path, flags):
    more = ["P"] * ("P" in flags) + ["QUE(ms)"] * ("Q" in flags) + ["LAT(ms)"]
    text = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  " + " ".join(more) + "\n"
    sizes = [512, 1 << 20, 4096]
    for n, size in enumerate(sizes):
        rest = ("SR?"[n] + " ") * ("P" in flags) + "   0.01 " * ("Q" in flags) + "   0.50"
        text += f"{n + 0.5:<11.6f} {'a b':<14} {9:<7} {'nvme0n1':<9} {'RWW'[n]} {8 * n:<10} {size:<7}{rest}\n"
    seen, depths, words = converted(tmp_path, text)
    assert seen == [(10**9 * n, 4096 * n, size, WRITE if n else READ) for n, size in enumerate(sizes)]
    assert depths == [1, 1, 1] and words["service"]["writes"]["mean_us"] == pytest.approx(500)
    long = text + f"9.0 x 1 nvme0n1 R 0 {64 << 20} {'S ' * ('P' in flags)}{'0.01 ' * ('Q' in flags)}0.5\n"
    assert "discards" in refused(tmp_path, long).seen


def test_bytes_in_the_columns_of_disksim_are_refused_with_the_map(tmp_path):
    text = "0.1 0 4096 8192 1\n0.2 0 12288 4096 0\n"
    assert "--column" in refused(tmp_path, text).do
    columns = chosen(["t=1:ms,disk=2,offset=3:B,size=4:B,op=5:read1"], trace_tables.ROLES)
    assert converted(tmp_path, text, columns=columns)[0] == [(0, 4096, 8192, READ), (100_000, 12288, 4096, WRITE)]


@pytest.mark.parametrize(
    "name", ["block_rq_insert", "block_rq_merge", "block_rq_requeue", "block_io_start", "block_dirty_buffer"]
)
def test_other_events_of_the_block_layer_are_passed_over(tmp_path, name):
    event = "  fio-9 [001] ..... 587.00000{}: {}: 259,0 W {}() 8 + 8 be,0,4 [fio]\n"
    text = event.format(1, name, "4096 ") + event.format(2, "block_rq_issue", "4096 ")
    text += event.format(3, "block_rq_complete", "")
    seen, depths, words = converted(tmp_path, "# tracer: nop\n#\n" + text)
    assert seen == [(0, 4096, 4096, WRITE)] and depths == [1]
    assert words["service"]["writes"]["max_us"] == 1
    assert converted(tmp_path, text)[0] == seen  # as perf script and trace-cmd, without a head


@pytest.mark.parametrize(
    "line",
    [
        "  8,0    1  {n}     0.00000{n}000     0  C   W 8 + 8 [0]\n",
        "swapper 0 [006] 5.00000{n}: block:block_rq_complete: 8,16 RM () 64 + 8 [0]\n",
    ],
)
def test_ends_alone_are_refused_with_what_to_record(tmp_path, line):
    error = refused(tmp_path, "".join(line.format(n=n) for n in range(3)))
    assert "block_rq_issue" in error.do and "--device" not in error.do


def test_a_comment_before_the_first_line_names_no_format(tmp_path):
    heading = "#\tTime\tDuration (s)\tDisk\tRequest\tSector\tLength\n"
    assert converted(tmp_path, heading + DISKMON)[0] == converted(tmp_path, DISKMON)[0]
    assert converted(tmp_path, "# made by x\n" + SYSTOR)[0] == converted(tmp_path, SYSTOR)[0]
    header = "device_id,opcode,offset,length,timestamp\n"
    assert converted(tmp_path, header + "7,R,1024,2048,1000000\n")[0] == [(0, 1024, 2048, READ)]


def test_what_the_drive_never_answered_is_left_out_and_counted(tmp_path, capsys):
    (tmp_path / "s").write_text(SYSTOR)
    assert cli.main(["trace", "convert", str(tmp_path / "s"), str(tmp_path / "t"), "--json"]) == 0
    header = json.loads(capsys.readouterr().out)
    assert list(header["left_out"].values()) == [1] and header["step_ns"] == 1000 and header["ios"] == 3


def drawn(seed: int, n=2000):
    """(begin_us, end_us) of n I/Os in the order of their begins, no two at one time."""
    rng = random.Random(seed)
    begins = sorted(rng.sample(range(1, 40 * n), n))
    return [(begin, begin + rng.choice([20, 80, 400, 6000])) for begin in begins]


def by_end(plan):
    return sorted(enumerate(plan), key=lambda row: row[1][1])


@pytest.mark.parametrize("seed", range(3))
def test_depths_of_files_in_the_order_of_completions_are_those_of_the_begins(tmp_path, seed):
    plan = drawn(seed)
    expected = [sum(b <= begin < e for b, e in plan[max(0, n - 600) : n + 1]) for n, (begin, _) in enumerate(plan)]
    heading = ETW.partition("EndHeader\n")[0] + "EndHeader\n"
    etw = heading + "".join(
        f"DiskRead, {e}, a (1), 1, 1, 0x1, 0x{4096 * n:x}, 0x1000, {e - b}, 0, 0x0, 1, 3, Original, 0x0, x\n"
        for n, (b, e) in by_end(plan)
    )
    snoop = (
        BIOSNOOP.partition("\n")[0]
        + "\n"
        + "".join(f"{e / 1e6:.6f} fio 9 sda R {8 * n} 4096 {(e - b) / 1e3:.3f}\n" for n, (b, e) in by_end(plan))
    )
    systor = (
        SYSTOR.partition("\n")[0]
        + "\n"
        + "".join(f"1456135200.{b:09},{(e - b) / 1e9:.9f},R,0,{4096 * n},4096\n" for n, (b, e) in enumerate(plan))
    )
    for text in (etw, snoop, systor):
        rows, depths, _ = converted(tmp_path, text)
        assert [row[1] for row in rows] == [4096 * n for n in range(len(plan))]
        assert depths == expected and max(expected) > 20


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_compressed_traces_are_read(tmp_path, pack):
    assert converted(tmp_path, pack(SPC.encode()))[0] == converted(tmp_path, SPC)[0]
    assert "fetch" in refused(tmp_path, pack(SPC.encode())[:-20]).do


def test_a_file_of_windows_begins_with_a_mark_and_ends_lines_with_returns(tmp_path):
    text = b"\xef\xbb\xbf" + SYSTOR.replace("\n", "\r\n").encode()
    assert converted(tmp_path, text)[0] == converted(tmp_path, SYSTOR)[0]


@pytest.mark.parametrize("text", [SYSTOR, SPC, TENCENT, FIU, DISKSIM, CLOUD, DISKMON, BIOSNOOP, IOSNOOP, ETW, PERF])
def test_a_damaged_table_is_a_trace_that_can_be_played_or_one_error(tmp_path, text):
    rng, source = random.Random(text), text.encode()
    for _ in range(60):
        data = bytearray(source)
        at = rng.randrange(len(data))
        how = rng.randrange(3)
        if how == 0:
            data[at] = rng.choice(b"0123456789,\t .-x")
        elif how == 1:
            del data[at : at + rng.randint(1, 20)]
        else:
            data[at:at] = rng.choice([b"9" * 30, b"-", b"\n", b",", b"0", b"e+9", b"1e99999", b'"', b"\x1b[2J"])
        try:
            converted(tmp_path, bytes(data))
        except UsageError as error:
            assert " in line " in error.seen and "\x1b" not in str(error)


def test_a_record_that_is_cut_short_is_one_error(tmp_path):
    assert "record" in refused(tmp_path, vscsi(1, VSCSI_ROWS)[:-3]).expected
    unmap = vscsi(2, [*VSCSI_ROWS, (1_000_500, 0x42, 0, 24)])
    assert "UNMAP" in refused(tmp_path, unmap).seen


def test_the_names_of_all_formats_differ():
    names = trace_formats.names()
    assert len(set(names)) == len(names) >= 19


def test_service_times_of_the_original_are_shown_beside_ours(tmp_path, capsys):
    plan = drawn(7)
    lasts_us = np.array([e - b for b, e in plan])
    marks = sorted([(b, "D", n) for n, (b, _) in enumerate(plan)] + [(e, "C", n) for n, (_, e) in enumerate(plan)])
    staged = "".join(
        f"  8,0    1  1   {t // 10**6}.{t % 10**6:06}000  697  {a}   {'W' if n % 4 else 'R'} {8 * n} + 8 [fio]\n"
        for t, a, n in marks
    )
    systor = "".join(
        f"1456135200.{1000 * b:09},{(e - b) / 1e6:.9f},{'W' if n % 4 else 'R'},0,{4096 * n},4096\n"
        for n, (b, e) in enumerate(plan)
    )
    read = np.arange(len(plan)) % 4 == 0
    for text in (staged, systor):
        service = converted(tmp_path, text)[2]["service"]
        for name, mine in (("reads", read), ("writes", ~read)):
            of = service[name]
            assert of["ios"] == mine.sum()
            assert of["mean_us"] == pytest.approx(lasts_us[mine].mean())
            assert of["max_us"] == lasts_us[mine].max()
            for key, share in (("p50_us", 0.5), ("p99_us", 0.99)):
                assert of[key] == pytest.approx(np.quantile(lasts_us[mine], share, method="inverted_cdf"), rel=0.012)
    assert converted(tmp_path, SPC)[2]["service"] is None
    (tmp_path / "s").write_text(systor)
    assert cli.main(["trace", "convert", str(tmp_path / "s"), str(tmp_path / "t")]) == 0
    capsys.readouterr()
    assert cli.main(["trace", "show", str(tmp_path / "t")]) == 0
    assert capsys.readouterr().out.count("original") == 2


_ETW = "".join(
    f"      Disk{kind},  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, "
    "ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,  FileObject, FileName\n"
    for kind in ("Read", "Write")
)


def etw(process="a.exe ( 12)", offset="0x1000", length="0x2000", elapsed="283"):
    line = f"     DiskWrite, 8612, {process}, 11844, 0xffff8a0f, {offset}, {length}, {elapsed}, 0, 0x60043, 283\n"
    return f"BeginHeader\n{_ETW}EndHeader\n{line}"


@pytest.mark.parametrize("wrong", [{"offset": "-4096"}, {"length": "-4096"}, {"elapsed": "-283"}])
def test_negative_number_of_an_etw_event_is_refused(tmp_path, wrong):
    assert "line 5" in refused(tmp_path, etw(**wrong)).seen


def test_comma_in_the_name_of_an_etw_process_moves_no_column(tmp_path):
    rows, depths, _ = converted(tmp_path, etw("a, b (x), c.exe ( 12)"))
    assert rows == [(0, 4096, 8192, WRITE)] and depths == [1]


def test_sectors_in_a_table_without_units_are_not_taken_as_bytes(tmp_path):
    error = refused(tmp_path, "time_us,op,lba,length\n1,W,0,8\n2,W,8,8\n")
    assert "--column" in error.do and "line 2" in error.seen


def test_devices_of_the_fiu_traces_are_told_apart_by_both_numbers(tmp_path):
    line = "{} 20782 gzip 8 8 W {} 0 56f11b711d91a065a2b6458eca924523\n"
    text = line.format(89968195792462, 6) + line.format(89968195792463, 8)
    assert "--device" in refused(tmp_path, text).do
    assert converted(tmp_path, text, device="8,0")[0] == [(0, 4096, 4096, WRITE)]


def test_unmap_is_left_out_by_the_option_that_its_refusal_names(tmp_path):
    text = "1,33898,42,24,0\n1,33899,2a,4096,8\n"
    assert "--no-trims" in refused(tmp_path, text).do
    assert converted(tmp_path, text, leave_out=(TRIM,))[0] == [(0, 4096, 4096, WRITE)]


@pytest.mark.parametrize(
    "text, whole",
    [
        ("  8,0 0 1 0.000000000 697 D W 8 + 8 [fio]\n  8,0 0 2 0.1 697 D W 16 + 800"[:-2], 1),
        ("0,8,4096,W,0.551706\n0,16,4096,W,0.554041\n0,16,4096,W,0.5", 2),
        ("fio version 3 iolog\n10 /dev/x write 0 4096\n40 /dev/x write 4096 409", 1),
    ],
)
def test_last_line_without_an_end_is_left_out_and_counted(tmp_path, text, whole):
    rows, _, words = converted(tmp_path, text)
    assert len(rows) == whole and list(words["left_out"].values()) == [1]


def test_empty_file_is_not_blamed_on_a_device(tmp_path):
    assert "--device" not in refused(tmp_path, "").do
