"""Rows of the lake by themselves: samples and the gaps between them, so many at a time, and the cuts of a campaign."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import stream
import synthetic_plan
from lake_runs import asked, lake_of, run
from test_replay import ROWS, TIMES_MS, folder_of

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import pieces, reduced, samples
from ssdrig.meter.power import Gaps
from ssdrig.publish.lake import place, rows, sampling, seconds, write
from ssdrig.reading import results, table, timeline, trust
from ssdrig.runs import journal

NONE = np.empty(0, np.int64)


def piece(number: int, t_ns: list[int], *gaps: tuple[int, int, int, float]) -> pieces.Piece:
    """Samples from `number` on; t_ns with lead; gaps: (number of the sample behind, lost, ns, J)."""
    n, t = len(t_ns) - 1, np.array(t_ns)
    at, lost, ns = np.array([gap[:3] for gap in gaps], np.int64).reshape(-1, 3).T
    gaps_ = Gaps(at, lost, ns, np.array([gap[3] for gap in gaps]), NONE, NONE)
    facts, raw, empty = json.loads(stream.hello())["rails"][0], np.full(n, 100, np.int32), np.zeros(n + 1)
    return pieces.Piece(number, t[1:], None, 0, n, 0.0, NONE, t, empty, empty, empty, gaps_, facts, raw, raw)


@pytest.mark.parametrize(
    ("of", "dt_ns", "lost"),
    [
        (piece(0, [0, 10, 20, 30]), [10, 10, 10], [0, 0, 0]),
        (piece(50, [0, 10, 50, 60], (51, 3, 30, 0.5)), [10, 10, 10], [0, 3, 0]),
        (piece(50, [0, 40, 50, 60], (50, 3, 30, 0.5)), [10, 10, 10], [3, 0, 0]),
        (piece(50, [0, 10, 50, 60], (51, 3, 41, 0.5)), [10, 0, 10], [0, 3, 0]),
        # before the first of the run there is no sample: it stands for its own time
        (piece(0, [0, 10, 20, 30], (0, 3, 30, 0.0)), [10, 10, 10], [3, 0, 0]),
        (piece(0, [0, 10, 50, 60], (1, 3, 30, 0.5)), [10, 10, 10], [0, 3, 0]),
        (piece(0, [0, 10, 50, 60], (0, 1, 7, 0.0), (1, 3, 30, 0.5)), [10, 10, 10], [1, 3, 0]),
    ],
)
def test_a_sample_stands_for_the_time_since_the_one_before_but_for_the_gap(of, dt_ns, lost):
    columns = sampling.columns(of)
    assert columns["dt_ns"].tolist() == dt_ns and columns["lost"].tolist() == lost
    assert columns["t_ns"].tolist() == of.t_ns[1:].tolist()
    assert columns["gap_ns"].sum() == of.gaps.ns.sum() and columns["gap_J"].sum() == of.gaps.J.sum()


def test_more_than_32_bits_of_time_without_a_sample_is_no_row():
    """Such a stretch is a gap, which is told."""
    assert sampling.columns(piece(0, [0, 10, 10 + 0x7FFFFFFF]))["dt_ns"][1] == 0x7FFFFFFF
    with pytest.raises(RigError):
        sampling.columns(piece(0, [0, 10, 11 + 0x7FFFFFFF]))


def test_groups_of_samples_are_full_but_for_the_last(tmp_path, monkeypatch):
    made = run(tmp_path, "made", [1000, 1000])
    monkeypatch.setattr(pieces, "FRAMES_AT_ONCE", 10)
    events, all_ns = journal.events(made), samples.load(made).t_ns
    utc = timeline.clock(journal.run_header(made), events)
    heads = reduced.heads(made)
    ((rail, name),) = sampling.rails(heads)
    same = {"run": "made", "export": "0", "drive": "x", "part": 1, "rail": name}
    first = next(iter(sampling.tables(made, rail, heads, utc, same))).num_rows
    assert first == len(all_ns) and name == "5V"  # far below GROUP
    of_a_piece = int(heads[0].frames(rail).n[:10].sum())
    for group in (of_a_piece, of_a_piece + 1, 2 * of_a_piece - 1):
        monkeypatch.setattr(sampling, "GROUP", group)
        tables = [*sampling.tables(made, rail, heads, utc, same)]
        assert {table.num_rows for table in tables[:-1]} == {group} and 0 < tables[-1].num_rows <= group
        assert [t_ns for table in tables for t_ns in table["t_ns"].to_pylist()] == all_ns.tolist()


def test_a_poll_that_failed_is_no_row(tmp_path):
    """Nor one that had not ended, nor one whose document is gone."""
    (part,) = rows.read_parts(run(tmp_path, "made", [1000, 1000]))
    ends = [event for event in part.events if event["kind"] == "smart.end"]
    polls = [*rows.smart(part)]
    assert len(polls) == len(ends) > 1 and polls[0]["poll_ms"] == 10
    assert polls[0]["t_ns"] == ends[0]["t_ns"] - 5_000_000  # in its middle
    failed = [event | {"ok": False} for event in ends]
    begun = [event for event in part.events if event["kind"] == "smart.start"]
    assert [*rows.smart(part._replace(events=[*failed, *begun, ends[1], ends[0] | {"n": 99}]))] == [polls[1]]


def test_counters_are_whole_and_readings_are_not(tmp_path, monkeypatch):
    (part,) = rows.read_parts(run(tmp_path, "made", [1000, 1000]))
    reading = {"t_ns": None, "power_on_hours": 12.0, "temperature_C": 40.5}
    monkeypatch.setattr(rows.counters, "snapshot", lambda _: reading)
    end = next(event for event in part.events if event["kind"] == "smart.end")
    (row,) = rows.smart(part._replace(events=[end]))
    assert (row["temperature_C"], row["t_ns"]) == (40.5, end["t_ns"]) and "poll_ms" not in row
    assert row["power_on_hours"] == 12 and type(row["power_on_hours"]) is int


PART = SimpleNamespace(at=lambda t_ns: {"t_ns": t_ns})


def result(figures, k=1):
    act = SimpleNamespace(path="load", do="load", point={})
    row = table.Row(act, None, "done", notes=["n"], windows={"late": figures}, k=k, t0_ns=10**12)
    (row_,) = results.of(SimpleNamespace(rows=[row]))
    return row_


def test_a_window_of_a_dilated_drive_is_told_in_the_host_s_time():
    row = rows._figure(PART, result({"t0_s": 1.5, "t1_s": 3.0}, 10))
    assert (row["t_ns"], row["end_ns"]) == (10**12 + 15 * 10**9, 10**12 + 30 * 10**9)
    assert (row["step"], row["window_name"], row["notes"], row["steady"]) == ("load", "late", ["n"], None)


def test_a_window_has_the_errors_of_its_figures_and_what_is_not_to_be_trusted():
    strip = [trust.Item(name, "bad" if name in ("host", "gaps") else "ok").as_json() for name in trust.NAMES]
    values = {"iops_mean": 100.0, "errors": {"iops_mean": 2.5, "lat_p99_us": None}, "trust": strip}
    row = rows._figure(PART, result(values))
    assert row["iops_mean_error"] == 2.5 and row["trust_bad"] == ["host", "gaps"]
    assert not {"lat_p99_us_error", "errors", "trust"} & {*row}
    assert rows._figure(PART, result({"iops_mean": 1.0}))["trust_bad"] is None


def test_a_played_trace_has_seconds_by_direction(tmp_path):
    folder_of(tmp_path / "played/mine", ROWS, TIMES_MS)
    both, io = seconds._io(tmp_path, {"step": "play", "played": "mine"})
    assert both.iops.tolist() == [1, 2, 1]
    assert {name: of.iops.tolist() for name, of in io.items()} == {"read": [0, 2, 0], "write": [1, 0, 1]}
    assert seconds._io(tmp_path, {"step": "play", "played": "other"}) == (None, {})


def test_a_gap_counts_in_the_step_that_it_lies_in(tmp_path):
    """In no other step's first or last second."""
    made = run(tmp_path, "made", lose_frames=(60, 61, 90, 91))
    t_ns = samples.load(made).t_ns
    (gaps,) = (rail.gaps for rail in reduced.load_rails(made, t_ns[:1]))
    middle_ns = (gaps.to_ns[0] + gaps.from_ns[-1]) // 2
    edges_ns = np.array([t_ns[0] - 10**9, middle_ns - 10**6, middle_ns + 10**6, t_ns[-1] + 10**9])
    powers = reduced.load_rails(made, edges_ns)
    all_of = gaps.lost.tolist()
    assert len(all_of) == 2
    for part, lost in ((edges_ns, [all_of[0], 0, all_of[1]]), (edges_ns[1:3], [0]), (edges_ns[2:], [all_of[1]])):
        assert seconds._of_power(powers, part)["samples_lost"][0].tolist() == lost


