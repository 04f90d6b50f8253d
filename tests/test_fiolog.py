"""fio's logs read back: against a recorded run, against a model of how fio writes them, and against damage."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.errors import LoadError
from ssdrig.load import fiolog, fioseconds, fiotext

RECORDED = Path(__file__).parent / "data" / "fio-3.33-stall"
START_MS = 5_000_000  # CLOCK_MONOTONIC at job start in made-up logs
UTC_MINUS_MONOTONIC_MS = 1_790_000_000_000


def fio_plat_index(ns: int) -> int:
    """The bin of a latency as fio's plat_val_to_idx finds it: most significant bit, error bits, base and offset."""
    msb = ns.bit_length() - 1
    if msb <= 6:
        return ns
    error_bits = msb - 6
    return min(((error_bits + 1) << 6) + ((64 - 1) & (ns >> error_bits)), 29 * 64 - 1)


def write_step(
    folder: Path, io, runtime_ms: int, *, started=True, name="load", block=4096, number=1, documents=True
) -> Path:
    """A step's folder as fio 3.33 leaves it. io = [(ms since job start, latency ns, direction)] in order of completion;
    the loops below follow add_clat_sample and add_log_sample of stat.c."""
    folder.mkdir(parents=True, exist_ok=True)
    hist, lat = [], []
    bins, since, last, window, last_ms = {}, {}, {}, {}, {}
    for ms, ns, d in io:
        elapsed = int(ms)
        window.setdefault(d, []).append(ns)
        if elapsed - last_ms.get(d, 0) >= 1000:
            lat.append((elapsed, round(np.mean(window[d])), d))
            window[d], last_ms[d] = [], elapsed - elapsed % 1000
        bins.setdefault(d, np.zeros(fiotext.BINS, int))[fio_plat_index(ns)] += 1
        if not last.get(d):
            last[d] = elapsed
        if elapsed - last[d] >= 1000:
            hist.append((elapsed, d, bins[d] - since.get(d, 0)))
            since[d] = bins[d].copy()
            last[d] += 1000
    for d, rest in window.items():
        if rest:
            lat.append((runtime_ms, round(np.mean(rest)), d))
    text = "".join(f"{START_MS + t}, {d}, {block}, {', '.join(map(str, row))}\n" for t, d, row in hist)
    (folder / f"{name}_clat_hist.{number}.log").write_text(text)
    (folder / f"{name}_lat.{number}.log").write_text("".join(f"{START_MS + t}, {v}, {d}, 0, 0\n" for t, v, d in lat))
    if documents:
        write_documents(folder, io, runtime_ms, block)
    if started:
        start = {"t_ns": (START_MS - 250) * 10**6, "utc_ns": (START_MS - 250 + UTC_MINUS_MONOTONIC_MS) * 10**6}
        (folder / "start.json").write_text(json.dumps(start))
    return folder


def document(io, upto_ms: int, block=4096) -> dict:
    job = {"jobname": "load", "error": 0, "job_runtime": upto_ms}
    for d, name in enumerate(fiotext.DIRECTIONS):
        done = [ns for ms, ns, direction in io if direction == d and int(ms) <= upto_ms]
        bins = {}
        for ns in done:
            middle = str(int(fiotext.plat_ns(fio_plat_index(ns))))
            bins[middle] = bins.get(middle, 0) + 1
        job[name] = {
            "io_bytes": block * len(done),
            "total_ios": len(done),
            "clat_ns": {"N": len(done), "bins": bins},
            "lat_ns": {"N": len(done), "mean": float(np.mean(done)) if done else 0.0},
        }
    return {"fio version": "fio-3.33", "timestamp_ms": START_MS + UTC_MINUS_MONOTONIC_MS + upto_ms, "jobs": [job]}


def write_documents(folder: Path, io, runtime_ms: int, block=4096) -> None:
    ends = [*range(900, runtime_ms, 1000)[:10], runtime_ms]
    text = "".join(json.dumps(document(io, end, block), indent=2) + "\n" for end in ends)
    (folder / "out.json").write_text("fio: connected to NBD server\n" + text)


def steady(seconds: float, iops: int, ns: int = 1_000_000, d: int = 1, first_ms: float = 1.0):
    """The first completion at first_ms opens fio's windows; the others lie half a period away from their edges."""
    return [(first_ms + (i and i + 0.5) * 1000 / iops, ns, d) for i in range(round(seconds * iops))]


