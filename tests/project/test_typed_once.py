"""Knowledge has one home. Each test here fails as soon as a second copy of it appears, or where both ends of a contract
differ."""

import argparse
import importlib
import json
import re
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import standins

from ssdrig import cli
from ssdrig.commands import rig_switch
from ssdrig.drive.smart import ata_table, counters, makers, plausible, smart_answer
from ssdrig.drive.smart import watch_folder as folder
from ssdrig.drive.wear import screen
from ssdrig.meter import chips, ina228, samples, wire
from ssdrig.plan import grammar
from ssdrig.reading import course, whole_run, window_figures
from ssdrig.report import pack
from ssdrig.switch import pico, profiles
from ssdrig.views import terms as report_terms

REPO = Path(__file__).parents[2]
HOST = REPO / "host/ssdrig"
CHECKS = REPO / "host/selfcheck"
SOURCES = {str(p.relative_to(HOST)): p.read_text() for p in sorted(HOST.rglob("*.py"))} | {
    str(p.relative_to(CHECKS.parent)): p.read_text() for p in sorted(CHECKS.rglob("*.py"))
}
FIRMWARE = {p.name: p.read_text() for p in sorted((REPO / "firmware").glob("*.py"))}


def places(pattern: str, sources: dict[str, str] = SOURCES) -> set[str]:
    """The files in which the regular expression matches."""
    return {name for name, text in sources.items() if re.search(pattern, text)}


ROUNDED = r"\{[^{}]*(?:/|>>)\s*[\w.*]+:[^{}]*\}\s*(?:[kKMGTP]i?B)\b"  # {count / 1e9:.2f} GB
UNIT_TABLE = r"""(?:["'](?:GB|GiB|TB)["']\s*[:,]\s*(?:1e|10|1 <<))|(?:(?:1e9|10\*\*9|1 << 30)\s*,\s*["']G)"""


def test_bytes_and_durations_are_put_into_words_in_one_place():
    assert places(UNIT_TABLE) == {"base/words.py"}
    assert places(ROUNDED) == set()
    assert places(r"divmod\([^()]*, 3600\)") == {"base/words.py"}


def test_makers_are_told_apart_in_one_place():
    """And all that is known of a maker's pages is one module, found by lying there."""
    numbers = {name: {int(n, 16) for n in re.findall(r"\b0x([0-9A-Fa-f]{3,4})\b", s)} for name, s in SOURCES.items()}
    for maker in makers.MAKERS:
        named = {name for name, ids in numbers.items() if ids & set(maker.pci_ids)} - {"selfcheck/smart.py"}
        assert named == {f"drive/smart/makers/{maker.name}.py"}
    assert len({number for maker in makers.MAKERS for number in maker.pci_ids}) == 10
    uses = places(r"smart\.makers\.\w+ import|smart\.makers import \w")
    assert {name for name in uses if not name.startswith("drive/smart/makers/")} == set()


def test_whether_a_drive_answered_is_decided_in_one_place():
    assert places(r"def \w*answered\(") == {"drive/smart/smart_answer.py", "drive/smart/watch_folder.py"}
    assert folder.answered is smart_answer.answered and not hasattr(folder, "_answered")  # folder: last_answered


def test_dying_with_the_parent_is_asked_for_in_one_place():
    assert places(r"PDEATHSIG|\.prctl\(") == {"base/prctl.py"}


def test_a_file_is_replaced_in_one_place():
    assert places(r"os\.replace\(") == set()
    assert places(r"\.replace\((?:target|path|self\.\w+)\)") == {"base/files.py"}


def test_the_tested_range_is_computed_in_one_place():
    assert places(r"1 - (?:self\.)?(?:op|op_percent) / 100|// MIB \* MIB|// ALIGN\w* \*") == {
        "base/overprovisioning.py"
    }
    assert places(r"1 - capacity\w* / raw\w*|1 - drive_bytes / raw") == {"base/overprovisioning.py"}


def test_a_rails_row_is_typed_in_the_firmwares_board_file():
    """A hello of stand-ins (stream, clock) is not a row: it has the chip's registers."""
    assert places(r'"vshunt_us": \d+[^}]*"current_lsb_pA"|"current_lsb_pA"[^}]*"vshunt_us": \d') == set()
    assert places(r'"current_lsb_pA": \d[^}]*"vshunt_us"', FIRMWARE) == {"board.py"}


def test_samples_are_unpacked_in_one_place():
    assert places(r">> 16 & 0xFFFFFF") == {"meter/frames.py"}


