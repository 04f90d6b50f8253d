"""fio's files cut off at any byte, as a full disk or a copy that broke leaves them: a figure is as before, or it is
null and `notes` say which file came short."""

import shutil

import pytest
from synthetic_run import IOPS, write

from ssdrig.load import fiolog
from ssdrig.reading import table


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write(tmp_path_factory.mktemp("runs"), IOPS)


def cut(run, copy, name: str, share: float):
    shutil.copytree(run, copy)
    with open(copy / "fio" / name, "r+b") as f:
        f.truncate(int(f.seek(0, 2) * share))
    return table.in_full(copy).figures


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.37, 0.5, 0.9, 0.97, 0.999])
@pytest.mark.parametrize("step", ["load", "fill"])
def test_documents_cut_off(whole, tmp_path, step, share):
    want, got = table.in_full(whole).figures, cut(whole, tmp_path / "run", f"{step}/out.json", share)
    assert any(note.startswith(f"{step}: ") and "out.json" in note for note in got["notes"])
    for key in ("iops_all_mean",) if step == "load" else ("fill_MBps", "fill_energy_J"):
        assert got[key] is None, key
    for key in ("iops_mean", "iops_sd", "zero_seconds", "window_s", "energy_J", "lat_p99_us"):  # fio's log has these
        assert got[key] == want[key], key


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 5, 20, 25])
@pytest.mark.parametrize("torn", [0, 700])
def test_log_cut_off(whole, tmp_path, rows, torn):
    """At the end of a row or within one: the documents say that I/O followed."""
    lines = (whole / "fio" / "load" / "load_clat_hist.1.log").read_bytes().splitlines(keepends=True)
    run = shutil.copytree(whole, tmp_path / "run")
    (run / "fio" / "load" / "load_clat_hist.1.log").write_bytes(b"".join(lines[:rows]) + lines[rows][:torn])
    seconds = fiolog.load(run / "fio" / "load")
    assert seconds.source == "status" and seconds.iops.sum() == seconds.totals["ios"] == sum(IOPS)
    assert any("documents" in note for note in table.in_full(run).figures["notes"])


def test_both_gone_but_for_nothing(whole, tmp_path):
    run = shutil.copytree(whole, tmp_path / "run")
    for path in (run / "fio" / "load").iterdir():
        path.write_bytes(b"")
    got = table.in_full(run).figures
    assert got["iops_mean"] is None and got["ios"] is None and any(note.startswith("load: ") for note in got["notes"])