def test_what_an_export_says_that_it_wrote(tmp_path):
    made, lake = run(tmp_path, "made", [1000, 1000]), tmp_path / "lake"
    done = write.export(made, place.open_place(str(lake)), "berlin")
    sizes = {name: (lake / name).stat().st_size for name in done.files}
    *_, mark = done.files
    assert mark.endswith("/made.parquet") and done.bytes == sum(sizes.values()) - sizes[mark]
    ((name, of_samples),) = ((name, n) for name, n in sizes.items() if "kind=sample/" in name)
    assert name.endswith(f"/made--{done.export}--0.parquet") and done.sample_bytes == of_samples
    assert done.new and done.samples == len(samples.load(made).t_ns)


def test_a_run_of_another_lab_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    made = run(tmp_path, "made", [1000, 1000])
    where = lake_of(tmp_path / "lake", made).place
    monkeypatch.setattr(write, "_write", lambda *_: pytest.fail("written"))
    with pytest.raises(UsageError, match="use --lab berlin"):
        write.export(made, where, "rome")


def test_a_step_whose_last_second_is_short_says_so(tmp_path):
    (part,) = rows.read_parts(run(tmp_path, "made", [1000, 1000]))
    step = next(step_ for step_ in seconds.steps(part.folder, part.events) if step_.path == "load")
    more = step._replace(edges_ns=np.append(step.edges_ns, step.edges_ns[-1] + 10**9))  # one direction went on
    short = step._replace(both=replace(step.both, partial=True))
    for of, partial in ((step, [0, 0]), (short, [0, 1]), (more, [0, 0, 1]), (step._replace(both=None), [0, 0])):
        (table,) = seconds.tables([of], [], part.utc, {})
        assert table["partial"].to_pylist() == partial


