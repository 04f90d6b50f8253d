"""What is compiled: all of it before time matters, and made anew when any of its sources has changed."""

import ast
import subprocess
import sys

import numba
import numpy as np
import pytest

from ssdrig.base import kernels
from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import device
from ssdrig.virtual.device.waiting import Waiting
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS
from ssdrig.virtual.flash.presets import PRESETS

KIB, MS = 1024, 1_000_000


def test_each_file_with_kernels_is_a_source():
    with_kernels = [path for path in kernels.HERE.rglob("*.py") if "\n@jit" in path.read_text()]
    assert len(with_kernels) > 5
    assert {str(path.relative_to(kernels.HERE)) for path in with_kernels} <= set(kernels.SOURCES)


def test_each_file_whose_numbers_a_kernel_has_in_it_is_a_source():
    """Numba puts a module's constant into the machine code, and looks only at the file of the function."""
    for name in kernels.SOURCES:
        tree = ast.parse((kernels.HERE / name).read_text())
        files = {}  # name in this file -> the file that it comes from
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ssdrig."):
                there = kernels.HERE.joinpath(*node.module.split(".")[1:])
                for imported in node.names:
                    module = there / f"{imported.name}.py"
                    files[imported.asname or imported.name] = module if module.exists() else there.with_suffix(".py")
        compiled_here = [
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(by) for by in node.decorator_list)
        ]
        for used in (node for function in compiled_here for node in ast.walk(function) if isinstance(node, ast.Name)):
            if used.id in files:
                assert str(files[used.id].relative_to(kernels.HERE)) in kernels.SOURCES, f"{name} uses {used.id}"


def test_a_run_on_the_virtual_bench_does_not_import_numba():
    """The drive does, in its own process; here it would take as long as the rest of the start."""
    code = (
        "import sys; from collections import defaultdict; from unittest import mock; from ssdrig.run import bench;"
        "import ssdrig.run.run, ssdrig.virtual.bench;"
        "bench.virtual(mock.Mock(drive=defaultdict(int)));"
        "sys.exit('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "numba was imported"


def compiled() -> dict[str, list]:
    """The signatures for which each kernel of the virtual drive has machine code in this process."""
    modules = [module for name, module in sys.modules.items() if name.startswith("ssdrig.virtual")]
    values = [value for module in modules for value in vars(module).values()]
    return {str(it): list(it.signatures) for it in values if isinstance(it, numba.core.registry.CPUDispatcher)}


@pytest.mark.parametrize("data", ["sparse", "crc", "file"])
def test_a_drive_that_serves_compiles_and_loads_nothing_more(data, tmp_path):
    """A server that does so in the middle of a request is late, by up to seconds on a busy machine, and the board has
    by then read power that is too low."""
    preset = PRESETS["sata-tlc"]
    device.warm_up(preset)
    before = compiled()
    ring = np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
    data = str(tmp_path / "data") if data == "file" else data
    drive = VirtualDrive(preset, ring=ring)
    it = device.Device(preset, drive, 64 << 20, data, 0, ring, latency=True)
    waiting, t_ns, buf = Waiting(it), MS, np.zeros(1 << 20, np.uint8)
    out = np.empty(1 << 20, np.uint8)
    requests = [
        (op, flags, n, length, offset, stamped)
        for op in (
            nbd_protocol.WRITE,
            nbd_protocol.READ,
            nbd_protocol.FLUSH,
            nbd_protocol.TRIM,
            nbd_protocol.WRITE_ZEROES,
        )
        for flags in (0, nbd_protocol.FUA)
        for n in (1, 9)
        for length, offset in ((4 * KIB, 0), (128 * KIB, 0), (512, 512), (8 * KIB, 2 * KIB))
        if not (length % it.store.min_block or offset % it.store.min_block)
        for stamped in (False, True)
    ]
    for op, flags, n, length, offset, stamped in requests:
        batch = np.zeros((n, nbd_protocol.COLUMNS), np.int64)
        batch[:, nbd_protocol.OP], batch[:, nbd_protocol.FLAGS] = op, flags
        batch[:, nbd_protocol.OFFSET], batch[:, nbd_protocol.LENGTH] = offset + np.arange(n) * (256 * KIB), length
        nbd_protocol.parse(buf, 0, 0, it.capacity_bytes, 1, batch)
        (waiting.execute_stamped if stamped else waiting.execute)(buf, batch, n, t_ns)
        t_ns += 100 * MS
        waiting.replying(t_ns)
        left, _, reads, due_ns = nbd_protocol.collect(waiting.rows, waiting.n, t_ns, out, waiting.reads)
        waiting.left(left, due_ns)
        if reads:
            it.store.read(out, waiting.reads, reads)
        it.advance(t_ns)
    it.close()
    assert compiled() == before
