"""Stand-ins for smartctl and nvme on PATH: small shell scripts in a folder of the test's own. What they print is what
the real ones print; each test says of which version. The folder's file `calls` lists how they were called, a line
each."""

import json
import os
from pathlib import Path

# What nvme-cli 2.3 with libnvme 1.3 (Debian 12) prints for a page that the drive does not have; it ends with status 1.
NO_PAGE_2_3 = "NVMe status: Invalid Log Page: The log page indicated is invalid(0x4109)"


class Tools:
    """A folder for fake programs, put first on PATH (`monkeypatch` is pytest's)."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        # sh, cat, sleep; Debian's smartctl is in /usr/sbin
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def put(self, name: str, script: str, mode: int = 0o755) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\ncd "{self.folder}"\necho "{name} $*" >> calls\n{script}\n')
        path.chmod(mode)

    def smartctl(self, document, exit_code: int = 0) -> None:
        """A smartctl that prints this (an object as JSON, bytes as they are) and ends so."""
        (self.folder / "smartctl.out").write_bytes(
            document if isinstance(document, bytes) else json.dumps(document).encode()
        )
        self.put("smartctl", f"cat smartctl.out\nexit {exit_code}")

    def nvme(self, pages: dict[str, bytes], refusal: str = NO_PAGE_2_3) -> None:
        """An nvme-cli 2.3 of a drive that has these pages: "id-ctrl", "id-ns", "id-uuid", "02", "c0" …; all others are
        refused."""
        for name, page in pages.items():
            (self.folder / f"page.{name}").write_bytes(page)
        (self.folder / "refusal").write_text(refusal + "\n")
        self.put(
            "nvme",
            'page=$1\nif [ "$1" = get-log ]; then for word in "$@"; do case $word in --log-id=0x*)'
            ' page=${word#--log-id=0x};; esac; done; fi\n[ -f "page.$page" ] || { cat refusal >&2; exit 1; }\n'
            'for w in "$@"; do case $w in --data-len=*) exec head -c "${w#--data-len=}" "page.$page";; esac; done\n'
            'exec cat "page.$page"',
        )

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


def answer_of_smartctl(exit_status: int = 0, **more) -> dict:
    """The head of what `smartctl --json=cv` 7.3 prints, and more."""
    head = {"version": [7, 3], "svn_revision": "5338", "argv": ["smartctl", "--json=cv"], "exit_status": exit_status}
    return {"json_format_version": [1, 0], "smartctl": head, "local_time": {"time_t": 1795188630}, **more}


def identity(vid: int = 0x1234, serial: str = "0001", lpa: int = 0, ctratt: int = 0, endgidmax: int = 0) -> bytes:
    """An Identify Controller structure with these fields; their places as in NVMe Base Specification 2.0, figure
    275."""
    page = bytearray(4096)
    page[0:2] = vid.to_bytes(2, "little")
    page[4:24] = serial.ljust(20).encode()
    page[96:100] = ctratt.to_bytes(4, "little")
    page[261] = lpa
    page[340:342] = endgidmax.to_bytes(2, "little")
    return bytes(page)