def test_rows_are_written_so_many_at_a_time(monkeypatch):
    monkeypatch.setattr(write, "ROWS", 3)
    writer = write._Writer(None, "folder", "stem", {"run": "made"})
    tables = [*writer.batches("event", ({"round": n} for n in range(7)))]
    assert [table["round"].to_pylist() for table in tables] == [[0, 1, 2], [3, 4, 5], [6]]
    assert {name for table in tables for name in table["run"].to_pylist()} == {"made"}


def test_a_campaign_s_cuts(tmp_path):
    import synthetic_cuts

    made = synthetic_cuts.write(tmp_path, 20, lies=0.2)
    lake = lake_of(tmp_path / "lake", made)
    (campaign,) = (row.result for row in table.load(made).rows if row.act.do == "cuts")
    (row,) = asked(
        lake,
        "SELECT count(*) AS judged, count(*) FILTER (failed) AS failing, sum(commands) AS commands"
        " FROM cut WHERE judged AND control IS NULL",
    )
    assert row == {name: campaign[name] for name in ("judged", "failing", "commands")} and row["failing"] > 0


def test_a_round_is_a_number_that_64_bits_hold():
    most = (1 << 63) - 1
    assert [rows.number_of(n) for n in (3, most, most + 1, -most - 1, 1.0, True)] == [3, most, None, None, None, None]


def test_a_run_has_the_parameters_of_its_plan(tmp_path):
    made = run(tmp_path, "made", [1000, 1000])
    (row,) = asked(lake_of(tmp_path / "lake", made), "SELECT params FROM run")
    assert json.loads(row["params"]) == json.loads((made / "run.json").read_text())["plan"]["params"]


def test_a_lake_has_each_row_of_the_report_with_its_values_and_errors(tmp_path):
    for made in (run(tmp_path, "made", [1000, 1200, 900, 1000]), synthetic_plan.grid(tmp_path, rounds=2)):
        lake = lake_of(tmp_path / f"lake-{made.name}", made)
        got = {(r["step"], r["round"], r["point"], r["window_name"]): r for r in asked(lake, "SELECT * FROM figure")}
        wanted = {}
        for row in table.load(made).rows:
            point = json.dumps(dict(row.act.point), sort_keys=True) if row.act.point else None
            wanted |= {(row.act.path, row.round, point, name): of for name, of in row.windows.items() if of}
        assert {*got} == {*wanted}
        for at, of in wanted.items():
            for key in ("iops_mean", "power_mean_W", "energy_J", "wa", "lat_p99_us"):
                assert got[at][key] == of.get(key), (at, key)
            errors = {key[:-6]: got[at][key] for key in got[at] if key.endswith("_error") and got[at][key] is not None}
            known = {**(of.get("errors") or {}), "wa": of.get("wa_error")}
            assert errors == {key: value for key, value in known.items() if value is not None}
