"""One load as the files of other programs: each writer makes what that program prints, by its documentation."""

import struct
from typing import NamedTuple

from ssdrig.load.traceform import READ

SECTOR = 512


class Io(NamedTuple):
    """Times in µs, whole tens of them; a place and a size in bytes, whole sectors."""

    begin_us: int
    end_us: int
    op: int
    offset: int
    size: int


def letter(io: Io) -> str:
    return "R" if io.op == READ else "W"


def word(io: Io) -> str:
    return "Read" if io.op == READ else "Write"


def staged(ios, line, stages) -> str:
    """A line of each I/O for each of its `stages`: (name, whether it is the end)."""
    marks = [(io.end_us if is_end else io.begin_us, is_end, name, io) for name, is_end in stages for io in ios]
    return "".join(line(name, t_us, io) for t_us, _, name, io in sorted(marks, key=lambda mark: (mark[0], not mark[1])))


def blkparse(stages):
    def line(name, t_us, io):
        at = f"{t_us // 10**6:5d}.{1000 * (t_us % 10**6):09d}"
        who = "[0]" if name == "C" else "[fio]"
        return f"  8,0    1 {9:8d} {at} {697:5d}  {name} {letter(io):>3} {io.offset // 512} + {io.size // 512} {who}\n"

    return lambda ios: staged(ios, line, stages) + "CPU0 (8,0):\n Reads Queued:           0,        0KiB\n"


def events(before, head="", other="", mark="block_"):
    def line(name, t_us, io):
        at = f"{t_us // 10**6}.{t_us % 10**6:06d}"
        size = {"rq_issue": f"{io.size} () ", "rq_complete": "() "}.get(name, "")
        rest = "[0]" if name == "rq_complete" else "[fio]"
        text = f"8,0 {letter(io)}S {size}{io.offset // 512} + {io.size // 512} {rest}"
        return f"{before.format(at=at)} {mark}{name}: {text}\n" + (f"{before.format(at=at)} {other}\n" if other else "")

    stages = (("rq_insert", False), ("rq_issue", False), ("rq_complete", True))
    return lambda ios: head + staged(ios, line, stages)


def by_end(ios):
    return sorted(ios, key=lambda io: io.end_us)


def biosnoop(more):
    def written(ios):
        text = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  " + " ".join([*more, "LAT(ms)"]) + "\n"
        rest = "".join({"P": "R ", "QUE(ms)": f"{0:7.2f} "}[name] for name in more)
        for io in by_end(ios):
            text += f"{io.end_us / 1e6:<11.6f} {'fio':<14} {9:<7} {'sda':<9} {letter(io)} {io.offset // 512:<10} "
            text += f"{io.size:<7}{rest}{(io.end_us - io.begin_us) / 1000:7.2f}\n"
        return text

    return written


def iosnoop(ios):
    lines = (
        f"{io.begin_us / 1e6:<15.6f} {io.end_us / 1e6:<15.6f} {'fio':<12} {9:<6} {letter(io):<4} {'8,0':<8} "
        f"{io.offset // 512:<12} {io.size:<6} {(io.end_us - io.begin_us) / 1000:8.2f}\n"
        for io in by_end(ios)
    )
    return "STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms\n" + "".join(lines)


def xperf(ios):
    columns = (
        "TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags"
    )
    text = f"BeginHeader\n DiskRead, {columns}\n DiskWrite, {columns}\n DiskReadInit, TimeStamp, IrpPtr\nEndHeader\n"
    for io in by_end(ios):
        text += f"  Disk{word(io)}Init, {io.begin_us}, 0x1\n" * (io.op == READ)
        text += f"  Disk{word(io)}, {io.end_us}, a (1), 2, 1, 0x1, 0x{io.offset:010x}, 0x{io.size:08x}, "
        text += f"{io.end_us - io.begin_us}, 0, 0x060043\n"
    return text


def per_line(line, head=""):
    return lambda ios: head + "".join(line(io) + "\n" for io in ios)


def seconds(us, digits=6):
    return f"{us // 10**6}.{us % 10**6 * 10 ** (digits - 6):0{digits}d}"


def vscsi(version):
    def record(n, io):
        code, sector = (0x28 if io.op == READ else 0x2A), io.offset // 512
        if version == 1:
            return struct.pack("<IIIHHQQ", n, io.size, 1, code, 1 << 8, sector, io.begin_us)
        return struct.pack("<HHIIIQQQ", code, 2 << 8, n, io.size, 1, sector, io.begin_us, io.end_us - io.begin_us)

    return lambda ios: b"".join(record(n, io) for n, io in enumerate(ios))


