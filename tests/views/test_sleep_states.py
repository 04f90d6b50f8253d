"""Power states: set and put back, entered and left; closed forms in model time, and the page of a run whose numbers are
known."""

import numpy as np
import page_reader
import pytest
import synthetic_plan
from fake_tools import Tools
from page_reader import value
from synthetic_pts import Run
from test_conditions import NVME
from test_power_states import MS, P0, P3, P4, WORK, S, device, read, rest
from two_sided import left_by_fio

from ssdrig.base.errors import DriveError
from ssdrig.drive import conditions, features
from ssdrig.meter import rails
from ssdrig.meter.uncertainty import UNTIMED
from ssdrig.reading import table
from ssdrig.reading.row import Table
from ssdrig.run import virtual_settings
from ssdrig.views.context import Context
from ssdrig.views.power_states import figures as power_states_figures
from ssdrig.views.power_states import html as power_states_html
from ssdrig.virtual.device import admin, identify
from ssdrig.virtual.flash import rated_power
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import NVME_TLC, SATA_TLC

READ_J = 3e-6 * WORK

# as nvme-cli 2.3 prints them; `ps`, `apste` and `apst` are what the drive is set to
POWER_FEATURES = """
case "$1 $3" in
"get-feature --feature-id=2") echo "get-feature:0x02 (Power Management), Current value:0x0000000$(cat ps)";;
"set-feature --feature-id=2") [ "${4#--value=}" -gt 4 ] && { echo "NVMe status: Invalid Field(0x4002)" >&2; exit 1; }
  echo "${4#--value=}" > ps;;
"get-feature --feature-id=12") if [ "$5" ]; then cat apst; else
  echo "get-feature:0x0c (Autonomous Power State Transition), Current value:0x0000000$(cat apste)"; fi;;
"set-feature --feature-id=12") echo "${4#--value=}" > apste; cat "${6#--data=}" > apst;;
id-ctrl*) cat id-ctrl;;
*) echo "NVMe status: Invalid Field in Command(0x4002)" >&2; exit 1;;
esac"""
TABLE = (100 << 8 | 3 << 3).to_bytes(8, "little").ljust(256, b"\0")


@pytest.fixture
def nvme(tmp_path, monkeypatch):
    tools = Tools(tmp_path / "bin", monkeypatch)
    tools.put("nvme", POWER_FEATURES)
    for name, content in (("ps", b"0\n"), ("apste", b"1\n"), ("apst", TABLE)):
        (tools.folder / name).write_bytes(content)
    return tools


def test_power_state_and_transitions_of_an_nvme_drive_are_set_and_put_back(nvme, tmp_path):
    at, folder = NVME | {"root": tmp_path}, nvme.folder
    assert conditions.can_set("power_state", **at) and conditions.can_set("apst", **at)
    assert not conditions.can_set("alpm", **at)
    was = {key: conditions.setting(key, **at) for key in ("apst", "power_state")}
    assert was == {"apst": ["on", "1864"], "power_state": ["0"]}
    conditions.change("apst", "off", **at)
    conditions.change("power_state", 3, **at)
    assert (folder / "apste").read_text() == "0\n" and (folder / "ps").read_text() == "3\n"
    assert (folder / "apst").read_bytes() == TABLE, "the transitions stay what they are, only they are off"
    with pytest.raises(DriveError, match="to take power_state '5'.*Invalid Field"):
        conditions.change("power_state", 5, **at)
    (folder / "apst").write_bytes(bytes(256))  # a drive that forgets them
    for key in ("power_state", "apst"):
        conditions.put_back(key, was[key], **at)
    assert (folder / "ps").read_text() == "0\n" and (folder / "apste").read_text() == "1\n"
    assert (folder / "apst").read_bytes() == TABLE


def test_what_a_drive_says_of_its_states_is_what_run_json_has(nvme):
    (nvme.folder / "id-ctrl").write_bytes(identify.controller(device(NVME_TLC), 1))
    reported, put = features.power_states("/dev/nvme0"), rated_power.described(NVME_TLC)
    assert [state["max_W"] for state in reported] == pytest.approx([state["max_W"] for state in put], abs=0.01)
    assert [state | {"max_W": 0} for state in reported] == [state | {"max_W": 0} for state in put]
    nvme.put("nvme", "exit 1")
    assert features.power_states("/dev/nvme0") == []


