"""What a run writes into its run.json before anything is touched."""

import os
import platform

from ssdrig import __version__
from ssdrig.base import system
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
            "boot_id": system.boot_id(),
            "cpus": os.cpu_count(),
        },
    }
