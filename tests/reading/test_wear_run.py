"""endurance: sample blocks, slices, stops, the prediction, a drive worn to its end in model time, and a run cut short
within a slice."""

import contextlib
import json
from dataclasses import replace
from types import SimpleNamespace

import json_documents
import numpy as np
import pytest
from event_book import Book
from killed_runs import killed, smart, wrote
from small_plans import FILLED, HEAD
from synthetic_plan import DRIVE, Writer

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import counters
from ssdrig.load.fiojob import job_file
from ssdrig.plan import grammar, kinds
from ssdrig.plan.kinds import wear
from ssdrig.plan.rules import stamps, worn
from ssdrig.plan.rules.worn import Slice
from ssdrig.reading import table, wear_run
from ssdrig.reading.row import Table
from ssdrig.report import page, screen
from ssdrig.run import cut_short, prepare, standing
from ssdrig.run.budget import Budget
from ssdrig.run.stage import Stage
from ssdrig.run.steps import wear as wear_step
from ssdrig.runs import journal
from ssdrig.views import documents
from ssdrig.virtual.device import smartlog, store
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash import ftl
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import ENTERPRISE_50

MIB = 1 << 20
AT = stamps.layout(64 * MIB, 256 << 10, 7)


class Drive:
    """enterprise-50 in model time: what fio, SMART and the bench are asked for. `lie`: what a read gives instead."""

    def __init__(self, cut=None):
        drive = VirtualDrive(ENTERPRISE_50, latency=False)
        self.device = Device(ENTERPRISE_50, drive, ENTERPRISE_50.capacity_bytes, "crc", 0, drive.ring, latency=False)
        self.blocks, self.lie, self.cut, self.jobs = {}, {}, cut, 0
        drive.precondition("seq", 1)
        self.filled = drive.ledger()["host_write_bytes"]

    @property
    def written(self):
        return self.device.drive.ledger()["host_write_bytes"] - self.filled

    def header(self):
        return self.device.identity() | {"interface": "nbd", "logical_block_bytes": 4096}

    def fio(self, act, job, pace, number, within):
        assert within == f"s{number:04}" and "rw=randwrite" in job_file(job)
        wrote = (job.io_size // 2 if self.cut == number else job.io_size) // 4096 * 4096
        self.jobs += 1
        self.device.drive.precondition("random", wrote / self.device.capacity_bytes, seed=self.jobs)
        if self.cut == number:
            raise KeyboardInterrupt
        return SimpleNamespace(bytes=wrote, ios=wrote // 4096, runtime_s=wrote / 1e8)

    def poll(self, reason):
        health = self.device.health()
        pages = {"log_02h": smartlog.log_02h(health).hex(), "log_c0h": smartlog.log_c0h(health).hex(), "log_09h": None}
        pages["smartctl"] = smartlog.smartctl_document(self.device.identity(), health, 0)
        return counters.snapshot(pages | {"n": 1, "reason": reason, "t_start_ns": 1, "t_end_ns": 1, "simulated": True})

    def read(self, offsets):
        blocks = (store.reads_as(offset, self.blocks[offset]) for offset in offsets)
        return [self.lie.get(offset, block) for offset, block in zip(offsets, blocks, strict=True)]

    def stage(self, book, most_bytes=None):
        live = SimpleNamespace(begin=lambda pace: None, poll_smart=self.poll)
        stop = SimpleNamespace(check=lambda: None, second_raises=contextlib.nullcontext)
        bench = SimpleNamespace(
            check=lambda: None,
            flush=lambda: None,
            drive=self.header(),
            fio_target="nbd://x",
            write_blocks=self.blocks.update,
            read_blocks=self.read,
            reads_as=store.reads_as,
        )
        stage = Stage(bench, book, live, stop, None, None, 4242, budget=Budget(most_bytes))
        stage.fio = self.fio
        return stage


def act_of(drive, **sets):
    sets = {"block": "4 KiB", "samples": "32 KiB"} | sets
    prepared = prepare.prepare("endurance", drive.header(), "to-the-end", sets)
    return next(act for act in prepared.acts if act.do == "wear"), prepared


@pytest.mark.slow
def test_a_drive_of_50_cycles_is_worn_to_its_end_which_its_first_tenth_foretold(tmp_path):
    drive = Drive()
    act, prepared = act_of(drive, slice="0.2 %")
    writer = Writer(tmp_path, prepared.plan.text, "to-the-end", prepared.plan.params, more={"drive": drive.header()})
    writer.step("purge", 1)
    begun = drive.device.drive.ledger()
    writer.event("step.start", step="wear", fio="wear")
    shown = wear_step.carry_out(act, drive.stage(writer), 1)
    writer.t_ns += 10**10
    writer.event("step.end", step="wear", ok=True, **shown)
    ledger = drive.device.drive.ledger()
    assert shown["stop"] == "percentage used 100" and shown["bytes"] == drive.written
    assert 49 <= ledger["pe_mean"] <= 50.1

    table_ = table.load(writer.end())
    row = next(row for row in table_.rows if row.act.do == "wear")
    course = row.result
    assert course["slices"][-1]["host_bytes"] == drive.written  # the drive's own ledger
    nand, host = (ledger[key] - begun[key] for key in ("nand_write_bytes", "host_write_bytes"))
    assert course["wa"] == pytest.approx(nand / host, rel=1e-3) == row.value("wa")
    first = course["ends"][0]
    assert first["at_percent"] == 10 and first["at_bytes"] < 0.15 * drive.written
    assert first["host_bytes"] == pytest.approx(drive.written, rel=0.05)
    assert 0.005 < (first["high_bytes"] - first["low_bytes"]) / first["host_bytes"] < 0.2
    late = course["ends"][-1]
    assert late["host_bytes"] == pytest.approx(drive.written, rel=0.01)
    assert course["verdicts"] == {"good": course["samples_read"]} and course["samples_read"] == 8 * len(
        course["slices"][1:]
    )
    html = page.render([table_])
    for words in ("it ended: percentage used 100", "predicted at 10 % used", "all as they were written", "JESD218"):
        assert words in html
    assert "worn quickly at room temperature" in html and "enterprise class" in html
    assert any("predicted at 10 %" in line for line in screen.of_plan(table_))
    json_documents.figures(json.loads(json.dumps(documents.of_table(table_), allow_nan=False)))


def test_a_run_cut_short_goes_on_to_the_byte(tmp_path):
    """Cut short in the middle of slice 3: the rest of the slice is written, and no byte twice."""
    drive = Drive(cut=3)
    act, prepared = act_of(drive, slice="4 MiB", total="20 MiB")
    first = Book()
    with pytest.raises(KeyboardInterrupt):
        wear_step.carry_out(act, drive.stage(first), 1)
    moved = 10 * MIB
    assert drive.written == moved
    past = standing.Past(2, act, state=standing.state.State("written", 0, "wear"))
    todo = standing.todo(prepared.acts, past, past.state, moved_bytes=moved)
    (rest,) = todo.acts
    assert (rest.amount_bytes, rest.keys["done_bytes"], todo.begins) == (10 * MIB, moved, 2)
    drive.cut, second = None, Book()
    assert wear_step.carry_out(rest, drive.stage(second), 1) == {
        "bytes": 10 * MIB,
        "stop": "all is written that the plan asks for",
    }
    assert drive.written == 20 * MIB
    own = [{"step": "wear"} | event for event in first.events + second.events]
    seen = wear_run.slices(own, "wear")
    assert [part.number for part in seen] == [0, 1, 2, 3, 4, 5]
    assert [part.host_bytes for part in seen] == [n * 4 * MIB for n in range(6)]
    assert not any(part.bad for part in seen)  # also the samples of the slice that was begun twice


def test_what_a_killed_run_has_moved_is_summed_over_its_slices(tmp_path):
    plan = tmp_path / "w.toml"
    step = (
        '[[step]]\nname = "wear"\ndo = "wear"\nblock = "4 KiB"\nslice = "8 MiB"\ntotal = "80 MiB"\nsamples = "1 MiB"\n'
    )
    plan.write_text(HEAD + FILLED + step)
    drive = {"model": "SIMULATED", "serial": "S1", "firmware": "F1", "interface": "nbd", "preset": "sata-tlc"}
    drive |= {"capacity_bytes": 64 * MIB, "drive_bytes": 64 * MIB, "raw_nand_bytes": 80 * MIB, "time_dilation": 1}
    drive["logical_block_bytes"] = 4096
    prepared = prepare.prepare(str(plan), drive)
    header = {"simulated": True, **prepare.header(prepared), "drive": drive, "rig": None, "host": {"boot_id": "b"}}
    book = journal.create(tmp_path / "runs", header)
    book.event("run.start", pid=1)
    for name in ("purge", "fill"):
        book.event("step.start", step=name)
        if name == "fill":
            wrote(book, "fill", [64 * MIB])
        book.event("step.end", step=name, ok=True, bytes=64 * MIB)
    book.event("step.start", step="wear", fio="wear")
    smart(book, 1, 10**9)
    for number, sizes in ((1, [4 * MIB, 8 * MIB]), (2, [3 * MIB])):
        book.event("stamp", step="wear", slice=number, bytes=32768)
        book.event("slice.start", step="wear", slice=number)
        wrote(book, f"wear/s{number:04}", sizes)
    story = cut_short.read(killed(book))
    assert story.past.cut.path == "wear" and story.moved_bytes == 11 * MIB and not story.doubts
    assert story.past.jobs == 3 and story.ours[1] >= 11 * MIB + 2 * 32768
    todo = standing.todo(story.acts, story.past, story.past.state, (), story.moved_bytes)
    assert [act.path for act in todo.acts] == ["wear"] and todo.acts[0].keys["done_bytes"] == 11 * MIB


def test_the_budget_ends_it_before_a_slice_that_does_not_fit():
    drive = Drive()
    act, _ = act_of(drive, slice="4 MiB", total="20 MiB")
    shown = wear_step.carry_out(act, drive.stage(Book(), most_bytes=9 * MIB), 1)
    assert shown["bytes"] == 8 * MIB and "budget" in shown["stop"]
    assert Budget(3 * MIB).why_not(act) and not Budget(4 * MIB).why_not(act)


def test_a_sample_that_is_not_what_was_written_ends_it():
    drive = Drive()
    act, _ = act_of(drive, slice="4 MiB", total="20 MiB")
    at = wear.layout(act, 4242)
    drive.lie = {at.offset(2): None, at.offset(5): bytes(4096)}
    book = Book()
    shown = wear_step.carry_out(act, drive.stage(book), 1)
    assert shown["stop"].startswith("2 of 8 sample blocks") and shown["bytes"] == 4 * MIB
    (event,) = book.of("slice")
    assert event["verdicts"] == {"good": 6, "zeros": 1, "unreadable": 1}


def test_a_drive_that_is_worn_so_far_already_is_not_written_to():
    """A slice of it was, 1 % of its rating: `--wear-to 20` of a drive at 30 %."""
    drive = Drive()
    drive.device.drive.blk[:, ftl.PE] = round(0.3 * ENTERPRISE_50.rated_pe_cycles)
    act, _ = act_of(drive, slice="4 MiB", total="20 MiB")
    stage = drive.stage(Book())
    for to, moved in ((20, 0), (30, 0), (90, 20 * MIB)):
        shown = wear_step.carry_out(replace(act, keys={**act.keys, "to": to}), stage, 1)
        assert shown["bytes"] == moved == drive.written
        assert shown["stop"] == ("percentage used 30" if not moved else "all is written that the plan asks for")


def test_samples_know_their_place_and_their_slice():
    stored = {}
    for n in range(1, 20):
        stored |= dict(stamps.stamped(AT, n))
        assert stamps.tally(AT, n, {i: stored[AT.offset(i)] for i in range(AT.blocks)}) == {"good": AT.blocks}
        assert {AT.expected(i, n) for i in range(AT.blocks)} <= set(range(max(1, n - 7), n + 1))
    i, n = 3, 19
    verdicts = {
        "unreadable": None,
        "zeros": bytes(4096),
        "old": stamps.stamp(AT, i, AT.expected(i, n) - 8),
        "elsewhere": stamps.stamp(AT, i + 8, AT.expected(i, n)),
        "damaged": stored[AT.offset(i)][:4000] + bytes(96),
    }
    for word, block in verdicts.items():
        assert stamps.verdict(AT, i, n, block) == word
    other = stamps.layout(64 * MIB, 256 << 10, 8)  # of another run
    assert stamps.verdict(AT, i, n, stamps.stamp(other, i, n)) == "elsewhere"
    with pytest.raises(ValueError, match="half of the range"):
        stamps.layout(64 * MIB, 40 * MIB, 1)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"bad": 1, "samples": 8}, "1 of 8 sample blocks"),
        ({"media_errors": 7}, "2 media errors"),
        ({"spare_percent": 9, "spare_threshold_percent": 10}, "spare of 9 % below its threshold of 10 %"),
        ({"percentage_used": 100}, "percentage used 100"),
        ({"lifetime_bytes": 1000}, "the rated TBW is written"),
        ({"host_bytes": 500}, "all is written that the plan asks for"),
        ({"spare_percent": 10, "spare_threshold_percent": 10, "media_errors": 5, "percentage_used": 99}, None),
    ],
)
def test_what_stops_it(now, why):
    first = Slice(0, 0, media_errors=5)
    stopped = worn.stop(first, Slice(3, 30)._replace(**now), 500, 1000)
    assert stopped is None if why is None else why in stopped


