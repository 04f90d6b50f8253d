"""The udev rules: read by udev's own checker where there is one (systemd 254), and by a reader of the same grammar
here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ssdrig.meter.pico import ports

RULES = Path(__file__).resolve().parents[2] / ports.RULES
# udev(7): key, optional {attribute}, operator, quoted value
TERM = re.compile(r'\s*([A-Z_]+)(?:\{([^}]+)\})?\s*(==|!=|\+=|-=|:=|=)\s*"([^"]*)"\s*(?:,|$)')
MATCH = {"ACTION", "SUBSYSTEM", "SUBSYSTEMS", "KERNEL", "KERNELS", "ATTR", "ATTRS", "ENV", "TAG"}
ASSIGN = {"SYMLINK", "TAG", "ENV", "MODE", "GROUP", "GOTO", "LABEL", "RUN"}
MACHINE_RULES = Path("/usr/lib/udev/rules.d")


def rules(text):
    """[(key, attribute, operator, value), ...] of each line that is no comment. ValueError where the grammar is not
    kept."""
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        at, terms = 0, []
        while at < len(line.rstrip()):
            term = TERM.match(line, at)
            if not term:
                raise ValueError(f"line {number} from {line[at : at + 20]!r}")
            key, _, operator, _ = term.groups()
            if key not in (MATCH if operator in ("==", "!=") else ASSIGN):
                raise ValueError(f"line {number}: {key} with {operator}")
            at = term.end()
            terms.append(term.groups())
        out.append(terms)
    labels = {t[3] for terms in out for t in terms if t[0] == "LABEL"}
    if missing := {t[3] for terms in out for t in terms if t[0] == "GOTO"} - labels:
        raise ValueError(f"GOTO without LABEL: {missing}")
    return out


def matches(terms, device):
    """Whether a rule's conditions hold for {"SUBSYSTEM": .., "ATTRS": {..}, ...}; patterns are alternatives without
    wildcards."""
    for key, attribute, operator, value in terms:
        if operator in ("==", "!="):
            have = device.get(key, {}) if attribute is None else device.get(key, {}).get(attribute, "")
            if (have in value.split("|")) != (operator == "=="):
                return False
    return True


def test_the_port_gets_its_name_its_user_and_no_modem_manager():
    tty = {
        "ACTION": "add",
        "SUBSYSTEM": "tty",
        "SUBSYSTEMS": "usb",
        "ATTRS": {"idVendor": "2e8a", "idProduct": "0005", "serial": "E66"},
    }
    done = [t for terms in rules(RULES.read_text()) if matches(terms, tty) for t in terms if t[2] not in ("==", "!=")]
    assert ("SYMLINK", None, "+=", "ssdrig/$attr{serial}") in done
    assert ("TAG", None, "+=", "uaccess") in done and ("ENV", "ID_MM_DEVICE_IGNORE", "=", "1") in done
    other = {**tty, "ATTRS": {**tty["ATTRS"], "idVendor": "0483"}}
    assert [
        t for terms in rules(RULES.read_text()) if matches(terms, other) for t in terms if t[0] in ("SYMLINK", "TAG")
    ] == []


@pytest.mark.parametrize("pid", [f"{pid:04x}" for pid in ports.BOOT_ROM])
def test_the_boot_roms_can_be_reached(pid):
    rom = {"ACTION": "add", "SUBSYSTEM": "usb", "ATTR": {"idVendor": "2e8a", "idProduct": pid}}
    done = [t for terms in rules(RULES.read_text()) if matches(terms, rom) for t in terms]
    assert ("TAG", None, "+=", "uaccess") in done


def test_the_ids_are_those_the_host_looks_for():
    text = RULES.read_text()
    assert f'ATTRS{{idVendor}}=="{ports.RASPBERRY_PI:04x}", ATTRS{{idProduct}}=="{ports.MICROPYTHON:04x}"' in text


def test_the_tag_is_set_before_it_is_used():
    """uaccess is turned into a right by seat-late; a rule that sorts behind it comes too late."""
    late = sorted(
        p.name
        for p in MACHINE_RULES.glob("*.rules")
        if re.search(r'TAG=="uaccess".*RUN', p.read_text(errors="replace"))
    )
    assert all(RULES.name < name for name in late or ["73-seat-late.rules"])


@pytest.mark.parametrize(
    "broken",
    [
        'SUBSYSTEM=="tty" SYMLINK+="x"',
        'SYMLINK=="x"',
        'SUBSYSTEM="tty"',
        'SUBSYSTEM=="tty',
        'GOTO="nowhere"',
        "SUBSYSTEM==tty",
    ],
)
def test_the_reader_refuses(broken):
    with pytest.raises(ValueError):
        rules(broken)


def test_udevs_own_checker():
    if not shutil.which("udevadm"):
        pytest.skip("no udevadm")
    if subprocess.run(["udevadm", "verify", "--help"], capture_output=True).returncode:
        pytest.skip("this udevadm has no `verify` (it came with systemd 254)")
    done = subprocess.run(["udevadm", "verify", str(RULES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
