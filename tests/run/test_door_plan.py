"""A whole plan with I/O after its cuts, carried out by a run with real fio and a real player, on a drive that comes
back under another name each time: what lies on the disks that have its old names stays."""

import time
from types import SimpleNamespace

import pytest
from guarding import SERIAL, tree  # noqa: F401  fixture
from small_plans import HEAD

from ssdrig.base.progress import Progress
from ssdrig.drive import guard
from ssdrig.drive.inventory import find
from ssdrig.run import bench, prepare, run
from ssdrig.run.steps import cuts
from ssdrig.run.teardown import Stop

MIB = 1 << 20
SIZE = 96 * MIB
PHOTOS = (b"FAMILY PHOTOS.\n" * (SIZE // 15 + 1))[:SIZE]
FILL = '[[step]]\nname = "{}"\ndo = "fill"\nrange = "64 MiB"\n'
PLAN = (
    HEAD
    + FILL.format("before")
    + '[[step]]\nname = "cuts"\ndo = "cuts"\ncuts = 2\n'
    + FILL.format("after")
    + """[[step]]
name = "load"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
range = "16 MiB"
amount = "1 MiB"
[[step]]
name = "replay"
do = "replay"
bench = "{bench}"
ios = 2000
timing = "closed"
range = "64 MiB"
[[step]]
name = "flush"
do = "flush"
"""
    + FILL.format("last")
)


def stranger(tree, name: str, port: int) -> None:
    """Somebody else's disk gets the name."""
    tree.sata(name, serial=f"STRANGER{port}", model="FAMILY PHOTOS", port=port, size_bytes=SIZE)
    (tree.root / "dev" / name).write_bytes(PHOTOS)


def ours(tree, name: str) -> None:
    """Our drive gets the name; its blocks are those of a file with direct I/O."""
    tree.sata(name, port=1, size_bytes=SIZE)
    tree.write(f"sys/block/{name}/queue/logical_block_size", "4096\n")


@pytest.mark.slow
@pytest.mark.keeps_time
def test_plan_with_io_after_cuts_follows_the_moved_drive_and_leaves_each_stranger(tree, tmp_path, monkeypatch):
    hold, names = guard.hold, ["sda"]
    monkeypatch.setattr(bench.guard, "hold", lambda drive, serial, reads, **_: hold(drive, serial, tree.root, reads))
    monkeypatch.setattr(bench, "polled", lambda drive, like: document())

    def document() -> dict:
        now = time.monotonic_ns()
        return {"t_start_ns": now, "t_end_ns": now + 1, "simulated": False, "smartctl": {}}

    def moves(act, stage, number: int) -> dict:
        """In the place of a campaign: the drive goes, a stranger gets its name, it comes back under another."""
        stage.bench.check()
        for _ in range(act.keys["cuts"]):
            stage.bench.target.away()
            was, now = names[-1], f"sd{chr(ord(names[-1][2]) + 1)}"
            content = (tree.root / "dev" / was).read_bytes()
            tree.remove(was)
            stranger(tree, was, 3 + len(names))
            ours(tree, now)
            (tree.root / "dev" / now).write_bytes(content)
            names.append(now)
            stage.bench.target.back()
        return {}

    monkeypatch.setattr(cuts, "carry_out", moves)
    from ssdrig.load.trace_published import BENCHES

    tree.remove("sda")
    ours(tree, "sda")
    path = tmp_path / "x.toml"
    path.write_text(PLAN.format(bench=next(iter(BENCHES))))
    with bench.real(find(SERIAL, tree.root), None, SERIAL, "discard", None, None, commands=("true", "true")) as bench_:
        plan = prepare.prepare(str(path), bench_.drive)
        args = SimpleNamespace(runs=str(tmp_path / "runs"), influx=None, jsonl=False, verbose=False)
        show = Progress(quiet=True)
        with Stop(show) as stop, stop.held():
            folder, end = run.carry_out(args, plan, bench_, show, stop)
        targets = {job.parent.name: job.read_text() for job in sorted((folder / "fio").rglob("job.fio"))}
    assert end["exit_code"] == 0, end
    assert names == ["sda", "sdb", "sdc"] and len(targets) == 4
    for name in names[:-1]:
        assert (tree.root / "dev" / name).read_bytes() == PHOTOS, name
    assert all("filename=/proc/" in text and "/dev/" not in text for text in targets.values())
    content = (tree.root / "dev/sdc").read_bytes()
    assert any(content[: 64 * MIB]) and not any(content[64 * MIB :])