def course_of(end_nand, waf, nand_known=True, slices=1000, until=10):
    """Readings of a drive whose percentage is rounded up, until it says `until`."""
    parts_, host, nand = [Slice(0, 0, 0, percentage_used=0)], 0, 0.0
    size = end_nand / waf(1e9) / slices
    while parts_[-1].percentage_used < until:
        host, nand = host + size, nand + size * waf(host / end_nand)
        used = int(np.ceil(100 * nand / end_nand - 1e-9))
        parts_.append(Slice(len(parts_), int(host), int(nand) if nand_known else None, percentage_used=used))
    return parts_


def worn_out(runs) -> Table:
    """A run of 60 slices, to the end of a drive that is rated for less; spare falls behind the 40th."""
    rated = {"rated_write_bytes": 5 * 10**11, "rated_class": "enterprise"}
    w = Writer(runs, grammar.find("endurance")[0], "to-the-end", more={"drive": DRIVE | rated})
    course = course_of(2 * 10**12, lambda share: 2.5 - 1.5 * np.exp(-share / 0.05), slices=60, until=100)
    w.event("step.start", step="wear", fio="wear")
    for i, part in enumerate(course):
        now = part._replace(spare_percent=100 - max(0, i - 40), media_errors=0, temperature_C=44)
        fields = {name: getattr(now, key) for key, name in wear_run.FIELDS.items()} | {"samples": 8 * (i > 0)}
        w.event("slice" if i else "wear.begin", step="wear", **fields, verdicts={"good": fields["samples"]})
        w.t_ns += 10**9
    w.event("step.end", step="wear", ok=True, bytes=course[-1].host_bytes, stop="percentage used 100", fio="wear")
    return table.load(w.end())


