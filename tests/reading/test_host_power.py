"""Power of the host by the events `host` of a run."""

import pytest

from ssdrig.reading import host_power
from ssdrig.report import about


def step(path, *hosts):
    return [{"kind": "step.start", "step": path}, *hosts, {"kind": "step.end", "step": path}]


def host(lasted_s, bmc_W=None, **energy_J):
    event = {"t_ns": 10**12, "kind": "host", "lasted_s": lasted_s, "energy_J": energy_J}
    return event if bmc_W is None else event | {"bmc_W": bmc_W}


def test_energy_over_time_of_each_step():
    events = [
        *step("fill", host(10.0, 100.0, package=300.0), host(10.0, package=500.0)),
        *step("check"),
        *step("load", host(10.0, 90.0, package=100.0, psys=400.0), host(30.0, 130.0, package=500.0, psys=1200.0)),
        host(10.0, package=1.0),
    ]
    fill, load = host_power.of_steps(events)
    assert (fill.path, fill.covered_s, fill.power_W) == ("fill", 20.0, {"package": 40.0, "BMC": 100.0})
    assert load.power_W == {"package": 15.0, "psys": 40.0, "BMC": 120.0}
    assert fill.as_json() == {"step": "fill", "covered_s": 20.0, "power_W": {"package": 40.0, "BMC": 100.0}}


def test_rounds_of_a_repeat_are_together():
    (only,) = host_power.of_steps(
        [*step("round/point", host(10.0, p=100.0)), *step("round/point", host(10.0, p=300.0))]
    )
    assert (only.covered_s, only.power_W) == (20.0, {"p": 20.0})


def test_a_zone_that_an_event_lacks_is_not_known():
    (only,) = host_power.of_steps(step("load", host(10.0, a=1.0, b=2.0), host(10.0, a=3.0)))
    assert only.energy_J == {"a": 4.0}


@pytest.mark.parametrize("energy", [None, [], {"p": "1"}, {"p": -1}, {"p": float("nan")}, {"p": True}, {"p": 1e300}])
def test_what_is_no_energy(energy):
    event = {"t_ns": 10**12, "kind": "host", "lasted_s": 10.0, "energy_J": energy}
    assert host_power.of_steps(step("load", event)) == []


def test_the_table_of_the_page():
    html = about.host_power_table(step("load", host(10.0, 150.0, **{"package-0": 455.0})))
    assert "<td>45.50</td>" in html and "<td>150.00</td>" in html and 'scope="row">load<' in html
    assert about.host_power_table(step("load")) == ""