def near(iops, want) -> bool:
    """A closing I/O up to 1 ms late is counted one second early; a second without I/O is exact all the same."""
    return len(iops) == len(want) and all(
        got == w if w == 0 else abs(got - w) <= 1 for got, w in zip(iops, want, strict=True)
    )


# the recorded run


def test_recorded_run_with_a_stall():
    s = fiolog.load(RECORDED)
    assert s.iops.tolist() == [
        13992,
        13471,
        14085,
        14434,
        14482,
        14247,
        281,
        0,
        0,
        5516,
        14620,
        14613,
        14533,
        14581,
        14524,
        14530,
    ]
    assert s.iops.sum() == 177_909 == s.totals["ios"]
    assert s.zero_seconds == 2 and not s.partial and s.torn_bytes == 0
    assert s.source == "logs" and s.directions == ("write",)
    assert s.bw_bytes.sum() == 728_715_264 and s.bw_bytes[0] == 13992 * 4096
    assert s.t_ns[0] == 1_485_044_000_000 and np.all(np.diff(s.t_ns) == 10**9)
    assert s.lat_mean_ns[:2].tolist() == [2_283_783, 2_372_881]
    assert s.lat_mean_ns[7] == 0
    # those that hung ended in second 9
    assert s.lat_max_ns[6] < 3_000_000 < 3_600_000_000 < s.lat_max_ns[9] < 3_700_000_000
    assert s.totals["clat_ns"]["99.000000"] == 2_768_896
    assert np.bincount(s.hist[:, 0], s.hist[:, 2], minlength=len(s.iops)).tolist() == s.iops.tolist()


def test_recorded_percentiles_agree_with_fios_own():
    """All rows as one histogram: the percentiles that fio itself printed for the whole run."""
    _, cells, torn = fiotext.hist_rows((RECORDED / "step_clat_hist.1.log").read_bytes())
    assert torn == 0
    found = fioseconds.quantiles(cells * (0, 1, 1), 1)  # all rows as one second
    said = fiolog.load(RECORDED).totals["clat_ns"]
    assert found[0.5][0] == said["50.000000"]
    assert found[0.99][0] == said["99.000000"]
    assert found[0.999][0] == said["99.900000"]


# bins


def test_bins_are_fios():
    assert fiotext.BINS == 1856
    assert fiotext.plat_ns([0, 127, 128, 129, 191, 192]).tolist() == [0, 127, 129, 131, 255, 258]
    assert fiotext.plat_upper_ns([127, 128, 1855]).tolist() == [127, 129, (128 << 27) - 1]


@given(st.integers(0, (1 << 34) - 1))
def test_bin_of_a_latency(ns):
    i = fio_plat_index(ns)
    assert int(fiotext.plat_index(ns)) == i
    assert abs(int(fiotext.plat_ns(i)) - ns) <= ns / 128
    assert fiotext.plat_upper_ns(i) >= ns and (i == 0 or fiotext.plat_upper_ns(i - 1) < ns)
    assert int(fiotext.plat_index(fiotext.plat_ns(i))) == i


# seconds


