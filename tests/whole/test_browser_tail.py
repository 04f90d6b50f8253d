"""A run that goes on, as the bench in the browser follows it: what comes out depends on the folder alone, nothing comes
twice, nothing is left out, whenever it is read and however often the reading process is new."""

import json
import shutil
import struct
import time
import types

import numpy as np
import pytest
import stream
import synthetic_run
from growing_run import Growing

from ssdrig.base.errors import JournalError
from ssdrig.meter import samples, wire
from ssdrig.reading.live_load import Load
from ssdrig.runs import journal, rigbin, rigrecords
from ssdrig.serve import tail as previews
from ssdrig.serve.app import Hub
from ssdrig.serve.tail import BEHIND, Place, Tail, place

IOPS = [20000] * 6 + [1000, 3000] * 3 + [0, 0, 500]
BEGIN = Place()
WATTS = ((-100.0, 4.0), (0.0, 2.5), (4.0, 6.0))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    how = {"watts": WATTS, "zoom_s": 6, "smart_every_s": 3, "logs": False}
    return synthetic_run.write(tmp_path_factory.mktemp("whole"), IOPS, **how)


@pytest.mark.parametrize("dilation", [1, 60, 1000])
def test_steps_are_told_apart_on_the_axis(whole, dilation):
    """To the millisecond, steps of a drive 200 times as slow were one."""
    tail = Tail(whole)
    assert tail.axis_s(tail.started_ns + 10**13) == 10_000
    tail.k = dilation
    begun_ns = tail.started_ns + 50_000_000
    assert len({tail.axis_s(begun_ns + n * previews.STEP_NS) for n in range(1000)}) == 1000


def all_of(tail: Tail, at: Place = BEGIN) -> tuple[dict, Place]:
    """Everything behind a place, one list for each kind."""
    out: dict[str, list] = {}
    tenths = 0
    while True:
        tail._next_look = 0  # as if a second had passed
        news = tail.step()
        while True:
            message, at, tenths, _ = tail.since(at, tenths, 1 << 62)
            if message is None:
                break
            for name, rows in message.items():
                if isinstance(rows, list) and name != "preview":
                    out.setdefault(name, []).extend(rows)
        if not news:
            return out, at


@pytest.fixture
def growing(whole, tmp_path):
    made = Growing(whole, tmp_path / "runs")
    yield made
    made.gone()


def test_of_a_run_that_was_cut_no_second_holds_the_cut(whole, tmp_path):
    """The run waits for the power while it cuts: what fio had said of the time before comes late."""
    made = tmp_path / "cut"
    shutil.copytree(whole, made)
    before = all_of(Tail(made))[0]["load"]
    begun_ns, out = Tail(made).started_ns, made / "fio/load/out.json"
    cut_ns = begun_ns + round((before[-5][0] + 0.5) * 1e9)
    lines = []
    for line in out.read_text().splitlines():
        event = json.loads(line) if line.startswith('{"t_ns"') else {}
        late = event and event["t_ns"] > cut_ns - 10**9
        lines.append(json.dumps(event | {"t_ns": event["t_ns"] + 2 * 10**9}) if late else line)
    out.write_text("\n".join(lines) + "\n")
    fired = {"t_ns": cut_ns + 10, "kind": "cut.fired", "step": "load", "cut": None, "fired_ns": cut_ns, "bound_ns": 0}
    synthetic_run.seal(made, sorted([*journal.events(made), fired], key=lambda event: event["t_ns"]))
    rows = all_of(Tail(made))[0]["load"]
    assert len(before) - 5 <= len(rows) < len(before) and rows[-1][0] <= (cut_ns - begun_ns) / 1e9
    assert [row[2] for row in rows] == [row[2] for row in before][: len(rows)]
    assert [row[0] for row in rows] == pytest.approx([row[0] for row in before][: len(rows)], abs=0.6)


