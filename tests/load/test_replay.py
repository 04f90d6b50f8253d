"""The step `replay`: what it costs and needs, what the player's process leaves, what is read of it, what a kill
leaves."""

import io
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from small_plans import DRIVE, FILLED, HEAD
from synthetic_pts import Run
from trace_rows import rows_of

from ssdrig.base.errors import DriveError, LoadError, UsageError
from ssdrig.load import fiotext, played, playedlog, trace_process, traceform
from ssdrig.load.trace_player import How
from ssdrig.load.trace_published import BENCHES
from ssdrig.load.traceform import FLUSH, FUA, READ, TRIM, WRITE
from ssdrig.plan import cost, grammar, state
from ssdrig.plan.kinds import replay
from ssdrig.publish.influx import points
from ssdrig.reading.row import Row, Table
from ssdrig.reading.table import load as load_table
from ssdrig.run import budget, cut_short, prepare, standing
from ssdrig.views import step_results
from ssdrig.views.context import Context
from ssdrig.views.replay import html as replay_html

PLAY = '[[step]]\nname = "play"\ndo = "replay"\n'
MADE = PLAY + 'bench = "bench-light-like"\nios = 5000\nrange = "128 MiB"\nidle_cap = "25 ms"\n'
MS = 1_000_000
SECOND = 1000 * MS


def prepared(tmp_path, steps, **more):
    path = tmp_path / "plan.toml"
    path.write_text(HEAD + steps)
    return prepare.prepare(str(path), DRIVE, **more)


def trace_file(path, *rows, **words):
    rows = rows_of(*rows)
    traceform.write(path, [rows], lambda: {"name": "mine", "source": "a test", "depths": "bursts", **words})
    return rows


def folder_of(path, rows, times_ms, how=None, ended=True):
    """A folder as the player leaves it: of each I/O (intended, issued, done)."""
    path.mkdir(parents=True)
    trace_file(path / "t.trace", *rows.tolist())
    header, _ = traceform.read(path / "t.trace")
    document = {"trace": "t.trace", "header": header, "how": how or {"closed": False}}
    (path / "start.json").write_text(json.dumps(document))
    (path / "out.json").write_text(json.dumps({"ended": ended, "cpu_s": 0.5}) + "\n")
    records = np.array([tuple(10 * SECOND + int(ms * MS) for ms in row_ms) for row_ms in times_ms], played.RECORD)
    (path / "records.bin").write_bytes(records.tobytes())
    return path


ROWS = rows_of(
    (0, 0, 4096, WRITE),
    (0, 8192, 8192, READ),
    (500 * MS, 0, 0, FLUSH),
    (1200 * MS, 4096, 4096, READ),
    (2400 * MS, 0, 1 << 20, TRIM),
    (2600 * MS, 0, 65536, WRITE),
)
TIMES_MS = [(0, 0, 1), (0, 0.5, 1100), (500, 500, 501), (1200, 1200, 1202), (2400, 2400, 2401), (2600, 2602, 2650)]


def test_bytes_time_and_range_are_those_of_the_rows_before_anything_starts(tmp_path):
    prepared_ = prepared(tmp_path, FILLED + MADE)
    act = prepared_.acts[-1]
    made = replay.asked(act, DRIVE)
    rows = np.concatenate(list(replay_rows(made)))
    written = int(rows["length_bytes"][rows["op"] == WRITE].sum())
    costs = cost.of(act, DRIVE)
    assert act.trace.ios == len(rows) == 5000 and act.trace.scaled
    assert act.amount_bytes == act.trace.written_bytes == written and costs.written_bytes == (written, written)
    gaps = np.minimum(np.diff(rows["t_ns"], prepend=0), 25 * MS)
    assert act.trace.lasts_s == pytest.approx(gaps.sum() / 1e9, rel=1e-6) and costs.time_s[0] >= act.trace.lasts_s
    assert prepare.as_json(prepared_)["acts"][-1]["written_bytes"] == [written, written]
    listed = prepared(tmp_path, FILLED + MADE, exact=False).acts[-1]
    assert listed.amount_bytes == pytest.approx(written, rel=0.02)
    assert listed.trace.lasts_s == pytest.approx(act.trace.lasts_s, rel=0.1)


