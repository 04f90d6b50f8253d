"""Power below the second, where the energy went, and the latency in full: against runs whose figures are known."""

import base64
import struct
import zlib

import numpy as np
import pytest
import synthetic_run

from ssdrig import reading
from ssdrig.reading import below_second, latency, table
from ssdrig.report import csv_files, embed, pack, plates, views, words
from ssdrig.views import svg

# 2 W, for 100 ms of each second 3 W, one sample of 9 W at 7.5 s; then 1 W
PULSES = [(-100.0, 1.0), *(w for s in range(20) for w in ((float(s), 2.0), (s + 0.4, 3.0), (s + 0.5, 2.0)))]
WATTS = sorted([*PULSES, (7.5, 9.0), (7.501, 2.0), (20.0, 1.5), (20.5, 1.0)])
IOPS = [40000] * 8 + [8000] * 6 + [0, 0] + [8000] * 4


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return synthetic_run.write(folder, IOPS, watts=WATTS, zoom_s=10, idle_s=4, queue_depth=32, name="one")


@pytest.fixture(scope="module")
def loaded(run):
    data, figures, _ = table.in_full(run)
    return data, figures


def test_fine_cells_have_the_energy_and_the_extremes_of_the_seconds(loaded):
    data, _ = loaded
    per = round(1 / data.fine_step_s)
    assert data.fine_step_s == 0.01 and len(data.fine_mean_W) >= 20 * per
    of_load = slice(0, 20 * per)
    joules = data.fine_mean_W[of_load].reshape(20, per).sum(axis=1) * data.fine_step_s
    assert joules == pytest.approx(data.energy_J, rel=1e-9)
    assert data.fine_max_W[of_load].reshape(20, per).max(axis=1) == pytest.approx(data.power_max_W)
    assert data.fine_min_W[of_load].reshape(20, per).min(axis=1) == pytest.approx(data.power_min_W)
    assert data.fine_mean_W[45] == pytest.approx(3, rel=0.01) and data.fine_mean_W[30] == pytest.approx(2, rel=0.01)
    assert data.fine_mean_W[22 * per] == pytest.approx(1, rel=0.01)  # what follows the load is there, too


def test_the_samples_around_moments_are_kept(loaded):
    data, _ = loaded
    moments = {name: (t, P) for name, t, P in data.moments}
    assert list(moments) == ["start of the load", "highest sample, 9 W", "cliff", "stall of 2 s", "end of the load"]
    for name, middle in (("cliff", 8.0), ("stall of 2 s", 15.0), ("end of the load", 20.0)):
        t, P = moments[name]
        assert t[0] == pytest.approx(middle - 1, abs=0.01) and t[-1] == pytest.approx(middle + 1, abs=0.01)
        assert len(t) == len(P) == pytest.approx(2010, abs=3)  # each conversion takes 1/1.005 ms
    t, P = moments["highest sample, 9 W"]
    assert t[P.argmax()] == pytest.approx(7.5, abs=0.002) and P.max() == pytest.approx(9, rel=1e-3)


def test_a_mark_of_a_person_is_a_moment(run, tmp_path):
    import shutil

    from ssdrig.reading import summary
    from ssdrig.runs import annotations

    own = shutil.copytree(run, tmp_path / "one")
    before, figures_before = summary.load(own)
    annotations.add(own, "fan off", 12.5)
    data, figures = summary.load(own)  # what was kept of the run is made anew
    assert (12.5, "fan off") in data.marks and "fan off" in [name for name, *_ in data.moments]
    assert "fan off" not in [name for name, *_ in before.moments]
    assert figures["notes"] == figures_before["notes"]  # the folder is not called damaged


def test_all_samples_are_kept_when_asked_for(run, loaded):
    data = table.in_full(run, samples=True).data
    (name, t, P), *more = data.moments
    assert name == "all" and not more and len(t) == data.watts_hist["all"].sum() == pytest.approx(20 * 1005, abs=2)
    assert (np.diff(t) > 0).all() and P.max() == pytest.approx(9, rel=1e-3)