def test_a_sensor_chip_is_a_driver_a_model_and_a_row_of_limits():
    """Nothing else names chips: board.py and the virtual board find driver and model by the chip's name."""
    named = r"""["']INA\d{3}["']"""
    stand_ins = {
        "selfcheck/board.py",
        "selfcheck/uncertainty.py",
        "selfcheck/coverage.py",
        "selfcheck/stream.py",
        "selfcheck/clock.py",
    }
    assert {name for name in places(named) if not name.endswith("_model.py")} - stand_ins == {
        "meter/chips.py",
        "meter/ina228.py",
        "meter/sources/hwmon.py",  # which of the kernel's drivers ask the chip at each reading
    }
    row = re.search(r"RAILS = \(.*?\n\)", FIRMWARE["board.py"], re.S)[0]
    assert places(named, FIRMWARE | {"board.py": FIRMWARE["board.py"].replace(row, "")}) == {
        f"{chip.lower()}.py" for chip in chips.CHIPS
    }
    for chip in chips.CHIPS:
        assert f"\nclass {chip}" in FIRMWARE[f"{chip.lower()}.py"]
        assert f"\nclass {chip}" in SOURCES[f"virtual/board/{chip.lower()}_model.py"]


@pytest.mark.slow
def test_a_plan_is_one_file(tmp_path, monkeypatch, capsys):
    """Lying in the folder, it is listed, priced, shown, checked and found by its name."""
    folder_of_plans = shutil.copytree(grammar.SHIPPED, tmp_path / "plans")
    text = (folder_of_plans / "trim-validation.toml").read_text().replace('"trim-validation"', '"mine"')
    (folder_of_plans / "mine.toml").write_text(text)
    monkeypatch.setattr(grammar, "SHIPPED", folder_of_plans)
    assert cli.main(["plans", "--virtual", "sata-tlc", "--runs", str(tmp_path)]) == 0
    assert "mine" in capsys.readouterr().out
    assert cli.main(["plans", "show", "mine"]) == 0 and capsys.readouterr().out == text
    assert cli.main(["plans", "check", "mine"]) == 0
    assert cli.main(["run", "mine", "--variant", "quick", "--virtual", "sata-tlc", "--dry-run"]) == 0
    assert "mine (TRIM validation" in capsys.readouterr().err


def test_a_vendor_page_is_one_file(tmp_path, monkeypatch):
    """Lying in the folder, its maker is known, and the page is among those that are asked for and decoded."""
    shutil.copytree(HOST / "drive/smart/makers", tmp_path / "grown")
    new = 'from ssdrig.drive.smart.makers.maker import Maker\nMAKER = Maker("acme", (0xACE,), "ACME", {0xC3: len})\n'
    (tmp_path / "grown/acme.py").write_text(new)
    monkeypatch.syspath_prepend(tmp_path)
    grown = importlib.import_module("grown")
    assert {maker.name for maker in grown.MAKERS} - {maker.name for maker in makers.MAKERS} == {"acme"}
    maker = grown.maker_of(None, "ACME 1")
    assert maker is grown.maker_of(0xACE, None) and 0xC3 in grown.DECODED and 0xC3 not in makers.DECODED
    assert grown.decode(0xC3, b"123", maker) == 3


def test_a_cut_profile_is_a_class_of_the_firmware_and_a_row_of_the_host(monkeypatch, capsys):
    """A third place that names profiles or their fields would not know the new one."""
    assert places(r"""["'](?:crowbar|glitch)["']""") == {"switch/profiles.py"}
    assert places(r"""["'](?:crowbar|glitch)["']""", FIRMWARE) == {"cut.py"}
    assert places(r"\b(?:fall|glitch)_us\b") == {"switch/profiles.py"}
    cut = standins.firmware().cut
    assert {profile.name: profile.fields for profile in cut.PROFILES} == {
        name: tuple(option.field for option in row.options) for name, row in profiles.PROFILES.items()
    }

    class Dip(cut.Float):
        name, fields = "dip", ("dip_us",)

        def __init__(self, how, watches, rows):
            self.back_us = cut.number(how["dip_us"], 1, 100, "dip_us")

    cut.PROFILES = (*cut.PROFILES, Dip)
    rail = SimpleNamespace(rail=0, sampler=SimpleNamespace(running=True))
    asked = {"token": 1, "rails": [0], "profile": "dip", "when": {"now": True}}
    rows = {0: {"gate": 10, "discharge_mOhm": 2200}}
    made = cut.Cut(asked | {"dip_us": 7}, rows, {0: rail}, None, True)
    assert made.profile.back_us == 7 and not made.sideband and len(made.steps(125)) == 1
    for how, why in (
        (asked, "dip_us belongs to dip"),
        (asked | {"dip_us": 7, "off_ms": 5}, "off_ms does not belong to dip"),
        (asked | {"profile": "float", "dip_us": 7}, "dip_us belongs to dip"),
        (asked | {"profile": "x"}, "float, crowbar, ramp, glitch, dip"),
    ):
        with pytest.raises(cut.Refused, match=why):
            cut.Cut(how, rows, {0: rail}, None, True)

    row = profiles.Profile((profiles.Option("dip_us", "US", "how deep"),), back_by_itself=True)
    monkeypatch.setitem(profiles.PROFILES, "dip", row)
    parser = argparse.ArgumentParser()
    rig_switch.subcommands(parser.add_subparsers())
    args = parser.parse_args(["cut", "--profile", "dip", "--dip", "7us"])
    with pytest.raises(SystemExit):
        parser.parse_args(["cut", "--help"])
    assert "of a dip: how deep" in capsys.readouterr().out
    sent = []

    class Rig:
        def ask(self, kind, body, *_):
            sent.append((kind, body))
            if kind == wire.ARM:
                return wire.ARMED, bytes(8)
            return wire.CUT_REPORT, json.dumps({"token": 0, "ok": True, "rails": []}).encode()

    pico.arm_and_cut(Rig(), profile=args.profile, **rig_switch._own(args))
    assert json.loads(sent[-1][1]).items() >= {"profile": "dip", "dip_us": 7}.items()