def replay_rows(made):
    from ssdrig.load import trace_generate

    return trace_generate.generate(made)


def test_a_trace_that_reads_wants_data_in_its_range(tmp_path):
    assert prepared(tmp_path, FILLED + MADE).leaves == state.State("written", DRIVE["capacity_bytes"], "play")
    with pytest.raises(UsageError, match="data in all 134 MB that play reads"):
        prepared(tmp_path, FILLED.partition('[[step]]\nname = "fill"')[0] + MADE)
    path = tmp_path / "w.trace"
    trace_file(path, (0, 0, 4096, WRITE), (5, 4096, 4096, WRITE))
    own = PLAY + f'file = "{path}"\nrange = "16 MiB"\n'
    assert prepared(tmp_path, own).leaves.name == "written"  # it reads nothing
    trace_file(tmp_path / "t.trace", (0, 0, 1 << 20, TRIM))
    trimmed = prepared(tmp_path, FILLED + PLAY + f'file = "{tmp_path}/t.trace"\nrange = "16 MiB"\n')
    assert trimmed.leaves.valid_bytes == 0


def test_what_cannot_be_played_on_the_drive_is_said_before(tmp_path):
    path = tmp_path / "far.trace"
    trace_file(path, (0, 32 << 20, 4096, WRITE))
    with pytest.raises(UsageError, match="a trace within the 16 MiB of play"):
        prepared(tmp_path, PLAY + f'file = "{path}"\nrange = "16 MiB"\n')
    trace_file(path, (0, 512, 512, WRITE))
    with pytest.raises(UsageError, match="I/Os in blocks of 4096 bytes for play"):
        prepared(tmp_path, PLAY + f'file = "{path}"\nrange = "16 MiB"\n')
    trace_file(path, (0, 0, 4096, WRITE), timed=False)
    with pytest.raises(UsageError, match="a trace with times"):
        prepared(tmp_path, PLAY + f'file = "{path}"\nrange = "16 MiB"\n')
    assert prepared(tmp_path, PLAY + f'file = "{path}"\nrange = "16 MiB"\ntiming = "closed"\n').acts
    with pytest.raises(UsageError, match="a bench with player for step play"):
        prepared(tmp_path, FILLED + MADE, capabilities=frozenset({"purge"}))


def test_another_trace_is_another_job(tmp_path):
    one, same, other = (prepared(tmp_path, FILLED + MADE + f"seed = {seed}\n").jobs_crc for seed in (1, 1, 2))
    assert one == same != other
    assert prepared(tmp_path, FILLED + MADE + "speed = 2\n").jobs_crc != one


def test_a_budget_counts_what_the_trace_writes(tmp_path):
    act = prepared(tmp_path, FILLED + MADE).acts[-1]
    small = budget.Budget(act.amount_bytes - 1)
    assert "play comes next" in small.why_not(act)
    small = budget.Budget(act.amount_bytes)
    assert small.why_not(act) is None
    small.wrote(act, act.amount_bytes)
    assert small.left_bytes() == 0


