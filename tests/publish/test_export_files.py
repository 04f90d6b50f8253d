"""Files for other programs: fio's results as fio-plot finds them, and power as .jls."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import synthetic_run

from ssdrig import cli
from ssdrig.base.errors import ToolMissing, UsageError
from ssdrig.meter import samples

FIO = Path(__file__).parent.parent / "data" / "fio-3.33-bursts"
IOPS = [20_000, 20_000, 10_000, 30_000] * 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose load is what fio 3.33 wrote."""
    made = synthetic_run.write(tmp_path_factory.mktemp("runs"), IOPS, zoom_s=6, watts=((-100.0, 4.0), (0.0, 2.5)))
    shutil.rmtree(made / "fio" / "load")
    shutil.copytree(FIO, made / "fio" / "load")
    return made


def test_fio_plot_finds_the_document_and_the_logs_of_a_step(run, tmp_path, capsys):
    assert cli.main(["export", str(run), "--fio", str(tmp_path / "f"), "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["left_out"] == {"fill": "it has no 'rw'"}  # a document of ours, without options
    name = "randwrite-iodepth-1-numjobs-1"
    of = tmp_path / "f" / "load"
    assert {path.name for path in of.iterdir()} == {
        f"{name}.json",
        *(f"{name}_{k}.1.log" for k in ("iops", "bw", "lat")),
    }
    job = json.loads((of / f"{name}.json").read_text())["jobs"][0]
    assert {key: job["job options"][key] for key in ("rw", "iodepth", "numjobs")} == {
        "rw": "randwrite",
        "iodepth": "1",
        "numjobs": "1",
    }
    iops, bw, lat = (
        [[int(cell) for cell in line.split(",")] for line in (of / f"{name}_{kind}.1.log").read_text().splitlines()]
        for kind in ("iops", "bw", "lat")
    )
    assert sum(row[1] for row in iops) == job["write"]["total_ios"] and {row[2] for row in iops} == {1}
    assert [row[0] for row in iops] == [1000 * (n + 1) for n in range(len(iops))]
    assert [row[1] for row in bw] == [4 * row[1] for row in iops]
    done = [(row[1], latency[1]) for row, latency in zip(iops, lat) if row[1]]
    mean_ns = sum(n * ns for n, ns in done) / sum(n for n, _ in done)
    assert mean_ns == pytest.approx(job["write"]["lat_ns"]["mean"], rel=1e-2)


@pytest.mark.parametrize("graph", [["-g", "-t", "iops", "lat", "bw"], ["-l"]])
def test_fio_plot_draws_what_was_exported(run, tmp_path, graph):
    plot = shutil.which("fio-plot")
    if not plot:
        pytest.skip("fio-plot is not installed: it is published without wheels, so no lock file has it")
    assert cli.main(["export", str(run), "--fio", str(tmp_path / "f"), "--quiet"]) == 0
    words = [*"-T load -r randwrite -d 1 -n 1 -o plot.png".split(), "-i", str(tmp_path / "f" / "load")]
    done = subprocess.run([plot, *words, *graph], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_step_without_a_document_is_left_out_by_name(run, tmp_path, capsys):
    torn = tmp_path / "torn"
    shutil.copytree(run, torn)
    (torn / "fio" / "load" / "out.json").write_bytes(b"{")
    assert cli.main(["export", str(torn), "--fio", str(tmp_path / "f"), "--json", "--quiet"]) == 0
    assert [*json.loads(capsys.readouterr().out)["left_out"]] == ["fill", "load"]


@pytest.mark.parametrize("wrong", [{"rw": "../../../out"}, {"iodepth": "1/../../out"}, {"numjobs": ["x"]}, "none"])
def test_options_of_a_stranger_name_no_place_outside_the_folder(run, tmp_path, capsys, wrong):
    odd = tmp_path / "odd"
    shutil.copytree(run, odd)
    document = odd / "fio" / "load" / "out.json"
    text = document.read_text()
    last = json.loads(text[text.rindex("\n{\n") :])
    options = {"rw": "randwrite", "iodepth": "1", "numjobs": "1"}
    last["jobs"][0]["job options"] = 1 if wrong == "none" else options | wrong
    document.write_text(json.dumps(last))
    before = {path for path in tmp_path.rglob("*") if "odd" not in path.parts}
    assert cli.main(["export", str(odd), "--fio", str(tmp_path / "a" / "b" / "f"), "--json", "--quiet"]) == 0
    assert "load" in json.loads(capsys.readouterr().out)["left_out"]
    assert {path for path in tmp_path.rglob("*") if "odd" not in path.parts and path.is_file()} == before


def test_jls_without_pyjls_is_one_error(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyjls", None)
    assert cli.main(["export", str(run), "--jls", str(tmp_path / "p.jls")]) == ToolMissing.exit_code
    assert "pyjls" in capsys.readouterr().err
    (tmp_path / "p.jls").write_bytes(b"")
    assert cli.main(["export", str(run), "--jls", str(tmp_path / "p.jls")]) == UsageError.exit_code


def test_jls_has_the_energy_of_the_run_and_is_read_back(run, tmp_path, capsys):
    pyjls = pytest.importorskip("pyjls", reason="no pyjls (extra lake-test)")
    assert cli.main(["export", str(run), "--jls", str(tmp_path / "p.jls"), "--quiet"]) == 0
    power = samples.load(run)
    with pyjls.Reader(str(tmp_path / "p.jls")) as reader:
        by_name = {signal.name: signal for signal in reader.signals.values()}
        of = by_name["power"]
        watts = np.asarray(reader.fsr(of.signal_id, 0, of.length), float)
        joules = watts.sum() / of.sample_rate
        end_ns = power.t_ns[0] + round(of.length * 1e9 / of.sample_rate)
        begin_J, end_J = power.integral_J([power.t_ns[0], end_ns]).tolist()
        assert joules == pytest.approx(end_J - begin_J, rel=1e-5)
        begin = pyjls.jls_to_utc(reader.sample_id_to_timestamp(of.signal_id, 0))
        own = (synthetic_run.UTC_RUN_NS + int(power.t_ns[0]) - synthetic_run.T_RUN_NS) / 1e9
        assert begin == pytest.approx(own, abs=1e-5)