def test_the_histogram_counts_each_sample(loaded):
    data, figures = loaded
    for name, window in (("all", figures["windows"]["all"]), ("steady", figures["windows"]["steady"])):
        counts = data.watts_hist[name]
        seconds = window["t1_s"] - window["t0_s"]
        assert counts.sum() == pytest.approx(1005 * seconds, abs=2)
        mean = (counts * (np.arange(len(counts)) + 0.5)).sum() / counts.sum() / 1000
        assert mean == pytest.approx(window["power_mean_W"], abs=0.002)
    assert data.watts_hist["all"][2990:3010].sum() == pytest.approx(20 * 100.5, abs=25)


def test_where_the_energy_went(loaded):
    data, figures = loaded
    window = figures["windows"]["all"]
    parts = below_second.parts_of(data, "all", window)
    assert parts.floor_J + parts.work_J + parts.peaks_J == pytest.approx(window["energy_J"])
    assert parts.floor_J == pytest.approx(20 * 1.0, rel=0.01)  # 1 W idle
    assert parts.peak_W == pytest.approx(2.4, abs=0.01)
    # 0.1 s of 3 W in each second lie 0.6 W above it, one sample of 9 W 6.6 W
    assert parts.peaks_J == pytest.approx(20 * 0.1 * 0.6 + 0.0066, rel=0.02)
    assert parts.after_J == pytest.approx(0.5 * 0.5, rel=0.05)  # 1.5 W for half a second after the load
    assert below_second.parts_of(data, "steady", figures["windows"]["steady"]).after_J is None
    data_without = synthetic_copy(data, idle_mean_W=None)
    assert below_second.parts_of(data_without, "all", window) is None


def synthetic_copy(data, **changes):
    import dataclasses

    return dataclasses.replace(data, **changes)


def unzipped(packed, arrays):
    raw = np.frombuffer(zlib.decompress(base64.b64decode(packed["z"])), np.uint8).reshape(arrays, 2, packed["n"])
    return raw[:, 0].astype(int) | raw[:, 1].astype(int) << 8


def test_what_the_page_carries_of_the_samples_comes_back(loaded):
    data, _ = loaded
    packed = pack.fine(data)
    mean, least, most = unzipped(packed, 3)
    value = packed["lo"] + packed["step"] * mean
    assert value == pytest.approx(data.fine_mean_W, abs=packed["step"])
    assert (packed["lo"] + packed["step"] * least <= data.fine_min_W + 1e-9).all()
    assert (packed["lo"] + packed["step"] * most >= data.fine_max_W - 1e-9).all()
    assert packed["step"] * pack.ROUGH < 0.003
    for one, (name, t, P) in zip(pack.moments(data, 1), sorted(data.moments, key=lambda m: m[1][0])):
        ticks, codes = unzipped(one, 2)
        assert one["words"] == name
        assert one["t0"] + np.cumsum(ticks) * one["tick"] == pytest.approx(t, abs=one["tick"])
        assert one["lo"] + one["step"] * codes == pytest.approx(P, abs=one["step"])
    assert len(pack.moments(data, 24)) == 2  # the highest sample and the cliff
    gap = synthetic_copy(data, moments=[("x", np.array([0.0, 0.1, 5.0, 5.1]), np.array([1.0, 2, np.nan, 4]))])
    assert [(one["t0"], one["n"]) for one in pack.moments(gap, 1)] == [(0.0, 2), (5.0, 2)]


def test_a_run_without_power_or_load_has_no_samples(tmp_path):
    data = table.in_full(synthetic_run.write(tmp_path, [1000] * 5, zoom_s=2, power=False)).data
    assert pack.fine(data) is None and pack.moments(data, 1) == [] and data.watts_hist == {}
    assert below_second.moments(reading.RunData({}, [], "died", None, 1)) == []


# ---- plots that Python draws


@pytest.fixture(scope="module")
def page_parts(loaded):
    data, figures = loaded
    shown = views.of([figures])
    return [data], shown, words.labels([figures]), [svg.look(0)]


def test_the_share_of_slower_io_falls_from_all_to_none(page_parts):
    runs, shown, names, looks = page_parts
    plate = plates.slower(runs, shown[0], 0, names, looks, 0)
    rows = [line.rsplit(",", 2) for line in plate.csv.splitlines()[1:]]
    times, share = (np.array([float(row[k]) for row in rows]) for k in (1, 2))
    assert share[0] == 1 and share[-1] == 0 and (np.diff(share) <= 0).all() and (np.diff(times) > 0).all()
    assert times[-1] == pytest.approx(800, rel=0.02)  # us, of all I/O; fio's bins are 1.6 % wide
    counted = latency.counts(latency.of_window(runs[0].hist, 0, 20))
    assert counted.sum() == sum(IOPS) and shown[0].name == "steady"
    assert runs[0].lat_in_window["steady"].sum() == sum(IOPS[10:])


