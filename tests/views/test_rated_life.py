"""jesd219-enterprise: its rule, WAF -> TBW -> DWPD, the job that fio gets, and a run of known counters."""

import json
import math
from dataclasses import replace

import json_documents
import numpy as np
import pytest
from synthetic_plan import Writer

from ssdrig.base.errors import UsageError
from ssdrig.drive.wear import endurance
from ssdrig.load.fiojob import job_file
from ssdrig.plan import grammar
from ssdrig.plan.rules import ends, steady, steady_wa, student
from ssdrig.reading import table
from ssdrig.report import page, screen
from ssdrig.run import prepare
from ssdrig.views import documents
from ssdrig.views.context import Context
from ssdrig.views.life import figures as life_figures
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_TLC

GB, MIX = 10**9, {"4 KiB": 77, "8 KiB": 10, "16 KiB": 7, "32 KiB": 3, "64 KiB": 3}


def test_the_range_of_five_windows_is_held_against_ten_percent():
    assert steady_wa.verdict([2.1, 2.0, 1.9, 2.0, 2.0])["passed"] is True  # exactly 10 %
    assert steady_wa.verdict([2.11, 2.0, 1.9, 2.0, 1.99])["passed"] is False
    assert steady_wa.verdict([9, 9, 2.1, 2.0, 1.9, 2.0, 2.0])["passed"] is True  # of the last five
    unknown = steady_wa.verdict([2.0, float("nan"), 2, 2, 2])
    assert unknown["passed"] is None and unknown["error_percent"] is None
    far = steady.words(steady_wa.verdict([2.11, 2.0, 1.9, 2.0, 1.99]))
    assert far == "range 10 % of 10 %"


def test_an_average_that_is_known_ends_it_too():
    waves = [2 + 0.15 * math.sin(i) for i in range(60)]
    few, many = steady_wa.verdict(waves[:10]), steady_wa.verdict(waves)
    assert not few["passed"] and few["error_percent"] > 2 and few["used"] == 5
    assert many["passed"] and many["range_percent"] > 10 and many["error_percent"] <= 2 and many["used"] == 60
    for freedom, t in ((3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)):
        assert student.t(freedom) == pytest.approx(t, rel=0.01)


def test_the_bar_holds_the_mean_as_often_as_it_says():
    rng, held = np.random.default_rng(5), 0
    for _ in range(400):
        seen = rng.normal(2, 0.1, 5)
        held += abs(seen.mean() - 2) <= steady_wa.error_percent(seen) / 100 * seen.mean()
    assert 368 <= held <= 392


def test_verdicts_of_older_runs_are_held_against_the_pts():
    old = {"rule": steady.RULE, "range_percent": 12.0, "slope_percent": 3.0}
    assert steady.limits_of(old) == steady.PTS and steady.words(old) == "range 12 % of 20 %, slope 3 % of 10 %"
    assert ends.tracked({"wa": [1.0]}, "wa")["wa"]["rule"] == steady_wa.LIMITS.rule


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('{ steady = "wa", track = ["iops"] }', "one of wa"),
        ('{ steady = "pts", track = ["wa"] }', "one of iops"),
        ('{ steady = "wa", value = "iops" }', "pts or never together with value"),
    ],
)
def test_the_rule_of_wear_is_of_wear_alone(rule, words):
    text, where = grammar.find("jesd219-enterprise")
    with pytest.raises(UsageError, match=words):
        grammar.read(text.replace('{ steady = "wa", track = ["wa"], from = 4 }', rule), where)


def test_fio_gets_sizes_zones_and_places_of_jesd219():
    drive = {"interface": "NVMe", "capacity_bytes": 10**12, "raw_nand_bytes": None, "time_dilation": 1}
    prepared = prepare.prepare("jesd219-enterprise", drive | {"logical_block_bytes": 512}, "512")
    text = job_file(next(job for act, job in prepare.jobs(prepared, "/dev/nvme0n1") if act.do == "load"))
    sizes = "4096/67:8192/10:16384/7:512/4:32768/3:65536/3:1024/1:1536/1:2048/1:2560/1:3072/1:3584/1"
    for option in (f"bssplit={sizes}", "blockalign=4096", "random_distribution=zoned:50/5:30/15:20/80", "iodepth=64"):
        assert f"{option}\n" in text
    assert "numjobs=4\n" in text and "rw=randwrite\n" in text and f"io_size={10**12 // 4 // 4}\n" in text
    with pytest.raises(UsageError, match="blocks of 4096 bytes"):
        prepare.prepare("jesd219-enterprise", drive | {"logical_block_bytes": 4096}, "512")
    quick = prepare.prepare("jesd219-enterprise", drive | {"logical_block_bytes": 4096})
    assert [act.repeat.least for act in quick.acts if act.repeat] == [8]  # two drive writes
    small = replace(next(job for _, job in prepare.jobs(quick, "/dev/x") if job.blocks), block_bytes=512)
    small = replace(small, blocks=((512, 50), (1024, 50)))
    assert "blockalign=512\n" in job_file(small)


TEXT = grammar.find("jesd219-enterprise")[0]


def run_of(tmp_path, wafs, counted=True):
    """A run of rounds with this write amplification each, 4 GB a round."""
    writer = Writer(tmp_path, TEXT, "quick")
    host, nand = 10 * GB, 30 * GB
    writer.step("purge", 1)
    writer.load("fill", [1000] * 3, 1.0, block=131072)
    held = []
    for number, waf in enumerate(wafs, 1):
        writer.poll("round", host, nand if counted else 0)
        writer.load("rounds/write", [1000] * 4, 2.0, folder=f"rounds/write/r{number:02}", round=number)
        host, nand = host + 4 * GB, nand + round(waf * 4 * GB)
        held.append(waf)
        verdict = ends.tracked({"wa": held[3:]}, "wa")
        writer.event("round", step="rounds", round=number, steady=bool(verdict["wa"]["passed"]), tracked=verdict)
    writer.poll("round", host, nand if counted else 0)
    return writer.end()