@pytest.mark.slow
def test_pieces_come_to_the_same_as_the_whole(whole, growing):
    """Read at odd times, by a process that is new each third time, which its reader tells where it was."""
    pieces: dict[str, list] = {}
    at, tail = Place(), Tail(growing.folder)
    for n, t_ns in enumerate(np.linspace(growing.began_ns, growing.end_ns, 29).astype(int).tolist()):
        growing.to(t_ns)
        if n % 3 == 0:
            tail, at = Tail(growing.folder), place(str(at))
        pieces_, at = all_of(tail, at)
        for name, rows in pieces_.items():
            if name not in ("tenths", "trust"):  # the strip is of the moment
                pieces.setdefault(name, []).extend(rows)
    growing.end()
    tail = Tail(growing.folder)
    rest, at = all_of(tail, at)
    for name in rest.keys() - {"trust"}:
        pieces.setdefault(name, []).extend(rest[name])
    once, end = all_of(Tail(growing.folder))
    assert tail.ended and end == at
    assert {"events", "steps", "seconds", "load", "smart"} <= once.keys()
    for name in pieces.keys() - {"tenths"}:
        assert pieces[name] == once[name], name


def test_its_seconds_are_those_of_the_meter(whole):
    pieces_, _ = all_of(Tail(whole))
    power = samples.load(whole)
    first_ns = int(power.t_ns[0]) // samples.SECOND_NS * samples.SECOND_NS
    exact = samples.per_second(power, first_ns, len(pieces_["seconds"]))
    began_s = first_ns / 1e9 - synthetic_run.T_RUN_NS / 1e9
    assert [row[0] for row in pieces_["seconds"]] == pytest.approx(
        began_s + np.arange(len(pieces_["seconds"])), abs=1e-3
    )
    for column, name, within in (
        (1, "p_min_W", 1e-3),
        (2, "p_mean_W", 2e-3),
        (3, "p_max_W", 1e-3),
        (4, "energy_J", 3e-3),
    ):
        assert [row[column] for row in pieces_["seconds"]] == pytest.approx(getattr(exact, name), abs=within), name
    assert sum(row[5] for row in pieces_["seconds"]) == power.lost
    tenths = np.array(pieces_["tenths"])
    assert np.allclose(np.diff(tenths[:, 0]), 0.1) and (tenths[:, 1] <= tenths[:, 2]).all()
    assert (tenths[:, 2] <= tenths[:, 3]).all() and set(np.round(tenths[5:-5, 2], 1)) >= {2.5, 4.0, 6.0}


def test_its_load_and_smart_are_those_of_the_run(whole):
    pieces_, _ = all_of(Tail(whole))
    load = [row for row in pieces_["load"] if row[1] == "load"]
    assert [row[2] for row in load] == IOPS and load[0][3] == IOPS[0] * 4096
    assert [row[4] for row in load] == [800.0 if n else None for n in IOPS]
    assert [(row["C"], row["t"]) for row in pieces_["smart"]][0] == (40, pytest.approx(0.605, abs=0.01))
    assert pieces_["smart"][-1]["wa"] == pytest.approx(3.0, abs=0.1) and pieces_["smart"][0].get("wa") is None
    kinds = [line["kind"] for line in pieces_["steps"]]
    assert kinds.count("step.start") == kinds.count("step.end") == 5 and kinds[-1] == "run.end"
    assert all(isinstance(line[2], str) for line in pieces_["events"])


def test_the_course_of_an_ended_run_is_its_rows_step_by_step(whole):
    loads = all_of(Tail(whole))[0]["load"]
    course = Tail(whole).course()
    assert [(step["label"], step["round"]) for step in course] == [("load", None)]
    for step in course:
        rows = [row for row in loads if row[1] == step["label"]]
        assert [iops for _, iops in step["rows"]] == [row[2] for row in rows]
        assert step["rows"][0][0] == pytest.approx(1.2, abs=1.3)
        assert np.diff([t for t, _ in step["rows"]]) == pytest.approx(np.diff([row[0] for row in rows]), abs=0.011)