@st.composite
def completions(draw):
    """Bursts at some rate, pauses between them, now and then a long latency."""
    t, out = draw(st.floats(1, 30)), []  # in its first millisecond fio does not yet count time
    for _ in range(draw(st.integers(1, 6))):
        iops, ms = draw(st.sampled_from([1, 3, 40, 150])), draw(st.integers(50, 3500))
        ns = draw(st.integers(1000, 40_000_000))
        n = max(1, iops * ms // 1000)
        out += [(t + i * 1000 / iops, ns, 1) for i in range(n)]
        t = out[-1][0] + draw(st.sampled_from([1, 20, 700, 1900, 5200]))
    return out


@settings(max_examples=40, deadline=None)
@given(io=completions(), after_ms=st.integers(0, 3000))
def test_every_io_is_in_its_second(tmp_path_factory, io, after_ms):
    runtime_ms = int(io[-1][0]) + after_ms
    s = fiolog.load(write_step(tmp_path_factory.mktemp("step"), io, runtime_ms))
    assert s.iops.sum() == len(io) == s.totals["ios"]
    assert s.bw_bytes.sum() == 4096 * len(io)
    if s.source == "status":
        return  # shorter than a histogram window
    offset_ms = s.t_ns[0] / 1e6 - START_MS
    assert -2 <= offset_ms < 1002
    ms = np.floor([t for t, _, _ in io])
    for k in range(1, len(s.iops)):
        until = offset_ms + 1000 * k
        early, late = (ms < until).sum(), (ms < until + fiolog.LATE_MS + 1).sum()
        assert early <= s.iops[:k].sum() <= min(late, early + 1)
    assert (s.iops >= 0).all() and s.zero_seconds == (s.iops == 0).sum()
    assert abs(len(s.iops) * 1000 + offset_ms - runtime_ms) <= 1000 + fioseconds.TAIL_MS


def test_three_zero_seconds_between_full_ones(tmp_path):
    io = steady(2, 100) + [(t + 5010, ns, d) for t, ns, d in steady(3, 100)]
    s = fiolog.load(write_step(tmp_path / "s", io, 8015))
    assert near(s.iops, [100, 100, 0, 0, 0, 99, 100, 101])
    assert s.zero_seconds == 3 and not s.partial


def test_rows_that_drift_lose_no_second(tmp_path):
    """A completion each 7.3 ms: each row is stamped up to 7 ms after its window's end, for 200 s."""
    io = steady(200, 137)
    s = fiolog.load(write_step(tmp_path / "s", io, 200_001))
    assert len(s.iops) == 200 and s.zero_seconds == 0
    assert set(s.iops.tolist()) <= {136, 137, 138} and s.iops.sum() == 200 * 137


def test_the_drive_hangs_before_its_first_io(tmp_path):
    io = steady(2, 100, first_ms=3205)
    s = fiolog.load(write_step(tmp_path / "s", io, 5210))
    assert near(s.iops, [0, 0, 0, 100, 100])
    assert 205 <= s.t_ns[0] / 1e6 - START_MS <= 210


def test_every_row_is_late(tmp_path):
    """One I/O, a hang, one more: fio's only row says nothing of where its windows began, its first document does."""
    s = fiolog.load(write_step(tmp_path / "s", [(1, 1000, 1), (5201, 1000, 1)], 5201))
    assert s.iops.tolist() == [1, 0, 0, 0, 1]


def test_hang_until_the_end_is_zero_seconds(tmp_path):
    s = fiolog.load(write_step(tmp_path / "s", steady(3.4, 100), 6500))
    assert near(s.iops, [100, 100, 100, 40, 0, 0, 0])
    assert s.partial and s.zero_seconds == 3


def test_rest_at_the_end(tmp_path):
    """A tail below 100 ms joins the last second; a longer one is a second of its own, said to be partial."""
    s = fiolog.load(write_step(tmp_path / "a", steady(3.05, 100), 3052))
    assert near(s.iops, [100, 100, 105]) and not s.partial
    s = fiolog.load(write_step(tmp_path / "b", steady(3.4, 100), 3402))
    assert near(s.iops, [100, 100, 100, 40]) and s.partial


def test_a_late_closing_io_just_before_the_end_makes_no_second(tmp_path):
    """The last row was closed 4 ms late by the job's last I/Os: the third second is the last, and no slow fourth
    one."""
    io = [x for x in steady(3, 1000) if x[0] < 2990] + [(3004.0, 1_000_000, 1), (3004.2, 1_000_000, 1)]
    s = fiolog.load(write_step(tmp_path / "s", io, 3005))
    assert len(s.iops) == 3 and not s.partial and s.iops.sum() == len(io)
    io = [x for x in steady(3, 1000) if x[0] < 2990] + [(3004.0, 1_000_000, 1), (3400.0, 1_000_000, 1)]
    s = fiolog.load(write_step(tmp_path / "t", io, 3402))
    assert len(s.iops) == 4 and s.partial


def test_shorter_than_a_second(tmp_path):
    s = fiolog.load(write_step(tmp_path / "s", steady(0.3, 100), 301))
    assert s.iops.tolist() == [30] and s.partial and s.source == "status"


def test_latency_of_a_second(tmp_path):
    """200 I/Os a second, one of them slow: p99 is the 198th in order, p999 the 200th."""
    io = steady(1, 200, 500_000) + [(t + 1000.5, ns, d) for t, ns, d in steady(1, 200, 2_000_000)]
    io = [(t, 50_000_000 if i in (60, 260) else ns, d) for i, (t, ns, d) in enumerate(io)]
    s = fiolog.load(write_step(tmp_path / "s", io, 2003))
    assert s.iops.tolist() == [201, 199]
    assert s.lat_mean_ns[0] == round((199 * 500_000 + 2_000_000 + 50_000_000) / 201)
    for got, want in (
        (s.lat_p50_ns, (500_000, 2_000_000)),
        (s.lat_p99_ns, (500_000, 2_000_000)),
        (s.lat_p999_ns, (50_000_000,) * 2),
        (s.lat_max_ns, (50_000_000,) * 2),
    ):
        assert got.tolist() == pytest.approx(want, rel=1 / 64)


def test_latency_of_a_second_whose_closing_io_is_late_has_its_submission_time(tmp_path):
    """lat = slat + clat. fio's histogram has clat alone, so where it stands in for the lat log, slat is added."""
    io = [(ms, 900_000, 1) for ms in (*range(1, 2000, 10), *range(2017, 4100, 10))]  # the second row closes late
    folder = write_step(tmp_path, io, 4100)
    stamps = [line.split(",") for line in (folder / "load_lat.1.log").read_text().splitlines()]
    slat, lat = ("".join(f"{t}, {ns}, {d}, 0, 0\n" for t, _, d, *_ in stamps) for ns in (300_000, 1_200_000))
    (folder / "load_slat.1.log").write_text(slat)
    (folder / "load_lat.1.log").write_text(lat)
    assert fiolog.load(folder).lat_mean_ns / 1.2e6 == pytest.approx([1, 1, 1, 1], rel=0.003)


def test_two_directions(tmp_path):
    io = sorted(steady(3, 100, 400_000, 0) + steady(3, 50, 800_000, 1))
    folder = write_step(tmp_path / "s", io, 3001)
    both = fiolog.load(folder)
    assert both.directions == ("read", "write") and both.iops.tolist() == [152, 150, 148]
    assert both.lat_mean_ns[1] == pytest.approx((100 * 400_000 + 50 * 800_000) / 150, rel=0.008)
    assert near(fiolog.load(folder, "read").iops, [100, 100, 100])
    write = fiolog.load(folder, "write")
    assert near(write.iops, [50, 50, 50]) and (write.bw_bytes == write.iops * 4096).all()
    assert write.lat_mean_ns[1] == 800_000 and write.directions == ("write",)


def test_several_jobs_are_summed(tmp_path):
    folder = write_step(tmp_path / "s", steady(3, 100), 3001, documents=False)
    write_step(folder, steady(3, 200, first_ms=4), 3001, number=2, documents=False)
    documents = [document(steady(3, 100), 3001), document(steady(3, 200, first_ms=4), 3001)]
    documents[0]["jobs"] += documents[1]["jobs"]
    (folder / "out.json").write_text(json.dumps(documents[0]))
    s = fiolog.load(folder)
    assert s.iops.tolist() == [302, 300, 298] and s.totals["ios"] == 900


# without logs: fio was killed


def test_documents_alone_give_the_seconds(tmp_path):
    folder = write_step(tmp_path / "s", steady(4, 100), 3900)
    for log in folder.glob("*.log"):
        log.unlink()
    s = fiolog.load(folder)
    assert s.source == "status" and s.iops.tolist() == [100, 100, 100, 90] and s.partial is False
    assert s.t_ns[0] == START_MS * 10**6
    assert s.lat_mean_ns.tolist() == [1_000_000] * 4
    assert s.lat_p99_ns.tolist() == pytest.approx([1_000_000] * 4, rel=1 / 128)


def test_documents_with_a_pause(tmp_path):
    """fio prints nothing while all I/O hangs; the pause is zero seconds, not a slope."""
    io = steady(2, 100) + [(t + 6000, ns, d) for t, ns, d in steady(2, 100)]
    folder = tmp_path / "s"
    folder.mkdir()
    text = "".join(json.dumps(document(io, ms)) + "\n" for ms in (900, 1900, 6100, 7100, 7900))
    (folder / "out.json").write_text(text)
    s = fiolog.load(folder)
    assert s.iops.tolist() == [100, 92, 18, 0, 0, 0, 90, 90] and s.iops.sum() == s.totals["ios"]
    assert s.zero_seconds == 3 and s.t_ns[0] == 0


def test_nothing_left(tmp_path):
    with pytest.raises(LoadError, match="neither"):
        fiolog.load(tmp_path)


# parts


@settings(deadline=None)
@given(st.data())
def test_documents_in_any_pieces(data):
    text = (RECORDED / "out.json").read_text()
    whole, rest = fiotext.documents(text)
    assert len(whole) == 2 and not rest.strip()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    found, rest = [], ""
    for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True):
        more, rest = fiotext.documents(rest + text[a:b])
        found += more
    assert found == whole


