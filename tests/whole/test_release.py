"""What the board is ordered by (hardware/board/release.py): nothing stale, nothing without a number. Its gerbers:
test_gerbers.py."""

import argparse
import csv
import errno
import hashlib
import os
import re
import signal

import browser
import pytest
from board_files import README

import footprints  # isort: skip  (hardware/board, by way of board_files)
import layout  # isort: skip
import models  # isort: skip
import release  # isort: skip

from ssdrig.base import child_cpu  # isort: skip
from ssdrig.base.errors import UsageError  # isort: skip
from ssdrig.commands import hardware  # isort: skip


@pytest.mark.slow
def test_sources_and_files_agree():
    assert release.stale() == []


@pytest.mark.slow
def test_a_file_that_its_source_makes_otherwise_keeps_the_release_back(monkeypatch, tmp_path):
    monkeypatch.setattr(release.circuit, "TITLE", "another board")
    stale = release.stale()
    assert "ssdrig.kicad_sch" in stale
    monkeypatch.setattr(release, "stale", lambda: stale)
    monkeypatch.setattr(release.kicad, "provision", lambda *_: None)
    with pytest.raises(release.NotReleased, match="not as their sources make them: .*ssdrig.kicad_sch"):
        release.release(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(release.kicad, "provision", lambda *_: pytest.fail("it fetches first"))
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(release.NotReleased, match="expected an empty folder"):
        release.release(tmp_path)


@pytest.mark.parametrize("what", ["a file", "a link that leads nowhere"])
def test_what_is_no_folder_is_left_alone(monkeypatch, tmp_path, what):
    monkeypatch.setattr(release.kicad, "provision", lambda *_: pytest.fail("it fetches first"))
    out = tmp_path / "out"
    out.write_text("mine") if what == "a file" else out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(release.NotReleased, match="expected an empty folder"):
        release.release(out)
    assert out.is_symlink() or out.read_text() == "mine"


@pytest.fixture
def made_of(monkeypatch):
    """made_of(*steps): what a release is then made of, each a function of (project, out)."""
    monkeypatch.setattr(release.kicad, "provision", lambda *_: None)
    monkeypatch.setattr(release, "stale", lambda: [])
    monkeypatch.setattr(release.fill, "project", lambda project, text: None)
    return lambda *steps: monkeypatch.setattr(release, "STEPS", steps)


def writes(name):
    return lambda project, out: (out / name).write_text(name)


def named(path):
    return sorted(path_.name for path_ in path.iterdir())


def test_a_release_is_there_when_all_of_it_is_done(made_of, tmp_path):
    out = tmp_path / "new" / "out"
    seen = []
    made_of(writes("one"), lambda project, half: seen.append(half.parent == out and named(out) == [half.name]))
    digest = release.release(out, lambda words: None)
    assert seen == [True] and named(out) == ["digests.txt", "one"]
    assert digest == hashlib.sha256((out / "digests.txt").read_text().strip().encode()).hexdigest()


@pytest.mark.parametrize("was_there", [False, True])
def test_of_a_release_that_fails_nothing_stays(made_of, tmp_path, was_there):
    out = tmp_path / "out"
    if was_there:
        out.mkdir()

    def fails(project, half):
        raise child_cpu.NotReady("idle", "kicad-cli used no CPU time for 45 s", 1.0)

    made_of(writes("one"), fails)
    with pytest.raises(release.NotReleased, match="fails: kicad-cli used no CPU time for 45 s"):
        release.release(out, lambda words: None)
    assert out.exists() == was_there and (not was_there or named(out) == [])


def test_what_a_killed_release_leaves_looks_like_none_and_goes_with_the_next(made_of, tmp_path):
    out = tmp_path / "out"
    child = os.fork()
    if not child:
        made_of(writes("one"), lambda project, half: os.kill(os.getpid(), signal.SIGKILL))
        try:
            release.release(out, lambda words: None)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (left,) = named(out)
    assert left.startswith(".unfinished-")
    made_of(writes("two"))
    release.release(out, lambda words: None)
    assert named(out) == ["digests.txt", "two"]


def test_two_releases_into_one_folder_at_once_are_refused(made_of, tmp_path):
    out = tmp_path / "out"

    def another(project, half):
        with pytest.raises(release.NotReleased, match="seen one that is being made"):
            release.release(out, lambda words: None)

    made_of(another)
    release.release(out, lambda words: None)
    assert named(out) == ["digests.txt"]


def test_a_full_disk_is_said_not_a_traceback(monkeypatch, tmp_path):
    def full(out, say):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(release, "release", full)
    with pytest.raises(UsageError, match="to write the release into .*No space left on device"):
        hardware.command(argparse.Namespace(word="release", out=tmp_path / "out", board="board", json=False))


def test_no_part_without_order_number_and_dated_price(monkeypatch, tmp_path):
    """Each row has the manufacturer's number, how it is known, and a price with its date and source; and a row that
    lacks one keeps the release back."""
    monkeypatch.setattr(release.kicad, "provision", lambda *_: None)
    monkeypatch.setattr(release, "stale", lambda: [])
    rows = release.bill()
    assert release.lacking(rows) == [] and len(rows) > 70
    wrong = {
        "manufacturer": ("",),
        "part_number": ("",),
        "number_source": ("",),
        "number_basis": ("", "guessed", "memory"),  # from memory: not what the machine places
        "unit_usd": ("", "0.00", "-1.00", "cheap"),
        "price_date": ("", "today", "23.11.2026"),
        "price_basis": ("", "known"),
        "price_source": ("",),
        "quantity": ("1", "", "four", "-4"),
        "package": ("",),
        "lcsc": ("106231", "C12"),
        "lcsc_source": ("", "somewhere", "none: not looked for", "0 public lists, 2026-11-23", "2 public lists"),
    }
    at = next(i for i, row in enumerate(rows) if row["item"] == "small FET")
    for name, values in wrong.items():
        for value in values:
            broken = rows[:at] + [rows[at] | {name: value}] + rows[at + 1 :]
            assert release.lacking(broken) == [("small FET", name)], (name, value)
            monkeypatch.setattr(release, "bill", lambda of=broken: of)
            with pytest.raises(release.NotReleased, match=f"small FET: {name}"):
                release.release(tmp_path / "out")
    for lcsc, source in (("C20917", rows[0]["lcsc_source"]), ("", "none: no two public lists name it (2026-11-23)")):
        assert release.lacking([rows[at] | {"lcsc": lcsc, "lcsc_source": source}]) == []
    assert release.lacking([rows[at] | {"lcsc": ""}]) == [("small FET", "lcsc_source")]  # a list that names nothing
    assert not (tmp_path / "out").exists()


def test_a_row_that_is_cut_short_is_said(tmp_path, monkeypatch):
    text = (release.FOLDER / "bom.csv").read_text().rstrip("\n").split("\n")
    (tmp_path / "bom.csv").write_text("\n".join([*text[:-1], ",".join(text[-1].split(",")[:3])]))
    monkeypatch.setattr(release, "FOLDER", tmp_path)
    assert {"part_number", "lcsc_source", "price_date"} <= {name for _, name in release.lacking(release.bill())}


def test_a_number_of_jlcpcb_stands_for_one_part():
    """The same part has the same number in each row, and the README says how many have one."""
    of_part, of_number = {}, {}
    for row in release.bill():
        if row["lcsc"]:
            assert of_part.setdefault(row["part_number"], row["lcsc"]) == row["lcsc"], row
            assert of_number.setdefault(row["lcsc"], row["part_number"]) == row["part_number"], row
    lacks = {row["part_number"] for row in release.bill() if row["references"] and not row["lcsc"]}
    assert not lacks & set(of_part)
    kinds, named, agreed = release.at_jlcpcb(release.bill())
    words = " ".join(README.split())
    assert f"for {named} of {kinds} part numbers" in words and f"{agreed} of them" in words
    known = release.numbers(release.bill())
    for basis, words_ in (("listed", "names: {} kinds)"), ("decoded", "code: {})"), ("memory", "will do: {})")):
        assert words_.format(known[basis]) in words, basis


def test_the_assembler_can_order_by_manufacturers_number(tmp_path):
    """One row a number, each part that the machine places once; the columns of PCBWay's template."""
    release.order_lists(None, tmp_path)
    with open(tmp_path / "bom-assembler.csv", newline="") as file:
        made = list(csv.DictReader(file))
    assert list(made[0])[:8] == (
        "Item #,Designator,Qty,Manufacturer,Mfg Part #,Description / Value,Package/Footprint,Type".split(",")
    )
    assert all(row[name] for row in made for name in list(made[0])[:8])
    refs = [ref for row in made for ref in row["Designator"].split(",")]
    smd = [ref for ref, part in layout.PARTS.items() if part.item and release.machine_places(ref)]
    assert sorted(refs) == sorted(smd) and len(smd) > 180
    numbers = [(row["Manufacturer"], row["Mfg Part #"]) for row in made]
    assert len(set(numbers)) == len(numbers)
    # a package that a person reads: a capacitor is not in an R_0603
    packages = {row["Mfg Part #"]: row["Package/Footprint"] for row in made}
    assert packages["GRM1885C1H220JA01D"] == packages["RC0603FR-0710KL"] == "0603"
    assert not [package for package in packages.values() if "_" in package]
    assert all(int(row["Qty"]) == len(row["Designator"].split(",")) for row in made)
    assert all(re.fullmatch(r"C\d{4,8}|", row["LCSC Part #"]) for row in made)
    # an INA226 has the same pins and a sixteenth of the resolution: nobody replaces the sensor unasked
    notes = {row["Mfg Part #"]: row["Your Instructions / Notes"] for row in made}
    assert notes["INA228AIDGSR"] == "ask before you replace it"
    assert notes["RC0603FR-0722KL"].startswith("else: any 22")


def test_the_order_has_every_part_once_and_its_sums(tmp_path):
    """One fab, one assembler, the rest by hand; the printed board is of the schematic's revision."""
    release.order_lists(None, tmp_path)
    text, rows = (tmp_path / "order.md").read_text(), release.bill()
    placed = float(re.search(r"`placement.csv` \| ([\d.]+),", text)[1])
    total = float(re.search(r"\*\*all\*\* \| \| \*\*([\d.]+)\*\*", text)[1])
    by_hand = [line for line in text.splitlines() if line.count("|") == 8 and not line.startswith(("|---", "| bought"))]
    with open(tmp_path / "bom-assembler.csv", newline="") as file:
        machine = list(csv.DictReader(file))
    (board,) = [row for row in rows if row["number_basis"] == "drawing"]
    assert board["part_number"] == f"ssdrig board, revision {release.circuit.REVISION}"
    assert len(by_hand) + len(machine) + 1 == len({(row["manufacturer"], row["part_number"]) for row in rows})
    (cable,) = [line for line in by_hand if "SATPOWEXT8" in line]
    assert "one cable" in cable and cable.split("|")[3].strip() == "1"
    dates = sorted(row["price_date"] for row in rows)
    assert f"of {dates[0]} to {dates[-1]}" in text and "smallest order is five" in text
    assert all(words in text for words in release.circuit.ALSO)
    assert total == pytest.approx(release.total_usd(rows), abs=0.005)
    hand_usd = sum(float(line.split("|")[4]) for line in by_hand)
    assert placed + hand_usd + release.total_usd([board]) == pytest.approx(total, abs=0.01)


def test_a_number_is_that_of_one_manufacturer_and_one_package():
    seen = {}
    for row in release.bill():
        name = row["package"].replace("plug", "").replace("receptacle", "")
        assert seen.setdefault(row["part_number"], (row["manufacturer"], name)) == (row["manufacturer"], name), row


@pytest.mark.skipif(browser.find() is None, reason="no Chromium (package chromium-headless-shell)")
def test_pointing_at_a_row_lights_its_parts(tmp_path):
    release.order_lists(None, tmp_path)
    with browser.Browser() as b:
        b.open(tmp_path / "bom.html")
        lit = """[...document.querySelectorAll('.part.lit')].map(part => part.id).sort().join(' ')"""
        assert b.js(lit) == ""
        rows = b.js("[...document.querySelectorAll('tr[data-refs]')].map(row => row.dataset.refs)")
        assert sorted(rows) == sorted(row["references"] for row in release.bill() if row["references"])
        for i in (0, len(rows) // 2, len(rows) - 1):
            row = f"document.querySelectorAll('tr[data-refs]')[{i}]"
            b.js(f"{row}.dispatchEvent(new MouseEvent('mouseenter'))")
            assert b.js(lit).split() == sorted(rows[i].split())
            b.js(f"{row}.dispatchEvent(new MouseEvent('mouseleave'))")
            assert b.js(lit) == ""
        assert b.complaints() == [] and all(url.startswith("file:") for url in b.requests())


def test_bill_has_what_no_schematic_has():
    items = {row["item"] for row in release.bill() if not row["references"]}
    assert {"PCB, one of five", "Pico socket", "Pico header", "fuse holder", "screw M3 x 6"} <= items
    assert f"| quantity | {release.total_usd(release.bill()):.2f} |" in README


def test_every_part_that_stands_on_the_board_has_a_height():
    flat = {"SATA_Wires", "TestPad_1.5", "Selector"}  # holes, copper
    names = {footprints.footprint(part).name for part in layout.PARTS.values()}
    assert names - flat <= set(models.HEIGHT_mm)


def test_what_a_strip_joins_is_one_net_for_the_bare_boards_test():
    ties = release.tied()
    assert len(ties) == 16 and (ties["/SDA_MISO2"], ties["/A1_CS2"], ties["/A0_MOSI2"]) == ("/SDA", "+3V3", "GND")
    line = "327/SDA_MISO2       U301  -4          A01X+012677Y-023425X0571Y0118R180S2\n"
    record = "327/VBUS2           U301  -8          A01X+010945Y-023622X0571Y0118R180S2\n"
    assert release.joined_nets(line + record, ties) == line.replace("/SDA_MISO2", "/SDA      ") + record


def test_dates_are_taken_out(tmp_path):
    path = tmp_path / "it"
    for text in (
        "%TF.CreationDate,2026-11-23T07:00:00+00:00*%\nG04 Created by KiCad (PCBNEW 9.0.2) date 2026-11-23 07:00:00*\n",
        "; DRILL file {KiCad 9.0.2} date 2026-11-23T07:00:00+0000\n; #@! TF.CreationDate,2026-11-23T07:00:00+00:00\n",
        "FILE_NAME('ssdrig.step','2026-11-23T07:00:00',\n",
        "/CreationDate (D:20261123070000)\n",
        '"CreationDate": "2026-11-23T07:00:00+00:00"\n',
    ):
        path.write_text(text)
        release.undated(path)
        assert "2026" not in path.read_text(), text
        assert len(path.read_text()) == len(text) or "/Creation" not in text


def test_a_layer_that_the_job_file_numbers_by_itself_is_corrected(tmp_path):
    (tmp_path / "in1.g2").write_text("%TF.FileFunction,Copper,L2,Inr*%\n")
    job = {"GeneralSpecs": {"Finish": "None"}, "FilesAttributes": [{"Path": "in1.g2", "FileFunction": "Copper,L5,Inr"}]}
    made = release.job(job, tmp_path)
    assert made["FilesAttributes"][0]["FileFunction"] == "Copper,L2,Inr" and made["GeneralSpecs"] == {}