def test_a_long_course_is_means_of_its_rows(whole, monkeypatch):
    monkeypatch.setattr(previews, "COURSE_ROWS", 3)
    (load,) = Tail(whole).course()
    every = [row[2] for row in all_of(Tail(whole))[0]["load"] if row[1] == "load"]
    assert [iops for _, iops in load["rows"]] == [round(np.mean(part)) for part in np.array_split(every, 3)]


def test_the_forecast_of_a_step_goes_to_the_page(whole):
    steps = all_of(Tail(whole))[0]["steps"]
    begun = {step["label"]: step["left_s"] for step in steps if step["kind"] == "step.start"}
    assert begun["load"] == [len(IOPS) + 1, len(IOPS) + 3] and begun["fill"] is None


def test_what_a_run_has_written_counts_from_its_first_step_on(tmp_path):
    """Seen: 187 MB of 2.34 GB, as the first reading of SMART comes after the fill."""
    whole = synthetic_run.write(tmp_path, IOPS, watts=WATTS, zoom_s=6, smart_every_s=3, logs=False)
    shutil.copy(whole / "fio" / "load" / "out.json", whole / "fio" / "fill" / "out.json")  # the fill writes as much
    tail, written, at, tenths, preview_ns = Tail(whole), [], BEGIN, 0, 0
    while True:
        more = tail.step()
        message, at, tenths, preview_ns = tail.since(at, tenths, preview_ns)
        written += [message["written"]] if message and "written" in message else []
        if not more and not message:
            break
    total = 2 * sum(IOPS) * 4096
    assert written[-1] == total


@pytest.mark.slow
def test_the_preview_is_near_what_settles_and_comes_first(whole, growing):
    tail = Tail(growing.folder)
    growing.to(growing.began_ns)
    tail.step()
    ahead, settled = {}, {}
    for t_ns in range(growing.began_ns, growing.end_ns, 100_000_000):
        growing.to(t_ns)
        tail._next_look = 0
        tail.step()
        message, *_ = tail.since(Place(1 << 40, 1 << 40, 1 << 40, 1 << 40), 0, 0)
        for row in (message or {}).get("preview", []):
            if row[0] not in ahead:
                ahead[row[0]] = row, (t_ns - growing.began_ns) / 1e9
        for row in (message or {}).get("tenths", []):
            settled.setdefault(row[0], row)
    assert len(ahead) > 100 and len(ahead.keys() & settled.keys()) > 80
    late = [seen_s - t for t, (_, seen_s) in ahead.items()]
    assert max(late[5:]) <= 0.35  # the row's own 0.1 s, a frame of 24 samples, and one look
    for t in ahead.keys() & settled.keys():
        assert ahead[t][0][2] == pytest.approx(settled[t][2], abs=0.9)
    assert np.median([abs(ahead[t][0][2] - settled[t][2]) for t in ahead.keys() & settled.keys()]) < 0.01


def test_two_rails_are_added_up_and_a_silent_one_is_no_power_at_all(tmp_path):
    rails = [("3V3", ((-100.0, 1.0),), 1_000_000, None), ("aux", ((-100.0, 0.5),), 5_000_000, (4.0, 99.0))]
    run = synthetic_run.write(tmp_path, [900] * 24, watts=((-100.0, 2.0),), more_rails=rails, logs=False)
    pieces_, _ = all_of(Tail(run))
    known = [row for row in pieces_["seconds"] if row[0] < 7]
    assert known and [row[2] for row in known[1:-1]] == pytest.approx([3.5] * (len(known) - 2), abs=1e-3)
    assert max(row[0] for row in pieces_["seconds"]) < 9  # from then on a rail is missing