def test_garbage_between_documents():
    one = json.dumps({"jobs": []}, indent=2)
    text = f'fio: warning {{x}}\n{one}\n{{broken\nnonsense\n{one}\nio_u error\n{{\n  "jobs"'
    found, rest = fiotext.documents(text)
    assert len(found) == 2 and rest == '{\n  "jobs"'


pieces = st.sampled_from(
    [
        "{\n",
        "}\n",
        '{"jobs": []}\n',
        '{"jobs": 1}\n',
        '{"x": {}}\n',
        '{"jobs": [{"a": "}{"}]}\n',
        '{"jobs": [1]}\n',
        '{"jobs": [{"write": {"total_ios": -1}}]}\n',
        '{"jobs": [{"write": {"clat_ns": {"N": "many"}}}]}\n',
        "fio: what\n",
        '"jobs"',
        "\n",
    ]
)


@given(st.lists(pieces | st.text(alphabet='{}[]":, \njobs1', max_size=30), max_size=6).map("".join))
def test_documents_of_noise(text):
    found, rest = fiotext.documents(text)
    assert all(isinstance(d["jobs"], list) for d in found) and text.endswith(rest)
    good = '\n{"jobs": [{}]}\n'
    assert fiotext.documents(text + good)[0] == [*found, {"jobs": [{}]}] or rest.startswith("{"), (
        "what stands before it hides no document"
    )