FTRACE = "             fio-697     [001] ..... {at}:"
PERF = "             fio   697/697   [001] {at}:            "
TRACE_CMD = "             fio-697   [001] {at}:"
WRITERS = {  # name: (writer, column map, whether the file states when an I/O ended, step of its times in µs)
    "blkparse": (blkparse((("Q", False), ("D", False), ("C", True))), "", True, 1),
    "blkparse D C": (blkparse((("D", False), ("C", True))), "", True, 1),
    "blkparse Q": (blkparse((("Q", False),)), "", False, 1),
    "ftrace": (events(FTRACE, "# tracer: nop\n#\n", "sched_wakeup: comm=x pid=1 prio=120"), "", True, 1),
    "perf script": (events(PERF, "", "syscalls:sys_enter_read: fd: 3", "block:block_"), "", True, 1),
    "trace-cmd": (events(TRACE_CMD, "cpus=2\n"), "", True, 1),
    "biosnoop": (biosnoop([]), "", True, 1),
    "biosnoop -P": (biosnoop(["P"]), "", True, 1),
    "biosnoop -QP": (biosnoop(["P", "QUE(ms)"]), "", True, 1),
    "iosnoop": (iosnoop, "", True, 1),
    "xperf": (xperf, "", True, 1),
    "SYSTOR": (
        per_line(
            lambda io: (
                f"{seconds(10**15 + io.begin_us, 9)},{seconds(io.end_us - io.begin_us, 9)},{letter(io)},0,"
                f"{io.offset},{io.size}"
            ),
            "Timestamp,Response,IOType,LUN,Offset,Size\n",
        ),
        "",
        True,
        1,
    ),
    "MSR": (
        per_line(
            lambda io: (
                f"{10**17 + 10 * io.begin_us},usr,0,{word(io)},{io.offset},{io.size},{10 * (io.end_us - io.begin_us)}"
            )
        ),
        "",
        True,
        1,
    ),
    "WPA": (
        per_line(
            lambda io: (
                f'{word(io)},"{io.size:,}","{io.begin_us / 1e6:,.6f}","{io.end_us / 1e6:,.6f}","{io.offset:,}",0'
            ),
            "IO Type,Size (B),Init Time (s),Complete Time (s),Min Offset,Disk\n",
        ),
        "",
        True,
        1,
    ),
    "Alibaba": (per_line(lambda io: f"3,{letter(io)},{io.offset},{io.size},{10**15 + io.begin_us}"), "", False, 1),
    "Tencent": (
        per_line(
            lambda io: f"{1538323200 + io.begin_us // 10**6},{io.offset // 512},{io.size // 512},{int(io.op != READ)},7"
        ),
        "",
        False,
        10**6,
    ),
    "SPC": (
        per_line(lambda io: f"0,{io.offset // 512},{io.size},{letter(io).lower()},{seconds(io.begin_us)}"),
        "",
        False,
        1,
    ),
    "FIU": (
        per_line(
            lambda io: (
                f"{10**14 + 1000 * io.begin_us} 9 fio {io.offset // 512} {io.size // 512} {letter(io)} 6 0 " + 32 * "a"
            )
        ),
        "",
        False,
        1,
    ),
    "CloudPhysics": (
        per_line(
            lambda io: (
                f"1,{9000 + io.begin_us // 10**6},{'28' if io.op == READ else '2a'},{io.size},{io.offset // 512}"
            ),
            "version,time,op,size,lbn\n",
        ),
        "",
        False,
        10**6,
    ),
    "vscsi 1": (vscsi(1), "", False, 1),
    "vscsi 2": (vscsi(2), "", False, 1),
    "DiskSim": (
        per_line(lambda io: f"{io.begin_us / 1000:.6f} 0 {io.offset // 512} {io.size // 512} {int(io.op == READ)}"),
        "",
        False,
        1,
    ),
    "MQSim": (
        per_line(lambda io: f"{1000 * io.begin_us} 0 {io.offset // 512} {io.size // 512} {int(io.op == READ)}"),
        "t=1:ns,disk=2,offset=3:sectors,size=4:sectors,op=5:read1",
        False,
        1,
    ),
    "DiskMon": (
        per_line(
            lambda io: f"1\t{seconds(io.begin_us)}\t0.00000000\t0\t{word(io)}\t{io.offset // 512}\t{io.size // 512}"
        ),
        "",
        False,
        1,
    ),
    "fio iolog": (
        per_line(
            lambda io: f"{io.begin_us} /dev/sdb {word(io).lower()} {io.offset} {io.size}",
            "fio version 3 iolog\n0 /dev/sdb add\n0 /dev/sdb open\n",
        ),
        "",
        False,
        1,
    ),
    "blkparse -f": (
        per_line(lambda io: f"{seconds(io.begin_us, 9)} {letter(io)}M {io.offset // 512} {io.size}"),
        "t=1:s,op=2:rwbs,offset=3:sectors,size=4:B",
        False,
        1,
    ),
    "any CSV": (
        per_line(
            lambda io: (
                f"x;{io.begin_us / 1000:.3f};{io.end_us / 1000:.3f};{io.offset // 4096};{io.size // 512};{letter(io)}"
            ),
            "who;from;to;page;n;what\n",
        ),
        "t=from:ms,end=to:ms,offset=page:blocks4k,size=n:sectors,op=what",
        True,
        1,
    ),
}
