"""Which rig feeds which drive, with whole virtual benches: real bursts, real boards' samples; and what a fleet makes of
it."""

import argparse
import contextlib
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import fleet_of_benches
import pytest
from drives import a_drive

from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.blockio.nbd import NbdClient
from ssdrig.load import fiolog
from ssdrig.meter import pairing, rails, samples
from ssdrig.reading import table
from ssdrig.run import fleet, matching
from ssdrig.run.options import Named
from ssdrig.runs import journal
from ssdrig.virtual import bench
from ssdrig.virtual.device import truth

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
NAMES = ("A", "B", "idle")
PLAN = """schema = 1
name = "pair"
title = "Few seconds"
source = "test_bench_matching.py"
about = "A small load."
[[step]]
name = "load"
do = "load"
range = "64 MiB"
pattern = "random"
read = 0
block = "4 KiB"
qd = 4
time = "5 s"
"""


@pytest.fixture(scope="module")
def benches():
    with contextlib.ExitStack() as ends:
        made = {}
        for name in NAMES:
            made[name] = bench.start("sata-tlc", capacity="256MiB")
            ends.callback(made[name].end)
        yield made


@pytest.fixture
def items(benches, monkeypatch):
    """items(A=rig, B=rig) as `run --drive A --rig … --drive B --rig …` has them, on drives that need no root."""
    sockets = {name: str(one.folder / "nbd") for name, one in benches.items()}
    monkeypatch.setattr(
        fleet.guard, "hold", lambda drive, consent: contextlib.nullcontext(SimpleNamespace(path=drive.serial))
    )
    monkeypatch.setattr(matching, "connect_to", lambda path: lambda write: NbdClient(sockets[path]))

    def of(**rigs):
        return [
            SimpleNamespace(
                name=name,
                drive=a_drive(serial=name, capacity_bytes=256 << 20),
                args=argparse.Namespace(rig=rig, destroy_data=name, drives=(Named("drive", name, rig),)),
                prepared=SimpleNamespace(acts=[]),
            )
            for name, rig in rigs.items()
        ]

    return of


def rigs_of(items, capsys):
    """A fleet that is refused, where one look on a busy host did not show a drive, is begun again; none is matched
    wrongly."""
    for left in (2, 1, 0):
        try:
            fleet.matched(items, Progress(False))
            break
        except UsageError:
            if not left:
                raise
    stderr = capsys.readouterr().err
    assert all(item.args.drives[0].rig == item.args.rig for item in items)
    return {item.name: item.args.rig for item in items}, stderr


def test_rigs_that_were_crossed_are_exchanged_and_named(benches, items, capsys):
    a, b = benches["A"].port, benches["B"].port
    rigs, stderr = rigs_of(items(A=b, B=a), capsys)
    assert rigs == {"A": a, "B": b}
    assert f"A: rig {a} feeds it, not {b}" in stderr and f"B: rig {b} feeds it, not {a}" in stderr


def test_rig_on_a_drive_that_is_not_tested_is_left_to_the_drives_own_run(benches, items, capsys):
    idle, b = benches["idle"].port, benches["B"].port
    rigs, stderr = rigs_of(items(A=idle, B=b), capsys)
    assert rigs == {"A": idle, "B": b} and "A: no rig shows its load" in stderr


def run_of_fleet(benches, folder: Path, **given: str) -> tuple[subprocess.CompletedProcess, dict[str, Path]]:
    """`run PLAN --drive A --rig … --drive B --rig …`, whole, with the rigs of these benches: (how it ended, {drive: its
    run})."""
    (folder / "pair.toml").write_text(PLAN)
    words = ["run", str(folder / "pair.toml"), "--json", "--runs", str(folder / "runs")]
    for name, of in given.items():
        words += ["--drive", name, "--rig", benches[of].port, "--destroy-data", name]
    argv, environ = [*fleet_of_benches.PROGRAM, *words], fleet_of_benches.environ(benches)
    done = subprocess.run(argv, env=environ, cwd=folder, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    drives = json.loads(done.stdout)["drives"] if done.returncode == 0 else []
    return done, {one["drive"]: Path(one["results"][0]["run"]) for one in drives}


def energy_of(run: Path, ledger: Path) -> float:
    """What the rig measured of the load, as a part of what the drive drew by its own ledger."""
    powers, seconds = samples.load_rails(run), fiolog.load(run / "fio" / "load")
    begin_ns = int(seconds.t_ns[0])
    end_ns = min(int(seconds.t_ns[-1]), *(int(power.t_ns[-1]) for power in powers))
    return rails.energy_J(powers, begin_ns, end_ns) / truth.energy_between(ledger, begin_ns, end_ns)


@pytest.mark.parametrize("given", [{"A": "B", "B": "A"}, {"A": "idle", "B": "B"}])
def test_whole_fleet_measures_each_drive_by_the_rig_that_feeds_it(benches, tmp_path, given):
    """A run whose signature a busy host hid has no power; none has another drive's."""
    done, runs = run_of_fleet(benches, tmp_path, **given)
    if done.returncode == 2 and "one rig for each drive" in done.stderr:
        pytest.skip(f"a busy host hid the signature of a drive, and the fleet was refused: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    for name, run in runs.items():
        reason = pairing.unpaired(journal.events(run))
        energy_J = table.in_full(run).figures["energy_J"]
        if given[name] == "idle":
            assert reason and energy_J is None and f"{name}: no rig shows its load" in done.stderr
        elif reason:
            assert energy_J is None
        else:
            assert energy_of(run, benches[name].folder / "truth") == pytest.approx(1, abs=0.02)
            crossed = f"{name}: rig {benches[name].port} feeds it, not {benches[given[name]].port}"
            assert (crossed in done.stderr) is (given[name] != name)