def test_the_seconds_are_those_of_the_records(tmp_path):
    """Reads and writes count where they end; flushes and trims are no I/Os of the grid."""
    folder = folder_of(tmp_path / "play", ROWS, TIMES_MS)
    seconds = playedlog.load(folder)
    assert seconds.iops.tolist() == [1, 2, 1] and seconds.bw_bytes.tolist() == [4096, 12288, 65536]
    assert seconds.t_ns.tolist() == [10 * SECOND, 11 * SECOND, 12 * SECOND] and seconds.partial
    assert seconds.lat_mean_ns.tolist() == [MS, (1099.5 + 2) / 2 * MS, 48 * MS]
    total = seconds.totals
    assert (total["ios"], total["bytes"], total["runtime_ms"]) == (4, 81920, 2650)
    assert total["lat_sum_ns"] == 1150.5 * MS and total["cpu_percent"] == pytest.approx(100 * 0.5 / 2.65)
    assert seconds.hist[:, 2].sum() == 4 and seconds.hist_of == "lat" and seconds.directions == ("read", "write")
    assert fiotext.plat_ns(seconds.hist[-1, 1]) == pytest.approx(48 * MS, rel=0.01)
    reads = playedlog.load(folder, "read")
    assert reads.iops.tolist() == [0, 2, 0] and reads.totals["bytes"] == 12288 and reads.directions == ("read",)


def test_figures_of_a_played_trace(tmp_path):
    figures = playedlog.figures(folder_of(tmp_path / "play", ROWS, TIMES_MS), 1)
    assert (figures["trace"], figures["ios"], figures["of_ios"], figures["bytes"]) == ("mine", 6, 6, 81920)
    assert figures["reads"]["mean_us"] == pytest.approx((1_099_500 + 2000) / 2) and figures["writes"]["ios"] == 2
    assert figures["time_s"] == pytest.approx(2.65) and figures["lag"]["max_us"] == 2000
    assert figures["reads"]["over_100ms_percent"] == 50 and figures["reads"]["p99_us"] is None
    assert figures["not_known"]["reads.p99_us"] == "2 I/Os: it takes 1000"


def test_a_play_that_was_cut_short_says_the_least_and_the_most_that_it_wrote(tmp_path):
    folder = folder_of(tmp_path / "part/played/play", ROWS, TIMES_MS[:2], ended=False)
    assert playedlog.written_bytes(folder) == (4096, 4096 + 65536)
    assert playedlog.written_bytes(folder, 20 * SECOND) == (0, 65536)
    assert cut_short.written(tmp_path / "part", None, None, "nbd") == (4096, 4096 + 65536)
    whole = folder_of(tmp_path / "whole", ROWS, TIMES_MS)
    assert playedlog.written_bytes(whole) == (69632, 69632)
    assert playedlog.written_bytes(whole, 11 * SECOND) == (65536, 65536)
    (folder / "records.bin").write_bytes(b"")
    assert playedlog.written_bytes(folder) == (0, 69632)
    with pytest.raises(LoadError, match="I/Os that have ended"):
        playedlog.load(folder)


def test_an_interrupted_replay_goes_back_to_where_its_state_comes_from(tmp_path):
    acts = prepared(tmp_path, FILLED + MADE).acts
    events = [{"kind": "step.start", "step": "purge"}, {"kind": "step.end", "step": "purge", "ok": True}]
    events += [{"kind": "step.start", "step": "fill"}, {"kind": "step.end", "step": "fill", "ok": True}]
    done = standing.past(acts, [({}, [*events, {"kind": "step.start", "step": "play"}])])
    assert (done.at, done.state.name, done.state.workload) == (2, "written", "play")
    todo = standing.todo(acts, done, state.interrupted(done.state))
    assert [act.path for act in todo.acts] == ["purge", "fill", "play"] and done.jobs == 1


class Looked:
    """What the process says each second, and when it is asked to end."""

    def __init__(self, after=10**9):
        self.seconds, self.after = [], after

    def second(self, now):
        self.seconds.append(now)

    def stop(self):
        return len(self.seconds) >= self.after


def spaced(n, gap_ms):
    """n writes of 4 KiB, side by side."""
    return [(i * gap_ms * MS, i * 4096, 4096, WRITE) for i in range(n)]


