"""RAPL zones of a tree of files."""

from ssdrig.drive import host_energy


def zone(root, entry, name, energy="5", most="1000"):
    folder = root / "sys/class/powercap" / entry
    folder.mkdir(parents=True)
    for file, text in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", most)):
        if text is not None:
            (folder / file).write_text(f"{text}\n")


def test_packages_without_their_parts(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:0:0", "core")
    zone(tmp_path, "intel-rapl:1", "psys", "7")
    zone(tmp_path, "intel-rapl:3", "package-0")
    zone(tmp_path, "intel-rapl:2", "package-1", None)
    zones = host_energy.zones(tmp_path)
    assert [zone.name for zone in zones] == ["package-0", "psys", "package-0 intel-rapl:3"]
    assert host_energy.energy_uJ(zones[1].folder) == 7 and zones[0].range_uJ == 1000


def test_host_without_any(tmp_path):
    assert host_energy.zones(tmp_path) == []


def test_energy_since_the_last_reading(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", "900000", "1000000")
    zone(tmp_path, "intel-rapl:1", "psys", "5", "1000000")
    energies = host_energy.Energies(tmp_path)
    at = tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj"
    at.write_text("950000\n")
    assert energies.since() == {"package-0": 0.05, "psys": 0.0}
    at.write_text("50000\n")  # it has wrapped
    (tmp_path / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert energies.since() == {"package-0": 0.1}


def test_a_counter_that_began_anew_gives_no_energy(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", "100000000000", "262143328850")
    energies = host_energy.Energies(tmp_path)
    at = tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj"
    at.write_text("0\n")
    assert energies.since() == {}
    at.write_text("300000\n")
    assert energies.since() == {"package-0": 0.3}
    at.unlink()
    assert energies.since() == {}
    at.write_text("500000\n")
    assert energies.since() == {}
