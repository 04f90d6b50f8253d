"""Logs of fio that an editor or a person has altered: what fio cannot have written is refused, the documents are used
instead, and a note names the file. Random ones, with their sums made anew: test_damage.py, `selfcheck damage`."""

import shutil

import numpy as np
import pytest
from synthetic_run import IOPS, write

from ssdrig.load import fiolog, fiotext


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write(tmp_path_factory.mktemp("runs"), IOPS) / "fio" / "load"


def altered(whole, tmp_path, name, change):
    folder = shutil.copytree(whole, tmp_path / "load")
    path = folder / name
    path.write_bytes(b"\n".join(change(path.read_bytes().split(b"\n"))))
    return fiolog.load(folder)


def first(lines, prefix):
    return [prefix + lines[0], *lines[1:]]


def field(lines, row, column, value):
    fields = lines[row].split(b", ")
    fields[column] = value(fields[column])
    return [*lines[:row], b", ".join(fields), *lines[row + 1 :]]


CHANGES = {
    "a byte order mark": lambda lines: first(lines, b"\xef\xbb\xbf"),
    "lines turned round": lambda lines: [*lines[-2::-1], b""],
    "two lines swapped": lambda lines: [lines[1], lines[0], *lines[2:]],
    "a negative time": lambda lines: field(lines, 3, 0, lambda t: b"-" + t),
    "a negative value": lambda lines: field(lines, 3, 1, lambda v: b"-" + v),
    "a fraction": lambda lines: field(lines, 3, 1, lambda v: v + b".5"),
    "two numbers in a field": lambda lines: field(lines, 3, 1, lambda v: v + b" 7"),
    "an empty field": lambda lines: field(lines, 3, 1, lambda v: b""),
    "20 digits": lambda lines: field(lines, 3, 1, lambda v: b"9" * 20),
    "the first row 20 s early": lambda lines: field(lines, 0, 0, lambda t: b"%d" % (int(t) - 20_000)),
    "the last row 20 s late": lambda lines: field(lines, -2, 0, lambda t: b"%d" % (int(t) + 20_000)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("log", ["load_lat.1.log", "load_clat_hist.1.log"])
def test_what_fio_cannot_have_written_is_refused(whole, tmp_path, log, change):
    seconds = altered(whole, tmp_path, log, CHANGES[change])
    assert seconds.source == "status" and any("documents were used instead" in note for note in seconds.notes)
    assert seconds.iops.sum() == sum(IOPS) and abs(seconds.lat_mean_ns[:12] - 800_000).max() < 10


def test_a_mean_longer_than_the_job_is_refused(whole, tmp_path):
    seconds = altered(whole, tmp_path, "load_lat.1.log", lambda lines: field(lines, 3, 1, lambda v: b"9" * 17))
    assert seconds.source == "status"


@pytest.mark.parametrize(
    "stamps, longest_ns, good",
    [
        ([9_000, 20_000], 0, True),  # a job from 10 s to 20 s: a second early, and its very end
        ([8_999, 20_000], 0, False),
        ([9_000, 20_001], 0, False),
        ([11_000, 11_000], 0, True),
        ([11_001, 11_000], 0, False),
        ([11_000, 12_000], 11_000_000_000, True),
        ([11_000, 12_000], 11_000_000_001, False),
        ([], 0, True),
    ],
)
def test_limits_of_a_log_of_means(stamps, longest_ns, good):
    log = np.array([[t, longest_ns, 0, 0] for t in stamps], dtype=np.int64).reshape(-1, 4)
    assert fiolog._in_time(log, 10_000, 20_000) is good


def test_the_submission_log_counts_as_well(whole, tmp_path):
    def late(lines):
        return field(lines, -2, 0, lambda t: b"%d" % (int(t) + 20_000))

    folder = shutil.copytree(whole, tmp_path / "with")
    text = (folder / "load_lat.1.log").read_bytes()
    (folder / "load_slat.1.log").write_bytes(text)
    assert fiolog.load(folder).source == "logs"
    (folder / "load_slat.1.log").write_bytes(b"\n".join(late(text.split(b"\n"))))
    assert fiolog.load(folder).source == "status"


def test_the_same_file_is_not_refused(whole, tmp_path):
    seconds = altered(whole, tmp_path, "load_clat_hist.1.log", lambda lines: lines)
    assert seconds.source == "logs" and seconds.notes == ()


def test_a_damaged_document_is_said(whole, tmp_path):
    def negative(lines):
        return [*lines[:9], lines[9].replace(b'"total_ios": ', b'"total_ios": -'), *lines[10:]]

    seconds = altered(whole, tmp_path, "out.json", negative)
    assert seconds.notes == ("1 documents of out.json are not as fio writes them and were not used",)


@pytest.mark.parametrize(
    ("line", "good"),
    [
        (b"1, 2", True),
        (b"1,2", True),
        (b"9" * 18, True),
        (b"9" * 19, False),
        (b"", False),
        (b"1, , 2", False),
        (b"1 2, 3", False),
        (b"1, ", False),
        (b", 1", False),
        (b"-1, 2", False),
        (b"1, 2\r", False),
    ],
)
def test_a_line_of_numbers(line, good):
    _, _, odd, *_ = fiotext._numbers(np.frombuffer(line + b"\n", np.uint8))
    assert odd == good