def test_the_rails_of_a_step_and_the_steps_of_a_second_are_put_together(whole):
    """Least, mean and greatest of the sum; of a second the mean is weighted by samples."""
    tail = Tail(whole)
    tail._follower = types.SimpleNamespace(rail_names=lambda: {0: "5V", 1: "12V"})
    at_ns = tail.started_ns // samples.SECOND_NS * samples.SECOND_NS + samples.SECOND_NS
    tail._open = {  # samples, mean, least and greatest W, J, lost, ns of clock error
        at_ns: {0: [10, 1.5, 1.123456, 2.0, 0.15, 0, 1000], 1: [10, 3.0, 2.0, 4.25, 0.3, 1, 2000]},
        at_ns + previews.STEP_NS: {0: [5, 2.0, 1.5, 2.5, 0.2, 2, 4_999_600], 1: [15, 4.0, 3.0, 5.0, 0.4, 0, 3000]},
        at_ns + 2 * previews.STEP_NS: {1: [10, 9.0, 9.0, 9.0, 0.9, 0, 9000]},  # one rail was silent
    }
    tail._settle(True)
    first_s, second_s = tail.axis_s(at_ns), tail.axis_s(at_ns + previews.STEP_NS)
    assert tail._tenths == [[first_s, 3.12346, 4.5, 6.25], [second_s, 4.5, 6.0, 7.5]]
    assert tail._seconds == [[first_s, 3.12346, 5.25, 7.5, 1.05, 3, 5000]] and not tail._open


def test_a_second_is_settled_once_all_rails_have_passed_into_it(whole, monkeypatch):
    """What only one rail has said of the next one waits for the other."""
    tail = Tail(whole)
    tail._follower = types.SimpleNamespace(rail_names=lambda: {0: "5V", 1: "12V"})
    at_ns = tail.started_ns // samples.SECOND_NS * samples.SECOND_NS
    row = [10, 1.5, 1.0, 2.0, 0.15, 0, 1000]
    steps = [at_ns + n * previews.STEP_NS for n in (18, 19, 20)]
    tail._open = {steps[0]: {0: row, 1: row}, steps[1]: {0: row, 1: row}, steps[2]: {0: row}}
    forgotten: list[int] = []
    tail._preview = types.SimpleNamespace(forget=forgotten.append)
    tail._newest = [(t_ns, 2.0, 2.0, 2.0) for t_ns in steps]
    monkeypatch.setattr("ssdrig.serve.tail.TENTHS", 1)
    tail._settle(False)
    assert [t for t, *_ in tail._tenths] == [tail.axis_s(steps[1])] and tail._tenths_from == 1  # one is kept
    assert [*tail._open] == steps[2:] == [t for t, *_ in tail._newest] == forgotten


def test_a_dilated_drive_s_energy_is_of_its_own_time(whole):
    tail = Tail(whole)
    tail.k = 10
    assert tail._second(tail.started_ns, [[10, 1.5, 1.0, 2.0, 0.15, 0, 1000]] * 10)[4] == 0.15


def test_the_preview_knows_the_rails_of_a_greeting_that_lies_before_it(whole):
    """The preview begins where the settled power has come to, behind the greeting."""
    tail = Tail(whole)
    data = (whole / "rig.bin").read_bytes()
    records = rigrecords.decode(data)
    greeting = next(i for i in range(len(records)) if records.payload(i)[:1] == bytes([wire.HELLO]))
    greeted = json.loads(records.payload(greeting)[wire.BODY :])
    behind = rigrecords.decode(
        data[: data.index(records.payload(greeting)) + 2 * len(records.payload(greeting))]
    ).next_offset
    for hello, known in ((greeted, True), (None, False)):
        tail._preview, tail._preview_at = previews.Preview(), None
        tail._follower = types.SimpleNamespace(offset=behind, hello=hello)
        tail._read_preview()
        assert bool(tail._newest) is known


