"""Files and questions that came from outside, 21 of them: traces, logs, SMART text, a warranty, a load. Each is read to
its values, or refused with what to do; none gives a wrong figure."""

import json
import subprocess

import pytest
from test_trace_convert import BLKPARSE, MSR
from test_trace_tables import CLOUD, DC_ONLY, FTRACE, PERF, SYSTOR, VSCSI_ROWS, converted, vscsi

from ssdrig import cli
from ssdrig.base.columns import chosen
from ssdrig.base.errors import UsageError
from ssdrig.load import trace_tables
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES
from ssdrig.plan import expand, grammar
from ssdrig.run import able

MIB = 1 << 20
# t/jobs/t0038.iolog of fio
IOLOG = "fio version 3 iolog\n30 /dev/null add\n10731 /dev/null open\n" + "".join(
    f"{10736 + 20 * n} /dev/null trim {4096 * n} 2147483648\n{10752 + 20 * n} /dev/null write {4096 * n} 4096\n"
    for n in range(10)
)
# traces/tpcc-small.trace of MQSim
TPCC = "938944000 13 93230992 32 0\n939855000 13 213913104 16 0\n941044000 13 305785200 16 1\n"
WEBSEARCH = "55575.9 0 20941264 16 1\n55578.2 0 20939840 16 1\n"  # SPC's, as DiskSim has it: ms
RWBS = "  dd-29480   [000] ..... 15631.667038: block_bio_queue: 259,0 WZS 0 + 8388608 [dd]\n"
SAMSUNG_840 = """\
smartctl 5.41 2011-06-09 r3365 [x86_64-linux-3.2.0-4-amd64] (local build)

=== START OF INFORMATION SECTION ===
Model Family:     Samsung based SSDs
Device Model:     Samsung SSD 840 Series
Serial Number:    S14CNEACA00000A
User Capacity:    250,059,350,016 bytes [250 GB]

=== START OF READ SMART DATA SECTION ===
SMART Attributes Data Structure revision number: 1
Vendor Specific SMART Attributes with Thresholds:
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
  9 Power_On_Hours          0x0032   098   098   000    Old_age   Always       -       {hours}
177 Wear_Leveling_Count     0x0013   015   015   000    Pre-fail  Always       -       {cycles}
"""
PLAN = """schema = 1
name = "sr"
title = "8K 70/30"
source = "StorageReview"
about = "reads and writes of 8 KiB, 70 to 30"
[[step]]
name = "purge"
do = "purge"
[[step]]
name = "fill"
do = "fill"
[[step]]
name = "mix"
do = "load"
pattern = "random"
read = 70
block = "8 KiB"
qd = 16
threads = 16
time = "60 s"
[[show]]
view = "table"
of = "mix"
value = ["iops", "lat_p999", "read_lat_p999", "write_lat_p999", "read_iops", "write_iops"]
"""


def ops(rows):
    return [row[3] for row in rows]