def test_rows_by_column_count():
    for line in (b"1000, 2002, 1, 0\n", b"1000, 2002, 1, 0, 0\n", b"1000, 2002, 1, 4096, 0, 0x0004, 77\n"):
        found, torn = fiotext.rows(line * 2)
        assert found.tolist() == [[1000, 2002, 1]] * 2 and torn == 0


@given(st.integers(1, 60))
def test_torn_row(cut):
    text = b"".join(b"%d, 2002, 1, 0, 0\n" % (1000 * k) for k in range(1, 5))
    found, torn = fiotext.rows(text[:-cut])
    assert [r[0] for r in found] == [1000 * k for k in range(1, len(found) + 1)]
    assert len(text) - cut - torn == sum(len(b"%d, 2002, 1, 0, 0\n" % r[0]) for r in found) and torn < 22


@given(st.binary(max_size=200))
def test_rows_of_noise(data):
    found, torn = fiotext.rows(data)
    assert 0 <= torn <= len(data) and found.shape[1] == 3


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**40),
            st.integers(0, 2),
            st.dictionaries(st.integers(0, 1855), st.integers(1, 10**9), max_size=5),
        ),
        max_size=5,
    ),
    st.integers(0, 4000),
    st.sampled_from([1, 6000, 4 << 20]),
)
def test_hist_rows(lines, cut, parse_bytes):
    text = b""
    for t, d, held in lines:
        text += f"{t}, {d}, 4096, {', '.join(str(held.get(i, 0)) for i in range(1856))}\n".encode()
    text += b"123, 1, 4096, 0, 0"[:cut]
    before, fiotext.PARSE_BYTES = fiotext.PARSE_BYTES, parse_bytes
    try:
        heads, cells, torn = fiotext.hist_rows(text)
    finally:
        fiotext.PARSE_BYTES = before
    assert heads.tolist() == [[t, d] for t, d, _ in lines]
    assert cells.tolist() == [[k, i, held[i]] for k, (_, _, held) in enumerate(lines) for i in sorted(held)]
    assert torn == len(b"123, 1, 4096, 0, 0"[:cut])


def test_torn_histogram_log_says_how_much_it_left(tmp_path):
    """Half of the log is missing: its I/Os must not pile up in one second; the documents have them second by second."""
    folder = write_step(tmp_path / "s", steady(8.1, 100), 8102)
    log = folder / "load_clat_hist.1.log"
    lines = log.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    log.write_bytes(b"".join(lines[:4]) + lines[4][:700])
    s = fiolog.load(folder)
    assert s.torn_bytes == 700 and s.source == "status"
    assert s.iops.sum() == 810 and s.iops.max() <= 101
    (folder / "out.json").unlink()
    s = fiolog.load(folder)
    assert s.torn_bytes == 700 and s.source == "logs" and near(s.iops, [100] * 4)


def test_histogram_of_another_width_is_refused(tmp_path):
    folder = write_step(tmp_path / "s", steady(2, 100), 2001)
    (folder / "load_clat_hist.1.log").write_text("1000, 1, 4096, " + ", ".join(["0"] * 1216) + "\n")
    with pytest.raises(LoadError, match="1219"):
        fiolog.load(folder)