@pytest.mark.parametrize(("behind", "skips"), [(-5, False), (BEHIND, False), (BEHIND + 1, True)])
def test_a_preview_that_is_far_behind_skips_to_what_has_settled(whole, behind, skips):
    """As after a long read: else the newest moments would come late for ever."""
    tail, at = Tail(whole), 3 * BEHIND  # behind the end of the file
    tail._preview_at = at
    tail._follower = types.SimpleNamespace(offset=at + behind, hello=None)
    tail._read_preview()
    assert tail._preview_at == at + skips * behind


def test_a_newer_moment_of_the_same_power_is_news(whole):
    tail = Tail(whole)
    seen = set()
    for newest in ([], [(7, 1.23456, 2.0, 2.0)], [(8, 1.23456, 2.0, 2.0)]):
        tail._newest = newest
        seen.add(tail._counts())
    assert len(seen) == 3
    message, *_, preview_ns = tail.since(Place(), 0, 0)
    assert message and message["preview"] == [[tail.axis_s(8), 1.2346, 2.0, 2.0]] and preview_ns == 8


@pytest.mark.parametrize(
    "text", [None, "", "1-2-3", "a-b-c-d", "1-2-3-4-5", "-1-2-3-4", "9" * 20 + "-0-0-0", "١-1-1-1"]
)
def test_what_is_no_place_is_the_beginning(text):
    assert place(text) == Place()
    assert place("7-6-5-4") == Place(7, 6, 5, 4) and str(Place(7, 6, 5, 4)) == "7-6-5-4"


def test_a_place_behind_the_end_gives_nothing(whole):
    tail = Tail(whole)
    _, end = all_of(tail)
    assert tail.since(Place(*(2 * n + 9 for n in end)), 1 << 40, 1 << 62)[0] is None


def test_messages_are_bounded(whole):
    tail = Tail(whole)
    all_of(tail)
    message, *_ = tail.since(Place(), 0, 0)
    assert message and message["seconds"] == tail._seconds and "more" not in message
    tail._rows, tail._seconds = tail._rows * 500, tail._seconds * 500
    message, *_ = tail.since(Place(), 0, 0)
    assert message and len(message["load"]) == len(message["seconds"]) == 500 and message["more"]


def test_nothing_outside_of_the_folder_is_read(whole, tmp_path):
    growing = Growing(whole, tmp_path / "runs")
    growing.to(1 << 62)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "out.json").write_text(json.dumps({"t_ns": 5, "span_s": 1, "iops": 666, "bw_bytes": 1}) + "\n")
    line = {"t_ns": growing.end_ns, "kind": "step.start", "step": "x", "fio": "../../../secret"}
    from ssdrig.runs.integrity import sealed

    with open(growing.folder / "events.jsonl", "ab") as f:
        f.write(sealed(line, 999))
        f.write(sealed({**line, "fio": "linked"}, 1000))
    pieces_, _ = all_of(Tail(growing.folder))
    assert 666 not in [row[2] for row in pieces_["load"]]
    (growing.folder / "fio" / "linked").symlink_to(secret)
    with pytest.raises(JournalError):
        Tail(growing.folder)
    growing.end()


