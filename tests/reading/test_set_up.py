"""What drive and host were set to, as a page says it."""

import argparse
import io
import re
from contextlib import redirect_stderr, redirect_stdout

import synthetic_run
from page_reader import text
from synthetic_plan import STEPS, Writer

from ssdrig import reading, report
from ssdrig.reading import set_up, table
from ssdrig.report import page
from ssdrig.report.about import host_section, hosts_of_review
from ssdrig.runs import journal

GOOD = {
    "kernel": "6.1.0",
    "governor": "performance",
    "aspm": "[default] performance powersave",
    "queue.scheduler": "[none] mq-deadline",
    "queue.rotational": "0",
    "nvme.apst": "on",
    "nvme.apst_table": [[0, 3, 100], [3, 4, 2000]],
    "nvme.write_cache": "on",
    "vulnerability.meltdown": "Mitigation: PTI",
    "vulnerability.mds": "Not affected",
    "load_average": "0.25",
    "other_disks_read_bytes": 1000,
    "other_disks_written_bytes": 0,
}
BAD = {
    "governor": "performance powersave",
    "queue.scheduler": "none [bfq]",
    "queue.rotational": "1",
    "apst_max_latency_us": "0",
    "load_average": "3.5",
}


def before(**more) -> dict:
    return {"when": "before", "found": GOOD | more, "unknown": {"nvme.tmt1_C": "not set"}}


def after(changed=None, **more) -> dict:
    return {"when": "after", "found": GOOD | more, "unknown": {}, "changed": changed or {}}


def test_a_host_as_it_should_be_gives_no_warning():
    assert set_up.wrong(before(), after(other_disks_written_bytes=50_000_000), 4, False) == []
    assert set_up.wrong({"found": {}}, {}, None, False) == []


def test_each_thing_that_is_not_as_it_should_be_is_said():
    sentences = set_up.wrong(before(**BAD), after({"boost": ["1", None]}, other_disks_read_bytes=200_001_000), 4, False)
    beginnings = ("boost: 1 before the run, None after", "governor performance powersave", "I/O scheduler bfq")
    beginnings += ("the kernel takes the drive for a rotating", "the kernel keeps the drive from going to sleep")
    beginnings += ("load average 3.5 on 4 CPUs", "other disks of the host moved 200 MB")
    assert [sentence.startswith(begin) for sentence, begin in zip(sentences, beginnings, strict=True)] == [True] * 7
    assert not any("rotating" in sentence for sentence in set_up.wrong(before(**BAD), after(), 8, True)), (
        "a SIMULATED one"
    )
    assert not any("load average" in sentence for sentence in set_up.wrong(before(**BAD), after(), 8, True))


def test_the_table_has_what_is_known_and_what_became_of_it():
    rows = {
        line.words: line for line in set_up.lines(before(), after(load_average="1.5", other_disks_written_bytes=5000))
    }
    assert rows["Load average"] == ("Load average", "0.25", "1.5") and rows["Kernel"].after == ""
    assert rows["APST, from to after ms"].before == "0 3 100, 3 4 2000" and rows["Write cache"].before == "on"
    assert rows["CPU mitigations"].before == "1 of 2 vulnerabilities" and "Turbo" not in rows
    assert rows["I/O of other disks in the run"].before == "0 B read, 5.00 kB written"


def test_the_page_of_a_plan_shows_it(tmp_path):
    w = Writer(tmp_path, STEPS)
    w.event(
        "conditions",
        **{k: v for k, v in (before(**BAD) | {"unknown": {"nvme.tmt1_C": "not set"}}).items() if k != "kind"},
    )
    w.event("conditions", **before(**BAD))
    w.event("conditions", **after({"governor": ["performance", "powersave"]}))
    html = page.render([table.load(w.end())])
    piece = re.search(r"<section id=.host.><h2>Host and drive</h2>.*?</section>", html, re.DOTALL)[0]
    for words in ("Not as it should be", "I/O scheduler bfq", "fio-3.33", "nvme.tmt1_C: not set", "after it"):
        assert words in piece, words
    assert "none [bfq]" in text(piece)
    (tmp_path / "x").mkdir()
    bare = Writer(tmp_path / "x", STEPS)
    assert host_section(reading.begin(bare.end())) == ""