@pytest.mark.parametrize("known", [True, False])
def test_the_end_is_foretold_within_its_error(known):
    def waf(share):
        return 2.5 - 1.5 * np.exp(-share / 0.004)  # a fresh drive at first

    whole = course_of(10**12, waf, known, until=100)
    end = whole[-1].host_bytes
    tenth = [part for part in whole if part.percentage_used <= 10]
    foretold = worn.end(tenth)
    assert foretold.host_bytes == pytest.approx(end, rel=0.03)
    assert foretold.low_bytes <= 1.01 * end and foretold.high_bytes >= 0.99 * end
    few = worn.end([part for part in whole if part.percentage_used <= 3])
    assert few.host_bytes is None and "went up" in few.why
    assert "does not report" in worn.end([part._replace(percentage_used=None) for part in tenth]).why


def test_several_percents_within_a_slice_are_their_mean():
    steps_of = [Slice(n, n * 100, n * 100, percentage_used=used) for n, used in enumerate((0, 1, 4, 4, 6))]
    assert worn.ticks(steps_of) == [(1, 1), (2, 3), (4, 5.5)]


def test_slices_of_a_step_that_began_anew_are_void():
    events = [{"kind": "wear.begin", "step": "w", "slice": 0, "host_bytes": 0}]
    events += [{"kind": "slice", "step": "w", "slice": n, "host_bytes": n} for n in (1, 2, 3)]
    assert [part.number for part in wear_run.slices(events + events[:3], "w")] == [0, 1, 2]
    assert wear_run.course([], "w")["end"]["why"] and wear_run.course(events, "other")["slices"] == []


def test_fio_leaves_the_samples_alone_and_a_rating_must_be_known():
    drive = {"interface": "NVMe", "capacity_bytes": 10**12, "raw_nand_bytes": None, "time_dilation": 1}
    with pytest.raises(UsageError, match="no TBW of this model"):
        prepare.prepare("endurance", drive)
    prepared = prepare.prepare("endurance", drive | {"rated_write_bytes": 600 * 10**12})
    act, job = next((act, job) for act, job in prepare.jobs(prepared, "/dev/x") if act.do == "wear")
    at = wear.layout(act, 1)
    assert at.blocks == 10**12 // 1000 // 4096 and at.begin + at.blocks * 4096 <= act.range_bytes
    text = job_file(job)
    assert f"size={at.begin}\n" in text and f"io_size={150 * 10**9}\n" in text  # a quarter of 600 GB: four threads
    assert prepared.cost.jobs == (2, 1001) and prepared.cost.most_bytes == 601 * 10**12 - 10**12 % MIB
    with pytest.raises(UsageError, match="a slice of at least"):
        prepare.prepare("endurance", drive, sets={"slice": "8 KiB", "total": "1 GB"})
    assert kinds.KINDS["wear"] is wear and "wear" in grammar.shipped()["endurance"].read_text()
