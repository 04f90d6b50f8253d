"""What a run writes into its run.json before anything is touched."""

import os
import platform
from pathlib import Path

from ssdrig import __version__
from ssdrig.load import fio
from ssdrig.run import prepare
from ssdrig.run.bench import Bench
from ssdrig.run.budget import Budget


def of(prepared: prepare.Prepared, bench: Bench, budget: Budget | None = None) -> dict:
    """Content of run.json."""
    return {
        "ssdrig": __version__,
        "simulated": bench.simulated,
        **prepare.header(prepared),
        "budget_bytes": budget.most_bytes if budget else None,
        "drive": bench.drive,
        "rig": {"port": bench.port, "simulated": bench.simulated} if bench.port else None,
        "host": {
            "name": platform.node(),
            "python": platform.python_version(),
            "fio": fio.version("fio"),
            "kernel": platform.release(),
            "boot_id": boot_id(),
            "cpus": os.cpu_count(),
        },
    }


def boot_id() -> str | None:
    """The kernel's name of its present start; None where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