@pytest.fixture
def asked(monkeypatch):
    """The admin socket of a device, in this process."""

    def of(preset):
        it = device(preset)

        def ask(socket, request):
            answer, _ = admin.answer_admin(it, request, 10 * S)
            if "error" in answer:
                raise DriveError("the virtual drive to do it", answer["error"], "see")
            return answer

        monkeypatch.setattr(virtual_settings.adminclient, "ask", ask)
        return it

    return of


def test_a_virtual_nvme_drive_is_set_by_its_features(asked):
    it = asked(NVME_TLC)
    table_ = virtual_settings.read("")["nvme.apst_table"]
    assert table_[0] == [0, 3, 1000] and virtual_settings.read("")["nvme.apst"] == "on"
    was = virtual_settings.setting("", "apst")
    virtual_settings.change("", "apst", "off")
    virtual_settings.change("", "power_state", 4)
    assert it.drive.power_state(11 * S) == 4 and virtual_settings.setting("", "power_state") == ["4"]
    virtual_settings.put_back("", "apst", was)
    assert virtual_settings.read("")["nvme.apst_table"] == table_ and virtual_settings.setting("", "apst")[0] == "on"
    with pytest.raises(ValueError):
        virtual_settings.change("", "power_state", 5)
    with pytest.raises(DriveError, match="governor"):
        virtual_settings.setting("", "governor")


def test_the_link_of_a_virtual_sata_drive_sleeps_or_not(asked):
    asked(SATA_TLC)
    assert virtual_settings.setting("", "alpm") == ["min_power"]
    virtual_settings.change("", "alpm", "max_performance")
    assert virtual_settings.setting("", "alpm") == ["max_performance"]
    assert virtual_settings.read("")["nvme.apst"] == "off"
    virtual_settings.change("", "alpm", "med_power_with_dipm")
    assert virtual_settings.read("")["nvme.apst"] == "on"
    with pytest.raises(DriveError, match="alpm to be one of"):
        virtual_settings.change("", "alpm", "deepest")


@pytest.mark.parametrize("state, low_W, enter_ms, exit_ms", [(3, P3, 0.21, 1.2), (4, P4, 2.0, 8.0)])
def test_entry_exit_and_the_energy_of_a_sleep_are_those_of_the_model(state, low_W, enter_ms, exit_ms):
    drive = VirtualDrive(NVME_TLC, capacity_bytes=1 << 29)
    begin = drive.follow(0, {}, S)  # awake for good
    drive.follow(state, {}, begin + S)
    rest(drive, begin + S, begin + 3 * S)
    lat_ns = read(drive, begin + 3 * S)
    rest(drive, begin + 3 * S, begin + 4 * S)

    def watts(edges):
        pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        return np.array([drive.energy_between(a, b) / (b - a) * 1e9 for a, b in pairs])

    lag, before = 4 * MS, 1 * MS  # of the power behind the command; one bin in which it is awake
    down = np.arange(begin + S + lag - before, begin + S + lag + 100 * MS, MS, np.int64)
    up = np.arange(begin + 3 * S - 20 * MS, begin + 3 * S + 100 * MS, MS, np.int64)
    middle_W = (P0 + low_W) / 2
    entry_ns, enter_J = power_states_figures.entered(down, watts(down), middle_W, low_W)
    exit_J = power_states_figures.woken(up, watts(up), middle_W, P0, lat_ns + 30 * MS, 1)
    enter_J -= (P0 - low_W) * before / 1e9
    assert (entry_ns - before) / 1e6 == pytest.approx(enter_ms, abs=1.01)  # the feed has a bin a millisecond,
    wake_J = enter_J + exit_J + (P0 - low_W) * lat_ns / 1e9
    expected_J = (WORK - low_W) * (enter_ms + exit_ms) / 1e3 + READ_J
    assert wake_J == pytest.approx(expected_J, abs=1.05e-3 * (WORK - P0))  # and the model leaves that of the command