def fio(folder, *words):
    subprocess.run(["fio", "--name=own", "--thread", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def asked(capsys, *words) -> dict:
    capsys.readouterr()
    assert cli.main([*map(str, words)]) == 0
    return json.loads(capsys.readouterr().out)


def fios_iolog(tmp_path, capsys):
    rows, depths, _ = converted(tmp_path, IOLOG)
    assert len(rows) == 20 and rows[0] == (0, 0, 1 << 31, TRIM) and rows[1] == (16_000, 0, 4096, WRITE)
    assert depths is None


def iolog_of_depth_8(tmp_path, capsys):
    words = ("--ioengine=libaio", "--iodepth=8", "--filename=data", "--size=1M", "--bs=4k", "--rw=randwrite")
    fio(tmp_path, *words, "--write_iolog=log")
    rows, depths, words = converted(tmp_path, (tmp_path / "log").read_bytes())
    assert len(rows) == 256 and depths is None and words["depths_why"]


def mqsim(tmp_path, capsys):
    with pytest.raises(UsageError) as error:
        converted(tmp_path, TPCC)  # nanoseconds, or another unit
    columns = chosen([error.value.do.split()[1]], trace_tables.ROLES)
    rows, depths, _ = converted(tmp_path, TPCC, columns=columns)
    assert rows == [
        (0, 93230992 * 512, 16384, WRITE),
        (911_000, 213913104 * 512, 8192, WRITE),
        (2_100_000, 305785200 * 512, 8192, READ),
    ]
    assert depths is None


def disksim(tmp_path, capsys):
    rows, _, _ = converted(tmp_path, WEBSEARCH)
    assert rows == [(0, 20941264 * 512, 8192, READ), (2_300_000, 20939840 * 512, 8192, READ)]


def cloudphysics_table(tmp_path, capsys):
    rows, _, _ = converted(tmp_path, CLOUD)
    assert rows[0][1:] == (42932745 * 512, 512, WRITE) and ops(rows) == [WRITE, READ, FLUSH]


def vscsi_records(tmp_path, capsys):
    for version in (1, 2):
        rows, _, _ = converted(tmp_path, vscsi(version, VSCSI_ROWS))
        assert [row[:3] for row in rows[:2]] == [(0, 4096, 4096), (250_000, 64 * 512, 8192)]
        assert ops(rows) == [WRITE, READ, FLUSH]


def blkparse(tmp_path, capsys):
    rows, _, _ = converted(tmp_path, BLKPARSE)
    assert ops(rows) == [WRITE, FLUSH, FLUSH, WRITE, TRIM, READ]


def blkparse_flush(tmp_path, capsys):
    line = "259,0    2   20     0.{:09}  100  Q FWFSM 2048 + 17 [jbd2]\n"
    rows, _, _ = converted(tmp_path, line.format(1))
    assert ops(rows) == [FLUSH, WRITE] and rows[1][1:3] == (2048 * 512, 17 * 512)


def blkparse_issued_and_completed(tmp_path, capsys):
    rows, depths, words = converted(tmp_path, DC_ONLY)
    assert ops(rows) == [WRITE, READ] and depths == [1, 2] and words["service"]["reads"]["ios"] == 1


def ftrace_atomic(tmp_path, capsys):
    rows, depths, _ = converted(tmp_path, FTRACE)
    assert rows == [(0, 4096, 4096, WRITE)] and depths == [1]


def ftrace_with_its_head(tmp_path, capsys):
    assert FTRACE.startswith("# tracer: nop\n")
    ftrace_atomic(tmp_path, capsys)


def ftrace_with_other_events(tmp_path, capsys):
    assert "sched_wakeup" in FTRACE
    ftrace_atomic(tmp_path, capsys)


def perf(tmp_path, capsys):
    rows, depths, _ = converted(tmp_path, PERF)
    assert ops(rows) == [READ, WRITE] and depths == [1, 2]


def write_zeroes(tmp_path, capsys):
    rows, _, _ = converted(tmp_path, RWBS)
    assert set(ops(rows)) == {ZEROES} and sum(row[2] for row in rows) == 8388608 * 512


def systor(tmp_path, capsys):
    rows, _, words = converted(tmp_path, SYSTOR)
    assert rows[0][1:] == (899056122368, 131072, READ) and ops(rows) == [READ, WRITE, READ] and words["service"]


def msr(tmp_path, capsys):
    rows, _, _ = converted(tmp_path, MSR)
    assert rows == [(0, 383496192, 32768, READ), (1_332_052_600, 310983680, 512, WRITE)]


def fios_results(tmp_path, capsys):
    words = ("--ioengine=psync", "--filename=data", "--size=1M", "--bs=4k", "--rw=randrw", "--output=out.json")
    fio(tmp_path, *words, "--output-format=json+")
    answer = asked(capsys, "import", tmp_path / "out.json", "--runs", tmp_path / "runs", "--json")
    assert answer["jobs"] == ["own"] and cli.main(["report", answer["run"], "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["windows"]["all"]["ios"] == 256


def smart_as_text(tmp_path, capsys):
    """packet.company's 840: 849 cycles, later 910."""
    for cycles, hours in ((849, 9632), (910, 10_400)):
        (tmp_path / "smart.txt").write_text(SAMSUNG_840.format(cycles=cycles, hours=hours))
        wear = asked(capsys, "wear", "--smartctl", tmp_path / "smart.txt", "--json")
        assert (wear["pe_cycles_mean"], wear["power_on_hours"]) == (cycles, hours)
        assert wear["host_written_bytes"] is None and wear["unknown"]


def warranty_by_whichever_comes_first(tmp_path, capsys):
    """Seagate's 600: 72 TB or 3 years."""
    known = {"tbw": 72, "--rate": "40GB/day", "--years": "3", "--start": "2024-05-01"}
    options = [word for option, value in known.items() if option != "tbw" for word in (option, value)]
    for tbw in ("72", "72TB"):
        words = ("wear", "--smartctl", "tests/data/smartctl/sata-samsung.json", "--tbw", tbw, *options, "--json")
        wear = asked(capsys, *words)
        assert wear["limits"]["tbw_TB"] == 72 and wear["projection"]["warranty_end"] == "2027-05-01"
        assert wear["projection"]["rate_bytes_per_day"] == 40e9


def idle_of_desktop_and_notebook(tmp_path, capsys):
    drive = {"capacity_bytes": 1 << 30, "interface": "NVMe", "logical_block_bytes": 512, "raw_nand_bytes": None}
    plan = grammar.read(*grammar.find("idle-power"))
    acts = {act.path: act for act in expand.expand(plan, drive, frozenset({"rig", "aspm", "apst"}))}
    assert acts["desktop-link"].keys["aspm"] == "performance" and not acts["desktop"].not_run
    assert acts["mobile-link"].keys["aspm"] == "powersupersave" and not acts["mobile"].not_run
    without = {act.path: act.not_run for act in expand.expand(plan, drive, frozenset({"rig", "apst", "alpm"}))}
    assert "aspm" in without["desktop"] and "aspm" in able.WHY_NOT


def mix_with_its_percentiles_and_its_sides(tmp_path, capsys):
    plan = grammar.read(PLAN)
    (show,) = plan.shows
    assert set(show["value"]) >= {"lat_p999", "read_lat_p999", "write_lat_p999"}
    with pytest.raises(UsageError):
        grammar.read(PLAN.replace("lat_p999", "lat_p9"))


CASES = (
    *(fios_iolog, iolog_of_depth_8, mqsim, disksim, cloudphysics_table, vscsi_records, blkparse, blkparse_flush),
    *(blkparse_issued_and_completed, ftrace_atomic, ftrace_with_its_head, ftrace_with_other_events, perf, write_zeroes),
    *(systor, msr, fios_results, smart_as_text, warranty_by_whichever_comes_first, idle_of_desktop_and_notebook),
    mix_with_its_percentiles_and_its_sides,
)


@pytest.mark.parametrize("number", range(1, 22), ids=lambda number: f"{number}-{CASES[number - 1].__name__}")
def test_case_from_outside(number, tmp_path, capsys):
    CASES[number - 1](tmp_path, capsys)
