"""Traces made from published statistics: what was published is measured again, from the rows alone."""

import json

import numpy as np
import pytest
from trace_rows import rows_of

from ssdrig import cli
from ssdrig.base.errors import UsageError
from ssdrig.load import trace_facts, trace_generate, trace_mix, trace_shown, traceform
from ssdrig.load.trace_player import How
from ssdrig.load.trace_published import BENCHES, SIZE_ROWS


def made(bench, **more) -> np.ndarray:
    return np.concatenate(list(trace_generate.generate(trace_generate.Asked(bench, **more))))


@pytest.mark.slow
@pytest.mark.parametrize(
    "bench, scales",
    [
        ("bench-destroyer-like", (0.0005, 0.001, 0.002)),
        ("bench-heavy-like", (0.005, 0.01, 0.02)),
        ("bench-light-like", (0.02, 0.05, 0.1)),
    ],
)
def test_totals_and_rows_are_the_published_ones(bench, scales):
    source = BENCHES[bench]
    for seed in range(1, 6):
        for scale in scales:
            rows = made(bench, seed=seed, scale=scale)
            assert traceform.why_not(rows) is None
            figures = trace_shown.figures([rows])
            for name in ("reads", "writes", "read_bytes", "written_bytes"):
                assert figures[name] == pytest.approx(getattr(source, name) * scale, rel=0.01), name
            assert figures["read_mean_bytes"] == pytest.approx(source.read_bytes / source.reads, rel=0.01)
            assert figures["write_mean_bytes"] == pytest.approx(source.written_bytes / source.writes, rel=0.01)
            assert list(figures["size_percent"].values()) == pytest.approx(source.sizes, abs=1.0)
            assert list(figures["depth_percent"].values()) == pytest.approx(source.depths, abs=0.5)
            assert figures["sequential_percent"] == pytest.approx(source.sequential, abs=1.0)


def test_sizes_of_light_and_heavy_are_the_published_rows():
    """Their totals and sizes agree with each other."""
    for bench in ("bench-heavy-like", "bench-light-like"):
        sizes, reads, writes = trace_mix.cells(BENCHES[bench], 512)
        row = 100 * np.bincount(trace_mix.row_of(sizes), reads + writes, len(SIZE_ROWS))
        assert row == pytest.approx(BENCHES[bench].sizes, abs=0.05) and min(reads.min(), writes.min()) >= 0


@pytest.mark.parametrize("block_bytes", [512, 4096])
def test_a_clients_stand_in_has_the_writes_of_light_and_trims_and_flushes_between(block_bytes):
    source, light = BENCHES["jesd219-client-like"], BENCHES["bench-light-like"]
    for seed in (1, 2):
        rows = made("jesd219-client-like", seed=seed, scale=0.1, block_bytes=block_bytes, working_set_bytes=1 << 30)
        assert traceform.why_not(rows) is None and not np.any(
            (rows["offset_bytes"] | rows["length_bytes"]) % block_bytes
        )
        figures = trace_shown.figures([rows])
        assert figures["reads"] == 0 and figures["ios"] == source.ios // 10 + 1
        for name in ("writes", "trims", "flushes", "written_bytes"):
            assert figures[name] == pytest.approx(getattr(source, name) / 10, rel=0.01), name
        assert figures["write_mean_bytes"] == pytest.approx(light.written_bytes / light.writes, rel=0.01)
        assert figures["trimmed_bytes"] == figures["trims"] << 17 and figures["range_bytes"] <= 1 << 30
        assert figures["sequential_percent"] == pytest.approx(70, abs=1.5)
    asked = trace_generate.Asked("jesd219-client-like", scale=0.1, block_bytes=block_bytes, working_set_bytes=1 << 30)
    exact, guess = trace_facts.of_bench(asked, How()), trace_facts.guessed(asked, How())
    assert guess.written_bytes == pytest.approx(exact.written_bytes, rel=0.01)
    assert guess.trimmed_bytes == pytest.approx(exact.trimmed_bytes, rel=0.01) and guess.ios == exact.ios


def test_a_drive_of_4096_byte_blocks_gets_nothing_smaller():
    rows = made("bench-destroyer-like", scale=0.002, block_bytes=4096)
    assert not np.any((rows["offset_bytes"] | rows["length_bytes"]) % 4096)
    figures, source = trace_shown.figures([rows]), BENCHES["bench-destroyer-like"]
    assert figures["written_bytes"] == pytest.approx(source.written_bytes * 0.002, rel=0.01)
    assert figures["size_percent"]["4K"] == pytest.approx(6.0 + 26.2, abs=2.1)


