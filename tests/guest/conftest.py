"""The guest that all tests of this folder share: one boot, and off behind the last of them. What it cannot run here is
skipped with the reason."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from guest.kernel import NoKernel
from guest.machine import Machine

UDEVD = "/usr/lib/systemd/systemd-udevd"


@pytest.fixture(scope="package")
def machine(tmp_path_factory) -> Iterator[Machine]:
    """The running guest; with udev where this machine has it, so that /dev/disk/by-id is filled as on any machine."""
    try:
        machine = Machine(tmp_path_factory.mktemp("guest"))
    except NoKernel as error:
        pytest.skip(f"no guest: {error}")
    with machine:
        if Path(UDEVD).exists():  # the guest has this machine's programs
            machine.run("sh", "-c", f"{UDEVD} --daemon && udevadm trigger --subsystem-match=block && udevadm settle")
        yield machine


@pytest.fixture
def guest(machine) -> Iterator[Machine]:
    """The guest with its disks empty and free, before and after the test."""
    if machine.process.poll() is not None:
        pytest.fail(f"the guest has ended in an earlier test:\n{machine.console_tail()}")
    yield machine
    machine.do("clean")


@pytest.fixture
def needs():
    """needs("nvme") skips the test where this machine, whose programs the guest runs, has no such program."""

    def check(*programs: str) -> None:
        for program in programs:
            if not shutil.which(program, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
                pytest.skip(f"{program} is not installed on this machine, whose programs the guest uses")

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what the guest's kernel said last."""
    report = yield
    if report.failed and (machine := item.funcargs.get("machine")):
        report.sections.append(("the guest's console", machine.console_tail()))
    return report