def test_a_name_with_quotes_is_one_cell(page_parts):
    import csv

    runs, shown, names, looks = page_parts
    hostile = [(*names[0][:2], 'a "b", c', names[0][3])]
    plate = plates.slower(runs, shown[0], 0, hostile, looks, 0)
    assert {row[0] for row in list(csv.reader(plate.csv.splitlines()))[1:]} == {'a "b", c'}
    plate = plates.slower(runs, shown[0], 0, [(*names[0][:2], "=HYPERLINK(1)", names[0][3])], looks, 0)
    assert {row[0] for row in list(csv.reader(plate.csv.splitlines()))[1:]} == {"'=HYPERLINK(1)"}


def test_csv_files_have_names_of_their_own_in_their_folder():
    names = csv_files.file_names(
        ["../../x", "a/b", "a\\b", "", ".hid", "same", "same", "\udcff\n", "=a b+1.2", "x" * 300, None]
    )
    assert len({*names}) == 11 and names[5:7] == ["same", "same_2"] and names[8] == "=a b+1.2"
    for name in names:
        assert name and "/" not in name and not name.startswith(".") and len(name) <= 104 and name.isascii()


def test_the_heat_map_is_a_picture_with_a_column_for_each_second(page_parts):
    runs, *_ = page_parts
    plate = plates.heat(runs[0], 0, "one", plates.span_us(runs), 20)
    png = base64.b64decode(plate.svg.split("data:image/png;base64,")[1].split('"')[0])
    columns, rows = struct.unpack(">II", png[16:24])
    idat = png[png.index(b"IDAT") + 4 : -16]
    level = np.frombuffer(zlib.decompress(idat), np.uint8).reshape(rows, columns + 1)[:, 1:]
    assert columns == 20 and (level.max(axis=0) > 0).tolist() == [n > 0 for n in IOPS]
    assert (level.max(axis=0)[[0, 9]] == 255).all()  # all I/O of a second in one bin


KINDS = ("seconds", "cells", "samples", "latency", "marks")


def test_csv_has_all_digits_and_a_row_for_each_second(loaded, tmp_path):
    data, figures = loaded
    made = csv_files.write(tmp_path / "new", "one", csv_files.tables(data))
    assert [path.name for path in made] == [f"one-{kind}.csv" for kind in KINDS]
    lines = made[0].read_text().splitlines()
    cells = dict(zip(lines[0].split(","), lines[6].split(","), strict=True))
    assert len(lines) == 21 and int(cells["iops"]) == IOPS[5]
    assert float(cells["power_mean_W"]) == data.power_mean_W[5]
    assert sum(int(line.rsplit(",", 1)[1]) for line in made[3].read_text().splitlines()[1:]) == sum(IOPS)


def test_a_control_character_of_a_model_is_no_end_of_an_svg(loaded):
    import xml.etree.ElementTree as ElementTree

    data, figures = loaded
    of = dict(figures, model="\x1b[31mred\x00", run="a\ufffe")
    made = embed.text([(data, of)], 0, "power", True)
    assert "\ufffd[31mred" in "".join(ElementTree.fromstring(made).itertext())


@pytest.mark.slow
@pytest.mark.parametrize(
    "panel",
    [
        *(name for name in plates.PANELS if name != "rails"),
        "latency-cdf",
        "latency-heat",
        "power-histogram",
        "power-iops",
    ],
)
def test_a_panel_alone(loaded, panel):
    import xml.etree.ElementTree as ElementTree

    data, figures = loaded
    for as_svg in (True, False):
        text = embed.text([(data, figures)], 0, panel, as_svg)
        assert "SIMULATED" in text and "one" in text and "<script" not in text
        if as_svg:
            assert ElementTree.fromstring(text).tag.endswith("svg")
            assert "var(--review)" in text or panel == "latency-heat"
        else:
            assert text.startswith("<!doctype html>") and "default-src 'none'; script-src 'none'" in text
