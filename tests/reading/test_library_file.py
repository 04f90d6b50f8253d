"""Library files: what comes back of a run, and what is refused."""

import hashlib
import io
import json
import os
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import synthetic_plan
from synthetic_reviews import SIX, Carried

from ssdrig.base.errors import JournalError
from ssdrig.reading import library_file, library_ranges, table
from ssdrig.runs import integrity


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return synthetic_plan.steps(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def one(run):
    return table.load(run, by_second=True)


@pytest.fixture(scope="module")
def content(one):
    return library_file.packed([one], 10**18, 6e14, "89.90 USD")


def stored(tmp_path, content):
    path = tmp_path / "a.ssdlib"
    path.write_bytes(content)
    return path


def changed(content, change):
    """The file with its document changed, and a SHA-256 that is right."""
    body = zlib.decompress(content[len(library_file.MAGIC) + 32 :])
    line, _, arrays = body.partition(b"\n")
    document = json.loads(line)
    change(document)
    body = zlib.compress(json.dumps(document).encode() + b"\n" + arrays)
    return library_file.MAGIC + hashlib.sha256(body).digest() + body


def test_the_rows_come_back(tmp_path, content, one):
    shared = library_file.read(stored(tmp_path, content))
    assert (shared.rated_bytes, shared.price, shared.utc_ns) == (6e14, "89.90 USD", 10**18)
    (back,) = shared.tables
    assert [(row.act.label, row.state) for row in back.rows] == [(row.act.label, row.state) for row in one.rows]
    for own, other in zip(one.rows, back.rows, strict=True):
        for word in ("iops", "MB/s", "W", "uJ/IO", "lat_mean", "wa"):
            value = own.value(word)
            assert other.value(word) == (None if value is None else pytest.approx(value, rel=1e-5))
        assert set(other.windows) == set(own.windows)
        assert [item["state"] for item in (other.windows.get("all") or {}).get("trust", [])] == [
            item["state"] for item in (own.windows.get("all") or {}).get("trust", [])
        ]
    clean = next(row for row in back.rows if row.act.path == "clean")
    own = next(row for row in one.rows if row.act.path == "clean")
    np.testing.assert_allclose(clean.data.iops, own.data.iops, rtol=1e-4)
    np.testing.assert_allclose(clean.data.power_mean_W, own.data.power_mean_W, rtol=1e-3)


def test_what_names_the_specimen_and_the_host_stays_at_home(content, one):
    text = zlib.decompress(content[len(library_file.MAGIC) + 32 :])
    assert one.data.header["drive"]["serial"].encode() not in text
    assert b'"port"' not in text and b"python" not in text.partition(b"\n")[0]


def test_it_states_which_run_it_is_of(content, run):
    document = json.loads(zlib.decompress(content[len(library_file.MAGIC) + 32 :]).partition(b"\n")[0])
    assert document["runs"][0]["made_of"]["run.json"] == hashlib.sha256((run / "run.json").read_bytes()).hexdigest()


def test_a_run_of_rounds_comes_back(tmp_path):
    carried = Carried(tmp_path, "pts-lat", SIX[0], {"most": "5"}, None, 1_700_000_000).all()
    own = table.load(carried, by_second=True)
    back = library_file.read(stored(tmp_path, library_file.packed([own], 1))).tables[0]
    assert len(back.rows) == len(own.rows) and len(back.verdicts) == len(own.verdicts)


@pytest.mark.parametrize(
    "broken",
    [
        lambda c: b"",
        lambda c: c[:40],
        lambda c: c[:-1],
        lambda c: c[:-1] + bytes([c[-1] ^ 1]),
        lambda c: b"x" + c[1:],
        lambda c: c.replace(library_file.MAGIC, b"ssdrig library 2\n"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, broken):
    with pytest.raises(JournalError):
        library_file.read(stored(tmp_path, broken(content)))


def first(document):
    return document["runs"][0]


def row(document):
    return next(row for row in first(document)["rows"] if "data" in row)


HOSTILE = {
    "schema": lambda d: d.update(schema=2),
    "runs": lambda d: d.update(runs={}),
    "too many runs": lambda d: d.update(runs=d["runs"] * 100),
    "price": lambda d: d.update(price=["1 USD"]),
    "rated": lambda d: d.update(rated_bytes="much"),
    "rated below 0": lambda d: d.update(rated_bytes=-1e12),
    "rated 0": lambda d: d.update(rated_bytes=0),
    "rated without an end": lambda d: d.update(rated_bytes=10**400),
    "time": lambda d: d.update(utc_ns=-1),
    "plan": lambda d: first(d)["plan"].update(text="x = ["),
    "no plan": lambda d: first(d).pop("plan"),
    "drive": lambda d: first(d)["drive"].update(capacity_bytes="1 TB"),
    "capacity": lambda d: first(d)["drive"].update(capacity_bytes=-1),
    "model": lambda d: first(d)["drive"].update(model=[]),
    "model without an end": lambda d: first(d)["drive"].update(model="x" * 201),
    "state": lambda d: first(d).update(state="fine"),
    "label": lambda d: row(d).update(label="../../etc"),
    "round": lambda d: row(d).update(round="1"),
    "row state": lambda d: row(d).update(state=None),
    "window": lambda d: row(d)["windows"].update(all=[]),
    "figure": lambda d: row(d)["windows"]["all"].update(iops_mean="<b>"),
    "rate below 0": lambda d: row(d)["windows"]["all"].update(iops_mean=-1.0),
    "error below 0": lambda d: row(d)["windows"]["all"].update(errors={"iops_mean": -1.0}),
    "time that goes back": lambda d: row(d)["windows"]["all"].update(t0_s=9.0, t1_s=1.0),
    "1e15 IOPS": lambda d: row(d)["windows"]["all"].update(iops_mean=1e15, errors={}),
    "negative power": lambda d: row(d)["windows"]["all"].update(power_mean_W=-5.0),
    "power of a house": lambda d: row(d)["windows"]["all"].update(power_max_W=5000.0),
    "negative energy": lambda d: row(d)["windows"]["all"].update(energy_J=-1e10),
    "colder than space": lambda d: row(d)["windows"]["all"].update(temperature_max_C=-300.0),
    "bytes below 0": lambda d: row(d)["windows"]["all"].update(host_written_bytes=-1),
    "latency of a week": lambda d: row(d)["windows"]["all"].update(lat_p99_us=6e11),
    "infinite": lambda d: row(d)["windows"]["all"].update(iops_mean=1e400),
    "no time": lambda d: row(d)["windows"]["all"].pop("t0_s"),
    "error": lambda d: row(d)["windows"]["all"].update(errors={"iops_mean": "x"}),
    "trust": lambda d: row(d)["windows"]["all"].update(trust=[{"id": "x"}]),
    "array": lambda d: row(d)["arrays"].update(iops="999"),
    "arrays of other lengths": lambda d: row(d)["arrays"].update(iops=row(d)["arrays"]["temp_t_s"]),
    "verdict": lambda d: first(d).update(verdicts=[{}]),
    "plateau below 0": lambda d: row(d).update(found={"kind": "plateaus", "plateaus": [{"bw_mean_MBps": -5}]}),
    "speed in words": lambda d: row(d).update(found={"kind": "plateaus", "last": {"bw_mean_MBps": "<b>"}}),
    "error of a cache below 0": lambda d: row(d).update(found={"kind": "plateaus", "cache_error_bytes": -1}),
    "error of an energy below 0": lambda d: row(d).update(found={"kind": "quiet", "above_error_J": -1.0}),
    "floor of a house": lambda d: row(d).update(found={"kind": "quiet", "floor_W": 5000.0}),
    "service time of a week": lambda d: row(d).update(found={"kind": "played", "all": {"p99_us": 6e11}}),
    "deep": lambda d: row(d).update(found=[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path, content, name):
    with pytest.raises(JournalError) as refusal:
        library_file.read(stored(tmp_path, changed(content, HOSTILE[name])))
    assert "library export" in refusal.value.expected and len(refusal.value.seen) <= 200


def plain_of(content) -> bytes:
    return zlib.decompress(content[len(library_file.MAGIC) + 32 :])


def test_a_value_by_the_second_outside_of_its_range_is_refused_with_the_range(tmp_path, one):
    clean = next(row for row in one.rows if row.data is not None)
    for key, wrong in (("power_mean_W", -5.0), ("iops", 1e15), ("temperature_C", 1e4)):
        values = getattr(clean.data, key)
        odd = np.append(values[:-1], wrong) if len(values) else values
        if not len(values):
            continue
        setattr(clean.data, key, odd)
        try:
            with pytest.raises(JournalError) as refusal:
                library_file.read(stored(tmp_path, library_file.packed([one], 1)))
        finally:
            setattr(clean.data, key, values)
        assert key in refusal.value.seen and f"{library_ranges.of(key).most:g}" in refusal.value.seen


def test_every_figure_of_a_file_has_a_range():
    for key in (*library_file.FIGURES, *library_file.GRID, *library_file.POLLS):
        assert library_ranges.of(key).least < library_ranges.of(key).most and library_ranges.of(key).why
    with pytest.raises(LookupError):
        library_ranges.of("spin_rpm")


@pytest.mark.parametrize("key, value", [("iops_mean", 1e8), ("power_mean_W", -0.9), ("wa", 0.0), ("lat_max_us", 3e7)])
def test_the_ends_of_a_range_are_in_it(key, value):
    library_ranges.check(key, np.array([value, np.nan]))


def test_a_key_twice_in_one_object_is_refused(tmp_path, content):
    line, _, rest = plain_of(content).partition(b"\n")
    twice = line.replace(b'"iops_mean":', b'"iops_mean":1,"iops_mean":', 1)
    assert twice != line
    with pytest.raises(JournalError, match="twice"):
        library_file.read(stored(tmp_path, packed(twice + b"\n" + rest)))


@pytest.mark.parametrize("more", [b"\0", b"x" * 1000])
def test_bytes_after_the_packed_part_are_refused(tmp_path, content, more):
    body = content[len(library_file.MAGIC) + 32 :] + more
    with pytest.raises(JournalError, match=f"{len(more)} bytes after its end"):
        library_file.read(stored(tmp_path, library_file.MAGIC + hashlib.sha256(body).digest() + body))


def test_a_bomb_is_refused_before_it_is_open(tmp_path):
    body = zlib.compress(bytes(library_file.MOST_OPEN_BYTES + 2), 9)
    with pytest.raises(JournalError):
        library_file.read(stored(tmp_path, library_file.MAGIC + hashlib.sha256(body).digest() + body))
    path = stored(tmp_path, b"")
    with open(path, "wb") as file:
        file.truncate(library_file.MOST_FILE_BYTES + 1)
    with pytest.raises(JournalError):
        library_file.read(path)


def packed(plain):
    body = zlib.compress(plain, 9)
    return library_file.MAGIC + hashlib.sha256(body).digest() + body


def test_a_line_of_a_million_lists_is_refused_before_it_is_read(tmp_path):
    line = b"[" + b"[]," * 20_000_000 + b"[]]"
    path = stored(tmp_path, packed(line + b"\n"))
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(JournalError):
            library_file.read(path)
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()


def test_arrays_without_number_are_refused(tmp_path, content):
    line = zlib.decompress(content[len(library_file.MAGIC) + 32 :]).partition(b"\n")[0]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(integrity.MOST_ARRAYS + 1):
            archive.writestr(f"{number}.npy", b"")
    with pytest.raises(JournalError, match="arrays"):
        library_file.read(stored(tmp_path, packed(line + b"\n" + file.getvalue())))


@pytest.mark.parametrize("name", ["a.bin", "a.ssdlib"])
def test_a_file_that_grows_while_it_is_read_fills_no_memory(tmp_path, name):
    path = tmp_path / name
    with open(path, "wb") as file:
        file.truncate(8 << 30)
    with pytest.raises(JournalError):
        library_file.read(path)


def test_a_pipe_or_a_device_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.ssdlib")
    for path in (tmp_path / "pipe.ssdlib", Path("/dev/zero"), tmp_path):
        with pytest.raises(JournalError):
            library_file.read(path)


def test_text_that_hides_or_turns_round_what_follows_is_made_visible(tmp_path, content):
    """A mark of direction in a model would print the figures after it backwards."""
    odd = "A\u202e1\u2066 TB\x1b[2J\0"
    for model, seen in ((odd, "A\ufffd1\ufffd TB\ufffd[2J\ufffd"), ("half \ud800", "half ?")):
        text = changed(content, lambda d, model=model: first(d)["drive"].update(model=model))
        one = library_file.read(stored(tmp_path, text)).tables[0]
        assert one.data.header["drive"]["model"] == seen


def test_half_of_a_surrogate_pair_that_is_not_escaped_is_no_text(tmp_path, content):
    """JSON of bytes decodes it, and no page with it could be written."""
    plain = zlib.decompress(content[len(library_file.MAGIC) + 32 :])
    line, _, rest = plain.partition(b"\n")
    model = json.loads(line)["runs"][0]["drive"]["model"].encode()
    body = zlib.compress(line.replace(model, b"half \xed\xa0\x80") + b"\n" + rest)
    file = stored(tmp_path, library_file.MAGIC + hashlib.sha256(body).digest() + body)
    library_file.read(file).tables[0].data.header["drive"]["model"].encode()