def test_a_run_says_waf_tbw_and_dwpd(tmp_path):
    wafs = [1.2, 1.9, 2.6, 2.52, 2.48, 2.5, 2.55, 2.45]
    table_ = table.load(run_of(tmp_path, wafs))
    table_.data.header["drive"] |= {"rated_pe_cycles": 1000, "rated_write_bytes": 3 * 10**12, "rated_years": 5}
    life = life_figures.of(table_, "rounds/write")
    assert life.rounds == (4, 5, 6, 7, 8) and life.steady
    assert life.waf == pytest.approx(2.5, rel=1e-3)
    scatter = 2.776 * np.std(wafs[3:], ddof=1) / math.sqrt(5)
    counters = [row.windows["all"]["wa_error"] for row in table_.of("rounds/write")[-5:]]
    assert life.waf_error == pytest.approx(scatter + np.mean(counters) / 5, rel=0.01)
    raw, capacity = table_.data.header["drive"]["raw_nand_bytes"], table_.data.header["drive"]["capacity_bytes"]
    assert life.tbw_bytes == pytest.approx(raw * 1000 / life.waf)
    assert life.tbw_low_bytes < life.tbw_bytes < life.tbw_high_bytes
    assert life.dwpd == pytest.approx(life.tbw_bytes / (capacity * 365 * 5))
    assert life.of_rating_percent == pytest.approx(100 * life.tbw_bytes / 3e12)
    assert life.rated_dwpd == pytest.approx(endurance.dwpd_of_tbw(3, capacity, 5))
    assert any("WLE = 1" in words for words in life.assumed)
    html = page.render([table_])
    for words in ("TBW = raw NAND × P/E cycles × WLE / WAF", "AnandTech 7947", "95 %", "rounds 4 to 8"):
        assert words in html
    assert any("Share of the rating" in line for line in screen.of_plan(table_))
    document = json_documents.figures(json.loads(json.dumps(documents.of_table(table_))))
    assert document["life"][0]["waf"] == life.waf


def test_what_is_not_known_says_why(tmp_path):
    table_ = table.load(run_of(tmp_path, [2.0] * 8, counted=False))
    life = life_figures.of(table_, "rounds/write")
    assert life.waf is None and "write amplification" in life.unknown[0]
    assert page.html_of("life")(Context([table_], [""], {"view": "life", "of": "rounds/write"}))
    rows = [row for row in table_.rows if row.round]
    for row in rows:
        row.windows["all"] |= {"wa": 2.0, "wa_error": 0.01}
    bare = life_figures.life(rows[-5:], True, {"capacity_bytes": GB}, {})
    assert bare.tbw_bytes is None and "P/E cycles" in bare.unknown[0]
    user = life_figures.life(rows[-5:], True, {"capacity_bytes": GB, "rated_pe_cycles": 100}, {})
    assert user.tbw_bytes == pytest.approx(50 * GB) and "user capacity" in user.assumed[1]
    assert {"DWPD", "share of the rating"} <= {words.partition(":")[0] for words in user.unknown}
    worn = {"pe_cycles_mean": 80, "pe_cycles_max": 100}
    levelled = life_figures.life(rows[-5:], True, {"capacity_bytes": GB, "rated_pe_cycles": 100}, worn)
    assert levelled.tbw_bytes == pytest.approx(40 * GB) and len(levelled.assumed) == 1


def test_write_amplification_of_rounds_that_scatter_makes_no_endurance(tmp_path):
    rows = [row for row in table.load(run_of(tmp_path, [2.0] * 8)).rows if row.round]
    drive = {"capacity_bytes": GB, "rated_pe_cycles": 100, "rated_years": 5, "rated_write_bytes": 10**12}

    def life(*values, error=0.01):
        for row, value in zip(rows, values, strict=False):
            row.windows["all"] |= {"wa": value, "wa_error": error}
        return life_figures.life(rows[: len(values)], True, drive, {})

    two = life(1.2, 2.8)  # 2 ± 10
    assert two.waf == 2.0 and two.waf_error > 10
    for far in (two, life(1.0, 1.0, 1.0, 1.0, 6.0), life(2.0, error=0.7)):
        assert far.waf is not None and far.unknown[0].startswith("TBW: ")
        assert far.tbw_bytes is far.tbw_high_bytes is far.dwpd is far.of_rating_percent is None
    assert life(2.0, error=None).waf is None
    near = life(2.0, 2.1, 1.9, 2.0, 2.0)
    assert near.tbw_low_bytes < near.tbw_bytes < near.tbw_high_bytes < 1.2 * near.tbw_bytes


def test_the_flash_takes_what_the_formula_says():
    """A drive of 40 cycles, written at random in model time until its mean erase count is 40."""
    drive = VirtualDrive(SATA_TLC, capacity_bytes=1 << 29, latency=False)
    drive.precondition("seq", 1)
    drive.precondition("random", 3, seed=1)
    before = drive.ledger()
    drive.precondition("random", 1, seed=2)
    after = drive.ledger()
    host, nand = (after[key] - before[key] for key in ("host_write_bytes", "nand_write_bytes"))
    left_TB = endurance.tbw_of_cycles(drive.raw_nand_bytes, 40 - after["pe_mean"], nand / host)
    for seed in range(3, 99):
        if (now := drive.ledger())["pe_mean"] >= 40:
            break
        drive.precondition("random", 0.1, seed=seed)
    assert (now["host_write_bytes"] - after["host_write_bytes"]) / 1e12 == pytest.approx(left_TB, rel=0.03)
