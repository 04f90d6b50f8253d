"""fio's documents and logs as text: in pieces, torn, and as noise."""

import json

import pytest
from fio_folders import RECORDED, fio_plat_index, near, steady, write_step
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import LoadError
from ssdrig.load import fiolog, fiotext

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


@pytest.mark.slow
def test_rows_that_drift_lose_no_second(tmp_path):
    """A completion each 7.3 ms: each row is stamped up to 7 ms after its window's end, for 200 s."""
    io = steady(200, 137)
    s = fiolog.load(write_step(tmp_path / "s", io, 200_001))
    assert len(s.iops) == 200 and s.zero_seconds == 0
    assert set(s.iops.tolist()) <= {136, 137, 138} and s.iops.sum() == 200 * 137


# parts


@settings(deadline=None)
@given(st.data())
def test_documents_in_any_pieces(data):
    text = (RECORDED / "out.json").read_text()
    whole, rest = fiotext.documents(text)
    assert len(whole) == 2 and not rest.strip()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    documents, rest = [], ""
    for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True):
        more, rest = fiotext.documents(rest + text[a:b])
        documents += more
    assert documents == whole


def test_garbage_between_documents():
    one = json.dumps({"jobs": []}, indent=2)
    text = f'fio: warning {{x}}\n{one}\n{{broken\nnonsense\n{one}\nio_u error\n{{\n  "jobs"'
    documents, rest = fiotext.documents(text)
    assert len(documents) == 2 and rest == '{\n  "jobs"'


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
    documents, rest = fiotext.documents(text)
    assert all(isinstance(d["jobs"], list) for d in documents) and text.endswith(rest)
    good = '\n{"jobs": [{}]}\n'
    assert fiotext.documents(text + good)[0] == [*documents, {"jobs": [{}]}] or rest.startswith("{"), (
        "what stands before it hides no document"
    )


def test_rows_by_column_count():
    for line in (b"1000, 2002, 1, 0\n", b"1000, 2002, 1, 0, 0\n", b"1000, 2002, 1, 4096, 0, 0x0004, 77\n"):
        rows, torn = fiotext.rows(line * 2)
        assert rows.tolist() == [[1000, 2002, 1, 4096 * (b"4096" in line)]] * 2 and torn == 0


@given(st.integers(0, 40_000), st.sampled_from([b"", b"1, 2", b"1, 2, 3, x\n", b"-1, 2, 3, 4\n"]))
@settings(max_examples=20, deadline=None)
def test_rows_of_a_log_of_each_io(count, tail):
    """In pieces, and line by line where one is odd."""
    line = b"36542300, 72335540, 1, 131072, 0\n"
    rows, torn = fiotext.rows(line * count + tail)
    assert torn == len(tail) and rows.shape == (count, 4)
    assert (rows == [36542300, 72335540, 1, 131072]).all()


@given(st.integers(1, 60))
def test_torn_row(cut):
    text = b"".join(b"%d, 2002, 1, 0, 0\n" % (1000 * k) for k in range(1, 5))
    rows, torn = fiotext.rows(text[:-cut])
    assert [r[0] for r in rows] == [1000 * k for k in range(1, len(rows) + 1)]
    assert len(text) - cut - torn == sum(len(b"%d, 2002, 1, 0, 0\n" % r[0]) for r in rows) and torn < 22


@given(st.binary(max_size=200))
def test_rows_of_noise(data):
    rows, torn = fiotext.rows(data)
    assert 0 <= torn <= len(data) and rows.shape[1] == 4


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
    st.sampled_from([1, 6000, 1 << 18]),
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