def test_energies_of_entering_and_leaving_by_hand():
    """1.25 W until 3 ms, 2.5 W for 2 ms, 0.05 W; then from 60 ms on 2.5 W for 8 ms, 1.25 W. In drive time, 10 times
    slower."""
    edges = np.arange(0, 1_000_000_001, 1_000_000)
    watts = np.full(1000, 0.05)
    watts[:30], watts[30:50], watts[600:680], watts[680:] = 1.25, 2.5, 2.5, 1.25
    entry_ns, enter_J = power_states_figures.entered(edges[:600], watts[:599], 0.65, 0.05)
    assert entry_ns == 50 * MS and enter_J == pytest.approx(0.03 * 1.2 + 0.02 * 2.45)
    exit_J = power_states_figures.woken(edges[50:], watts[50:], 0.65, 1.25, 200 * MS, 10)
    assert exit_J == pytest.approx(0.08 * 1.25 / 10)


def test_a_state_without_a_fall_or_a_wake_has_none():
    edges = np.arange(0, 100, 10)
    assert power_states_figures.entered(edges, np.full(9, 2.0), 1.0, 0.1) is None
    assert power_states_figures.entered(edges, np.full(9, np.nan), 1.0, 0.1) is None
    assert power_states_figures.entered(edges, np.full(9, 0.1), 1.0, 0.1) is None, (
        "it was down before: no moment of entry"
    )
    assert power_states_figures.woken(edges, np.full(9, 0.1), 1.0, 2.0, 50, 1) is None
    assert power_states_figures.woken(edges, np.full(9, 2.0), 1.0, 2.0, 50, 1) is None, "it was up before"


WATTS = {0: 1.3, 1: 1.29, 2: 1.31, 3: 0.08, 4: 0.02}
LAT_NS = {0: 1 * MS, 1: 1 * MS, 2: 1 * MS, 3: 201 * MS, 4: 401 * MS}
BUSY_W = 2.0
SAMPLE_S = 0.02


def made(runs, monkeypatch) -> Run:
    """A quick run on a drive with these states: the power falls 0.15 s behind the command, and rises with the read."""
    monkeypatch.setitem(synthetic_plan.DRIVE, "power_states", rated_power.described(NVME_TLC))
    w = Run(runs, "power-states", "quick")
    labels = [label for label, act in w.acts.items() if act.path.startswith("states/")]
    for number, label in enumerate(labels, 1):
        act, state = w.acts[label], w.acts[label].point["power_state"]
        if act.not_run:
            assert state > 4 and act.not_run == "this drive has 5 power states"
            w.not_run(label, act.not_run)
            continue
        more = {"round": 1, "point": dict(act.point)}
        if act.do == "load":
            more["fio"] = act.folder(1, number)
        w.event("step.start", step=act.path, **more)
        if act.do == "set":
            w.t_ns += 100 * MS
        elif act.do == "idle":
            w.t_ns += 50 * MS
            w._power(WATTS[state])
            w.t_ns += round(act.keys["time"] * 1e9)
        else:
            w.t_ns += 100 * MS
            w._power(BUSY_W)
            left_by_fio(w.path / "fio" / more["fio"], w.t_ns, LAT_NS[state] / 1e9, {"read": {LAT_NS[state]: 1}})
            w.t_ns += LAT_NS[state]
            w._power(WATTS[0])
            w.t_ns += 200 * MS
        w.event("step.end", step=act.path, ok=True, **more)
    return w


def slept(runs) -> Table:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return table.load(made(runs, monkeypatch).end())


