"""Which rig feeds which drive, with whole virtual benches: real bursts, real boards' samples; and what a fleet makes of
it."""

import argparse
import contextlib
from types import SimpleNamespace

import pytest
from drives import a_drive

from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.blockio.nbd import NbdClient
from ssdrig.run import fleet, matching
from ssdrig.run.options import Named
from ssdrig.virtual import bench

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
NAMES = ("A", "B", "idle")


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
    said = capsys.readouterr().err
    assert all(item.args.drives[0].rig == item.args.rig for item in items)
    return {item.name: item.args.rig for item in items}, said


def test_rigs_that_were_crossed_are_exchanged_and_named(benches, items, capsys):
    a, b = benches["A"].port, benches["B"].port
    found, said = rigs_of(items(A=b, B=a), capsys)
    assert found == {"A": a, "B": b}
    assert f"A: rig {a} feeds it, not {b}" in said and f"B: rig {b} feeds it, not {a}" in said


def test_rig_on_a_drive_that_is_not_tested_is_left_to_the_drives_own_run(benches, items, capsys):
    idle, b = benches["idle"].port, benches["B"].port
    found, said = rigs_of(items(A=idle, B=b), capsys)
    assert found == {"A": idle, "B": b} and "A: no rig shows its load" in said