def test_a_defect_ends_the_stream_and_is_reported(whole, monkeypatch, capfd):
    """Else its readers would wait for ever."""
    hub = Hub()
    monkeypatch.setattr(Tail, "step", lambda self: 1 // 0)
    tail = hub.tail(whole)
    until = time.monotonic() + 600
    while not tail.ended and time.monotonic() < until:
        time.sleep(0.01)
    hub.close()
    assert tail.ended and "ZeroDivisionError" in capfd.readouterr().err


def test_damage_is_passed_over(whole, growing):
    growing.to(1 << 62)
    data = bytearray((growing.folder / "events.jsonl").read_bytes())
    data[200] ^= 1
    (growing.folder / "events.jsonl").write_bytes(bytes(data))
    (growing.folder / "fio/load/out.json").write_bytes(
        b'{"t_ns": 1, "jobs": 7}\n[]\n\xff\n{"t_ns":' + b"[" * 5000 + b"\n"
    )
    (growing.folder / "smart/000.json").write_text("[")
    pieces_, _ = all_of(Tail(growing.folder))
    assert (
        len(pieces_["events"]) > 5 and pieces_["seconds"] and all(row[1] != "load" for row in pieces_.get("load", []))
    )


def test_the_preview_takes_whatever_a_board_sends():
    rng = np.random.default_rng(3)
    rail = json.loads(stream.hello())["rails"][0]
    absurd = [
        rail | {name: value} for name in ("vbus_lsb_nV", "lead_mOhm", "shunt_uOhm") for value in (10**400, -1, {})
    ]
    for hello in (None, {}, {"rails": 5}, {"rails": [{"rail": 0, "config": 1}]}, *({"rails": [r]} for r in absurd)):
        seen = previews.Preview(hello)
        whole = rigbin.encode(
            1, struct.pack(wire.HEAD, wire.SAMPLES, 0) + stream.samples(0, [1, 2], [9] * 2, [9] * 2), 1
        )
        seen.feed(rigrecords.decode(whole))
        data = b"".join(
            rigbin.encode(1, bytes([int(rng.choice([72, 83, 69]))]) + rng.bytes(int(rng.integers(0, 60))), 10**12 + n)
            for n in range(200)
        )
        seen.feed(rigrecords.decode(data))
        assert seen.rows() == []


def test_latencies_of_a_minute_are_no_percentile_of_a_second(tmp_path):
    """A long step has its histogram once a minute: it stands for all of it."""
    write = {"io_bytes": 0, "clat_ns": {"mean": 9e5}, "lat_ns": {"mean": 9e5}}

    def line(s, with_bins):
        job = {**write, "total_ios": 2000 * s, "runtime": 1000 * s, "clat_ns": {"mean": 9e5, "N": 2000 * s}}
        job["lat_ns"] = {"mean": 9e5, "N": 2000 * s, **({"bins": {"900000": 2000 * s}} if with_bins else {})}
        return json.dumps({"t_ns": s * 10**9, "jobs": [{"jobname": "x", "error": 0, "write": job}]}) + "\n"

    (tmp_path / "out.json").write_text("".join(line(s, s in (1, 60)) for s in range(1, 62)))
    rows = Load(tmp_path / "out.json").rows()
    assert len(rows) == 61 and {row["iops"] for row in rows} == {2000} and {row["lat_us"] for row in rows} == {900}
    heat = {row["t_ns"] // 10**9: (sum(n for _, n in row["heat"]), row["heat_s"]) for row in rows if row["heat"]}
    assert heat == {1: (2000, 1.0), 60: (118_000, 59.0)}
    assert rows[0]["p99_us"] == pytest.approx(900, rel=0.01) and {row["p99_us"] for row in rows[1:]} == {None}


def test_a_played_trace_has_rows_too(tmp_path):
    out = tmp_path / "out.json"
    out.write_text(
        '{"t_ns": 5000000000, "span_s": 1.0, "iops": 70, "bw_bytes": 280000}\n{"t_ns": 6000000000, "iops": -1}\n'
    )
    load = Load(out)
    assert [(row["iops"], row["bw"]) for row in load.rows()] == [(70, 280000)] and load.rows() == []


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
@pytest.mark.parametrize("key", ["step", "fio", "played"])
def test_a_step_whose_name_is_none_of_a_file_has_no_rows(whole, tmp_path, key, name):
    """As `report`, `push` and `export` have it; the page of such a run stood still."""
    made = tmp_path / "odd"
    shutil.copytree(whole, made)
    events = [{k: v for k, v in event.items() if k not in ("line", "crc")} for event in journal.events(made)]
    synthetic_run.seal(made, [e | ({key: name} if e.get("step") == "flush" else {}) for e in events])
    pieces_, rest = all_of(Tail(made))[0], all_of(Tail(whole))[0]
    assert pieces_["load"] == rest["load"] and pieces_["seconds"] == rest["seconds"]