def test_the_page_of_the_main_test_shows_it_too(tmp_path):
    run = synthetic_run.write(tmp_path, [5000, 6000] * 8)
    events = [{k: v for k, v in event.items() if k not in ("line", "crc")} for event in journal.events(run)]
    events = [event for event in events if event["kind"] != "sums"]
    events.insert(1, {"t_ns": events[0]["t_ns"], "kind": "conditions", **before(**BAD)})
    synthetic_run.seal(run, events)
    options = argparse.ArgumentParser()
    report.add_arguments(options)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert report.command(options.parse_args([str(run), "--out", str(tmp_path / "page.html")])) == 0
    html = (tmp_path / "page.html").read_text()
    assert "<h2>Host and drive</h2>" in html and "I/O scheduler bfq" in html and "without a second reading" in html


def test_slow_link_is_the_first_warning_of_the_page(tmp_path):
    w = Writer(tmp_path, STEPS)
    w.event("conditions", **before(**BAD))
    run = reading.begin(w.end())
    run.header["drive"]["link"] = "PCIe 4.0 x4 (drive: 5.0 x4)"
    first = host_section(run).partition("<li>")[2]
    assert first.startswith("link PCIe 4.0 x4; the drive supports 5.0 x4")


def test_a_review_says_each_thing_once_with_the_runs_that_had_it(tmp_path):
    runs = {}
    for name, conditions in (
        ("one", before(**BAD)),
        ("two", before(governor="powersave", **{"queue.scheduler": "bfq"})),
    ):
        w = Writer(tmp_path, STEPS, name=name)
        w.event("conditions", **conditions)
        runs[name] = reading.begin(w.end())
    runs["three"] = reading.begin(Writer(tmp_path, STEPS, name="three").end())
    html = hosts_of_review(runs)
    assert html.count("I/O scheduler bfq") == 1 and "given (one, two)" in text(html)
    assert html.count("<table") == 1 and "during one" in html and hosts_of_review({"three": runs["three"]}) == ""


def test_a_review_says_once_what_differs_in_its_numbers_alone(tmp_path):
    runs = {}
    for name, load in (("one", 6.17), ("two", 13.0), ("three", 7.5)):
        w = Writer(tmp_path, STEPS, name=name)
        w.event("conditions", **before(load_average=load))
        runs[name] = reading.begin(w.end())
    lines = re.findall(r"<li>(load average[^<]*)", hosts_of_review(runs))
    assert len(lines) == 1 and lines[0].startswith("load average 6.17") and "(one; alike in 2 other runs)" in lines[0]


def test_how_far_the_written_data_compresses_is_a_line():
    rows = [
        {"compressible": 0, "pool": True, "compressed_percent": 100.3, "distinct_percent": 100.0},
        None,
        {"pool": 1},
    ]
    before, after = set_up.of([{"kind": "conditions", "when": "before", "found": {}}, {"kind": "data", "rows": rows}])
    (line,) = set_up.lines(before, after)
    assert line.words == "Written data, from a pool" and "100.3 %" in line.before and "100 % of" in line.before


def test_what_is_wrong_with_a_set_up_stands_before_the_figures(tmp_path):
    """The first one, how many more there are, and where."""
    w = Writer(tmp_path, STEPS)
    w.event("conditions", **before(**BAD))
    run = table.load(w.end())
    run.data.header["drive"]["link"] = "PCIe 4.0 x4 (drive: 5.0 x4)"
    wrong = len(set_up.wrong(*set_up.of(run.data.events), None, False, run.data.header["drive"]["link"]))
    html = page.render([run])
    head = text(html.partition("</header>")[0])
    assert "link PCIe 4.0 x4; the drive supports 5.0 x4" in head and f"and {wrong - 1} more" in head
    assert html.count('id="host"') == 1 and 'href="#host"' in html
    (tmp_path / "bare").mkdir()
    bare = table.load(Writer(tmp_path / "bare", STEPS).end())  # without conditions: the link leads to the next run's
    assert page.render([bare, run]).count('id="host"') == 1
    (tmp_path / "sound").mkdir()
    sound = Writer(tmp_path / "sound", STEPS)
    sound.event("conditions", **before())
    assert 'href="#host"' not in page.render([table.load(sound.end())])