@pytest.mark.slow
def test_the_player_is_a_process_of_its_own(tmp_path):
    """On a file: each second's words, its records, its CPU time; asked to end it keeps what has ended."""
    target, trace = tmp_path / "target", tmp_path / "t.trace"
    target.write_bytes(bytes(4 << 20))
    trace_file(trace, *spaced(1000, 60))  # it would take a minute: there is time to end it
    looked = Looked(after=1)
    ended = trace_process.run(str(target), trace, How(), tmp_path / "cut", looked.second, looked.stop)
    assert ended.stopped and ended.summary == {"ended": False} and looked.seconds[0]["total_bytes"] > 0
    cut = os.path.getsize(tmp_path / "cut/records.bin") // played.RECORD.itemsize
    assert cut < 1000
    trace_file(trace, *spaced(1000, 2))
    looked = Looked()
    ended = trace_process.run(str(target), trace, How(speed=4), tmp_path / "whole", looked.second, looked.stop)
    assert not ended.stopped and ended.summary["ended"] and ended.summary["cpu_s"] > 0
    assert playedlog.load(tmp_path / "whole").totals["bytes"] == 1000 * 4096
    assert playedlog.written_bytes(tmp_path / "whole") == (1000 * 4096, 1000 * 4096)


def test_a_host_that_was_suspended_ends_no_player(monkeypatch):
    """It had said nothing yet when the host looked last, and its last words lie in the pipe when that goes on."""
    reads, writes = os.pipe()
    now_s = [0.0]
    monkeypatch.setattr(trace_process, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(trace_process, "LOOK_S", 0.01)

    def suspended():
        if not now_s[0]:
            now_s[0] = 1000.0
            os.write(writes, b'{"ended": true}\n')
            os.close(writes)
        return False

    with os.fdopen(reads, "rb", 0) as stdout:
        player, out = SimpleNamespace(stdout=stdout), io.BytesIO()
        assert trace_process._follow(player, out, lambda row: None, suspended) == ({"ended": True}, False)
    assert out.getvalue() == b'{"ended": true}\n'


@pytest.mark.slow
def test_what_the_player_raises_is_raised(tmp_path):
    trace = tmp_path / "t.trace"
    trace_file(trace, *spaced(2, 1))
    with pytest.raises(DriveError, match="No such file"):
        trace_process.run(str(tmp_path / "none"), trace, How(), tmp_path / "a")
    (tmp_path / "small").write_bytes(bytes(4096))
    with pytest.raises(UsageError, match="a trace within 4096 bytes"):
        trace_process.run(str(tmp_path / "small"), trace, How(), tmp_path / "b")


def test_the_view_has_each_figure_or_why_there_is_none(tmp_path):
    act = SimpleNamespace(label="play", do="replay")
    row = Row(
        act, None, "done", result={"kind": "played"} | playedlog.figures(folder_of(tmp_path / "p", ROWS, TIMES_MS), 1)
    )
    row.windows["all"] = {"energy_J": 5.25, "energy_J_per_GB": 64.1, "power_mean_W": 1.98}
    table = SimpleNamespace(of=lambda path: [row])
    html = replay_html.replay(Context([table], ["drive"], {"view": "replay", "of": "play"}))
    for words in ("Service time, reads, mean", "<td>550_750</td>", "<td>5.25</td>", "Lag, P99", "6 I/Os of mine"):
        assert words.replace("_", "\u202f") in html, words
    assert 'title="2 I/Os: it takes 1000">–' in html
    assert replay_html.replay(Context([SimpleNamespace(of=lambda path: [])], ["drive"], {"of": "play"}))


def test_a_play_at_other_times_states_what_is_left_of_the_pauses(tmp_path):
    how = {"closed": False, "speed": 2.0, "idle_cap_ns": 100 * MS}
    service = {"reads": {"ios": 2, "mean_us": 77.0, "p99_us": "x"}, "writes": None, "other": 3}
    rows = ROWS.copy()
    rows["flags"][0] = FUA
    folder = folder_of(tmp_path / "p", rows, TIMES_MS, how)
    start = json.loads((folder / "start.json").read_text())
    start["header"]["service"] = service
    (folder / "start.json").write_text(json.dumps(start))
    figures = playedlog.figures(folder, 1)
    # gaps of 500, 700, 1200 and 200 ms, each cut to 100 ms and played in 50
    assert figures["times"] == {"trace_s": 2.6, "idle_s": 2.6, "play_s": 0.2, "play_idle_s": 0.2}
    assert figures["fua_writes"] == 1
    assert figures["service"] == {"reads": {"ios": 2, "mean_us": 77.0}}
    assert figures["depth"]["max"] == 2 and figures["trace_depth"]["max"] == 2
    row = Row(SimpleNamespace(label="play", do="replay"), None, "done", result={"kind": "played"} | figures)
    row.windows["all"] = {}
    lines = {name: values for name, _, values in replay_html.lines_of([row])}
    assert lines["Service time of the original, reads, mean"][0][0] == 77.0
    assert lines["Writes with FUA"][0][0] == 1
    assert any("0.2" in line and "2.6" in line for line in step_results.played(row.result))
    assert step_results.played(row.result | {"times": {**figures["times"], "play_s": 2.6}}) == step_results.played(
        {key: value for key, value in row.result.items() if key != "times"}
    )


def test_a_folder_with_a_damaged_how_is_one_error(tmp_path):
    for n, how in enumerate(({"speed": "fast"}, {"speed": 0}, {"idle_cap_ns": "x"}, {"idle_cap_ns": -1})):
        with pytest.raises(LoadError):
            playedlog.figures(folder_of(tmp_path / str(n), ROWS, TIMES_MS, how), 1)


def played_twice(runs) -> Table:
    """Light on an empty and on a full drive: 4000 I/Os in 8 s, every fourth a read, the full drive three times slower;
    one I/O in 500 takes 20 ms, one in 2000 150 ms."""
    w = Run(runs, "bench-light-like", "quick")
    rows = [(2 * i * MS, 65536 * (i % 512), 4096 << i % 5, READ if i % 4 == 0 else WRITE) for i in range(4000)]
    slow_ms = {1: 20.0, 1001: 150.0}
    for path, factor, watts in (("empty", 1, 1.5), ("full", 3, 2.5)):
        w.event("step.start", step=path, played=path)
        w._power(watts)
        begin_ms = w.t_ns / MS - 10_000  # folder_of puts all times 10 s later
        took_ms = [factor * slow_ms.get(i % 2000 if i % 500 == 1 else 0, 0.1 + i % 7 / 100) for i in range(4000)]
        times_ms = [(begin_ms + 2 * i, begin_ms + 2 * i + 0.01, begin_ms + 2 * i + took_ms[i]) for i in range(4000)]
        folder_of(w.path / "played" / path, rows_of(*rows), times_ms)
        w.t_ns += 8 * SECOND
        w.event("step.end", step=path, ok=True, played=path, bytes=sum(row[2] for row in rows))
    return load_table(w.end())


def test_the_benches_are_those_that_are_made():
    assert replay.KEYS["bench"].words == (*BENCHES, "one-pass")
    for name in BENCHES:
        plan = grammar.read(*grammar.find(name.replace("jesd219-client-like", "jesd219-client")))
        assert plan.params["ios"] == BENCHES[name].ios
        assert name in [step.keys.get("bench") for step in grammar.every(plan.steps)]


def test_the_seconds_of_a_played_trace_are_points_of_each_direction(tmp_path):
    folder_of(tmp_path / "played/play", ROWS, TIMES_MS)
    assert points.job_of({"step": "play", "played": "play"}) == "played/play"
    by_step = dict(points.fio_seconds(tmp_path, "played/play"))
    assert {name: seconds.iops.tolist() for name, seconds in by_step.items()} == {"read": [0, 2, 0], "write": [1, 0, 1]}