def test_the_same_parameters_make_the_same_trace_and_a_seed_another():
    one, two, other = (made("bench-light-like", scale=0.01, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def test_the_working_set_and_the_idle_cap_are_kept():
    small = 64 << 20
    rows = made("bench-heavy-like", scale=0.005, working_set_bytes=small)
    ends = rows["offset_bytes"] + rows["length_bytes"].astype(int)
    assert small * 0.99 < ends.max() <= small
    assert np.diff(rows["t_ns"]).max() == trace_generate.IDLE_CAP_NS
    full = made("bench-heavy-like", scale=0.005, idle_cap_ns=None)
    assert np.diff(full["t_ns"]).max() > 2e9
    hot = rows["offset_bytes"] < 0.2 * small
    assert 0.7 < hot[~trace_shown.sequential(rows)].mean() < 0.9


def test_sequential_is_what_begins_where_one_before_has_ended():
    rng = np.random.default_rng(1)
    rows = np.zeros(1000, traceform.ROW)
    rows["offset_bytes"], rows["length_bytes"] = rng.integers(0, 60, 1000) * 512, rng.integers(1, 9, 1000) * 512
    rows["op"] = rng.integers(0, 2, 1000)
    rows["offset_bytes"][::2] += np.arange(500) * 4096  # some that nothing leads to
    ends = rows["offset_bytes"] + rows["length_bytes"]
    expected = [
        any(ends[j] == row["offset_bytes"] and rows["op"][j] == row["op"] for j in range(max(0, i - 256), i))
        for i, row in enumerate(rows)
    ]
    assert trace_shown.sequential(rows).tolist() == expected and 0.2 < np.mean(expected) < 0.8


def test_a_file_is_made_and_shown(tmp_path, capsys):
    path = tmp_path / "t.trace"
    words = ["trace", "make", "bench-light-like", str(path), "--scale", "0.01", "--working-set", "1GiB", "--json"]
    assert cli.main(words) == 0
    header = json.loads(capsys.readouterr().out)
    assert header["scaled"] and header["synthetic"] and header["parameters"]["scale"] == 0.01
    assert cli.main(["trace", "show", str(path), "--json"]) == 0
    shown_json = json.loads(capsys.readouterr().out)
    assert shown_json["header"] == header and shown_json["figures"]["ios"] == header["ios"] == 8323
    assert cli.main(["trace", "show", str(path)]) == 0
    assert "SCALED" in capsys.readouterr().out
    assert cli.main(words) == UsageError.exit_code  # nothing is overwritten
    rows = traceform.read(path)[1]
    assert np.array_equal(rows, made("bench-light-like", scale=0.01, working_set_bytes=1 << 30))
    data = bytearray(path.read_bytes())
    for damaged, seen in (
        (data[:-1], "bytes of them"),
        (data[:-9] + b"?" + data[-8:], "SHA-256"),
        (data[1:], "content"),
    ):
        (tmp_path / "bad").write_bytes(damaged)
        assert cli.main(["trace", "show", str(tmp_path / "bad")]) == UsageError.exit_code
        assert seen in capsys.readouterr().err


@pytest.mark.parametrize(
    "more, seen",
    [
        ({"bench": "bench-heavy"}, "bench-heavy-like"),
        ({"scale": 0.0}, "scale"),
        ({"scale": 1.1}, "scale"),
        ({"scale": 1e-5}, "1000 I/Os"),
        ({"scale": float("nan")}, "scale"),
        ({"working_set_bytes": 1 << 20}, "working set"),
        ({"seed": -1}, "seed"),
        ({"block_bytes": 1024}, "512 or 4096"),
    ],
)
def test_what_cannot_be_made_is_refused(more, seen):
    with pytest.raises(UsageError, match=seen):
        next(trace_generate.generate(trace_generate.Asked(**{"bench": "bench-heavy-like"} | more)))


@pytest.mark.parametrize(
    "row, seen",
    [
        ((-1, 0, 512, 0), "before that"),
        ((0, 100, 512, 0), "whole blocks"),
        ((0, 0, 0, 1), "moves nothing"),
        ((0, 0, 512, 5), "not one of: read"),
        ((0, 512, 0, 3), "flush"),
        ((0, -512, 512, 0), "on no drive"),
        ((0, 0, 33 << 20, 0), "more than"),
        ((2 * 10**18, 0, 512, 0), "time"),
    ],
)
def test_a_row_that_cannot_be_played_is_found(row, seen):
    rows = rows_of((0, 0, 512, 0), row)
    number, why = traceform.why_not(rows)
    assert number == 1 and seen in why and traceform.why_not(rows[:1]) is None
