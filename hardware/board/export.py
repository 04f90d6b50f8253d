"""Checks the schematic with KiCad 9 and writes what is made from it: ssdrig.net (netlist) and ssdrig.svg (drawing).

    python hardware/board/export.py [FOLDER]

kicad-cli is the one of host/ssdrig/setup/kicad.py: of PATH, or Debian's unpacked into .setup. The netlist loses
KiCad's date, both its version, and the absolute paths of the sources; in the drawing KiCad's stroked letters (90 % of
the bytes) give way to its own text elements."""

import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "host"))
import circuit

from ssdrig.base import child_cpu
from ssdrig.setup.kicad import command, provision

BOARD, NAME = Path(circuit.__file__).resolve().parent, circuit.NAME


def kicad(*arguments):
    """Run kicad-cli with an empty configuration of its own, so that a person's KiCad settings change nothing."""
    with tempfile.TemporaryDirectory() as config:
        environment = os.environ | {"KICAD_CONFIG_HOME": config, "HOME": config}
        return child_cpu.output([*command(), *map(str, arguments)], env=environment)


def rule_check(schematic, report):
    """KiCad's electrical rule check with errors and warnings; returns (ok, report text)."""
    done = kicad("sch", "erc", "--severity-all", "--exit-code-violations", "-o", report, schematic)
    return done.returncode == 0, Path(report).read_text() if Path(report).exists() else done.stdout + done.stderr


def netlist(schematic, folder):
    done = kicad("sch", "export", "netlist", "--format", "kicadsexpr", "-o", folder / "raw.net", schematic)
    done.check_returncode()
    text = (folder / "raw.net").read_text()
    text = re.sub(r'\((source|uri) "[^"]*/', r'(\1 "', text)
    text = re.sub(r'\(tool "Eeschema [^"]*"\)', '(tool "Eeschema")', text, count=1)
    return re.sub(r'\n\s*\(date "[^"]*"\)', "", text, count=1)


def drawing(schematic, folder):
    kicad("sch", "export", "svg", "--no-background-color", "-o", folder, schematic).check_returncode()
    text = (folder / f"{NAME}.svg").read_text()
    text = re.sub(r'<g class="stroked-text">.*?</g>', "", text, flags=re.DOTALL)
    pieces, colour = [], "#000000"
    for piece in re.split(r'(stroke:#[0-9A-F]{6}| opacity="0" stroke-opacity="0")', text):
        colour = piece.removeprefix("stroke:") if piece.startswith("stroke:#") else colour
        pieces.append(
            f' font-family="sans-serif" stroke="none" fill="{colour}"' if piece.startswith(" opacity") else piece
        )
    text = "".join(pieces)
    text = re.sub(r"<title>[^<]*</title>", "<title>ssdrig</title>", text, count=1)
    text = re.sub(r"KiCad E\.D\.A\. [\d.]+", "KiCad E.D.A.", text)
    return "\n".join(filter(None, (line.rstrip() for line in text.splitlines()))) + "\n"


def connections(text):
    """{net: {(reference, pin)}} of a KiCad netlist; pins left open on purpose are not in it."""
    nets = {}
    for block in re.split(r"\(net\s+\(code ", text)[1:]:
        name = re.search(r'\(name "([^"]*)"\)', block)[1].removeprefix("/")
        if not name.startswith("unconnected-"):
            nets[name] = set(re.findall(r'\(node\s+\(ref "([^"]+)"\)\s+\(pin "([^"]+)"\)', block))
    return nets


def main(folder):
    provision()
    schematic = BOARD / f"{NAME}.kicad_sch"
    with tempfile.TemporaryDirectory() as temporary:
        ok, report = rule_check(schematic, Path(temporary) / "erc.txt")
        print(report, file=sys.stderr)
        if not ok:
            return 1
        (folder / f"{NAME}.net").write_text(netlist(schematic, Path(temporary)))
        (folder / f"{NAME}.svg").write_text(drawing(schematic, Path(temporary)))
    print(folder / f"{NAME}.net", folder / f"{NAME}.svg", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else BOARD))