def test_every_cell_of_the_page_is_the_number_put_in(tmp_path, monkeypatch):
    w = made(tmp_path, monkeypatch)
    table_ = table.load(w.end())
    show = next(show for show in table_.plan.shows if show["view"] == "power-states")
    html = power_states_html.power_states(Context([table_], ["run"], show))
    (panel,) = page_reader.panels(html)
    head, *lines = panel.tables[0]
    assert [line[0] for line in lines] == ["PS0", "PS1", "PS2", "PS3", "PS4"]
    at = {name.split(" W")[0].split(" ms")[0].split(" mJ")[0]: i for i, name in enumerate(head)}
    rated = rated_power.described(NVME_TLC)
    for state, line in enumerate(lines):
        cell = {name: line[i] for name, i in at.items()}
        assert value(cell["Rated, at most"]) == pytest.approx(rated[state]["max_W"], rel=0.005)
        assert value(cell["Measured"].split(" ±")[0]) == pytest.approx(WATTS[state], rel=0.006)
        assert value(cell["Lowest second"]) == pytest.approx(WATTS[state], rel=0.006)
        assert value(cell["First I/O"].split(" ±")[0]) == pytest.approx(LAT_NS[state] / 1e6, rel=0.02)
        if state < 3:
            assert cell["Entry"] == cell["Exit"] == cell["Energy of a sleep"] == "–"
            continue
        saved_W, exit_s = WATTS[2] - WATTS[state], (LAT_NS[state] - LAT_NS[2]) / 1e9
        enter_J = (WATTS[0] - WATTS[state]) * 0.15
        wake_J = enter_J + (BUSY_W - WATTS[2]) * LAT_NS[state] / 1e9 + saved_W * exit_s
        assert value(cell["Entry, rated"]) == rated[state]["enter_us"] / 1000
        assert value(cell["Entry"].split(" ±")[0]) == pytest.approx(150, abs=1000 * SAMPLE_S)
        assert value(cell["Exit"].split(" ±")[0]) == pytest.approx(1000 * exit_s, rel=0.02)
        energy, pays = (value(cell[name].split(" ±")[0]) / 1000 for name in ("Energy of a sleep", "Pays off after"))
        assert energy == pytest.approx(wake_J, abs=2 * SAMPLE_S * BUSY_W) and pays == pytest.approx(
            energy / saved_W, rel=0.01
        )
    assert "this drive has 5 power states" in html and len(panel.plots[0].marks) == 15


def test_without_power_the_latencies_stay_and_the_rest_has_its_reason(tmp_path, monkeypatch):
    table_ = table.load(made(tmp_path, monkeypatch).end(power=False))
    stays = [row.result for row in table_.of("states/stay")]
    assert all(stay["mean_W"] is None and stay["why"] == rails.NO_POWER for stay in stays)
    assert stays[4]["first_io_ms"] == pytest.approx(401, rel=0.02) and stays[4]["wake_J"] is None


def test_entering_is_known_to_the_error_of_the_clock(tmp_path, monkeypatch):
    """Read 40 ms late, the times are known to 20 ms and a sample; 150 ms from the command until the power falls."""
    table_ = table.load(made(tmp_path, monkeypatch).end(read_late_s=0.04))
    for stay in [row.result for row in table_.of("states/stay")][3:]:
        assert stay["time_error_ms"] == pytest.approx(20 + 1000 * SAMPLE_S, abs=2)
        assert stay["entry_ms"] == pytest.approx(150, abs=stay["time_error_ms"] + 1000 * SAMPLE_S)
        assert stay["wake_error_J"] > 0 and stay["mean_W"] is not None


def test_entering_that_the_clock_does_not_tell_is_null_with_its_reason(tmp_path, monkeypatch):
    table_ = table.load(made(tmp_path, monkeypatch).end(read_late_s=0.4))
    for stay in [row.result for row in table_.of("states/stay")][3:]:
        assert stay["entry_ms"] is stay["enter_J"] is stay["wake_J"] is stay["break_even_s"] is None
        assert stay["why"].startswith(UNTIMED) and stay["first_io_ms"] is not None


@pytest.mark.parametrize(("late_ms", "known"), [(30, True), (60, False)])
def test_a_wake_that_a_busy_host_made_longer_has_no_time(tmp_path, monkeypatch, late_ms, known):
    """The first I/O of the deepest state takes 401 ms. A SIMULATED drive says how late it answered."""
    w = made(tmp_path, monkeypatch)
    label = next(label for label, act in w.acts.items() if act.do == "load" and act.point.get("power_state") == 4)
    w.event("witness", step=label, label=label, round=1, answers={"answers": 2, "late_us": 500.0 * late_ms})
    run = table.load(w.end())
    stay = run.of("states/stay")[4].result
    assert (stay["first_io_ms"] is not None) is (stay["exit_ms"] is not None) is (stay["wake_J"] is not None) is known
    assert stay["entry_ms"] is not None and (known or stay["why"].startswith("host-limited: "))
    assert run.of("states/stay")[3].result["exit_ms"] is not None