def test_the_ina228s_conversion_times_are_the_drivers():
    assert (HOST / "meter/ina228.py").resolve() == REPO / "firmware/ina228.py"
    assert places(r"50, 84, 150") == {"meter/ina228.py", "virtual/board/ina228_model.py"}  # the model is independent
    assert ina228.shunt_conversion(ina228.adc_config(150, 540, 50) | 3) == (540, 64)


def test_a_figure_is_defined_by_one_line():
    """A line added to a window's table is a key of `report --json`, a row of the page and one of the README."""
    added = window_figures.terms("# Performance\nnew_iops | New | IOPS | 0 | more | What is new.")[0]
    assert (added.key, added.group, added.better, added.meaning) == ("new_iops", "Performance", "more", "What is new.")
    defined = [term.key for term in (*window_figures.TERMS, *whole_run.TERMS)]
    assert sorted(defined) == sorted(term.key for term in report_terms.TERMS) and len(set(defined)) == len(defined)
    assert set(defined) <= set(course.KEYS) and {term.key for term in window_figures.TERMS} <= set(window_figures.KEYS)


def test_a_series_and_its_column_are_named_in_one_place():
    page = {p.name: p.read_text() for p in (HOST / "report").glob("*.js")}
    assert places(r"lat_mean_us|power_mean_W,|energy_uJ_per_io", page) == set()
    assert places(r'"lat_mean": "lat_mean_us"') == {"report/pack.py"} and set(pack.COLUMNS) >= {"iops", "energy"}


def test_a_power_second_has_the_same_fields_everywhere():
    """samples.Seconds (arrays), samples.Second (numbers, and the peaks within it), and the measurement that has them,
    but for the time."""
    row = samples.Second.__annotations__
    peaks = [name for name, kind in row.items() if kind == float | None]
    assert peaks == ["p_max_10ms_W", "p_max_100ms_W"] and next(iter(row)) == "t_ns"
    assert list(samples.Seconds.__annotations__) == [name for name in row if name not in peaks]
    stored = tomllib.loads((REPO / "schemas/influx.toml").read_text())["power"]["fields"]
    kinds = {int: "i", float: "f", float | None: "f"}
    assert {name: kinds[kind] for name, kind in row.items() if name != "t_ns"}.items() <= stored.items()
    assert set(stored) - set(row) == set(), set(stored) - set(row)


def test_a_lanes_interface_is_stated_in_lane():
    """What sampler and drivers use of a lane is in Lane, or in its docstring and in the class of each bus."""
    used = {
        n
        for name in ("sampler", "ina226", "ina228")
        for n in re.findall(r"\blane\.(?!py\b)(\w+)", FIRMWARE[f"{name}.py"])
    }
    lane = FIRMWARE["lane.py"].split("class Lane:")[1]
    contract = lane.split('"""')[1]
    for name in used:
        given = rf"def {name}\(|self\.(?:\w+ = self\.)?{name} =|    {name} ="
        buses = [bool(re.search(given, FIRMWARE[bus])) for bus in ("i2c_fifo.py", "spi_lane.py")]
        assert re.search(given, lane) or (all(buses) and name in contract), name


def test_the_error_counters_are_listed_in_one_place():
    names = tuple(plausible.ERROR_COUNTERS)
    assert places(r'"read_disturbs",\s*"program_fails"') == set()
    assert set(names) <= set(counters.KEYS) & set(ata_table.OTHER_ROLES) & set(plausible.BOUNDS)
    assert set(names) <= set(screen.RETENTION_COUNTERS)


@pytest.mark.parametrize("text", ['f"{n / 1e9:.2f} GB"', 'f"{len(x) / 1e6:.1f} MB"', "f'{a[0] / GB:.3g} GB'"])
def test_a_second_way_to_round_bytes_is_found(text):
    assert places(ROUNDED, {"new.py": text})
