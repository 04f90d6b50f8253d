"""Price, capacity and endurance of the drives of a library, and several of one drive beside another, from tables whose
figures are known."""

from html import escape
from types import SimpleNamespace

import pytest

from ssdrig.report import economy, library, price
from ssdrig.report.library import Facts, Member

TB = 1e12
GB = 1e9


def run(iops, watts, p99_us=500.0, tested=500 * GB, error=0.0):
    figures = {"t0_s": 0.0, "t1_s": 60.0, "iops_mean": iops, "power_mean_W": watts, "lat_p99_us": p99_us}
    figures |= {"errors": {"iops_mean": error, "power_mean_W": 0.0, "lat_p99_us": 0.0}, "notes": [], "trust": []}
    act = SimpleNamespace(path="load", label="load", point={}, do="load", repeat=None)
    row = SimpleNamespace(act=act, round=None, state="done", windows={"steady": figures, "all": figures}, why=None)
    row.value = lambda word, window="all": figures.get(economy_key(word))
    row.why_not = lambda word: "not known"
    row.notes = []
    header = {"drive": {"capacity_bytes": 500 * GB}, "method": {"tested_bytes": tested}, "simulated": True}
    data = SimpleNamespace(header=header, state="complete", why=None)
    plan = SimpleNamespace(name="consistency", text="", params={}, scaled=False)
    return SimpleNamespace(
        data=data, plan=plan, rows=[row], verdicts=[], of=lambda path: [row] if path == "load" else []
    )


def economy_key(word):
    return {"iops": "iops_mean", "W": "power_mean_W", "lat_p99": "lat_p99_us", "iops/W": "iops_per_W"}[word]


def member(name, table, cost=None, rated_TB=300.0, own=False, op="default OP"):
    stated = price.parse(cost) if cost else None
    rated = rated_TB * TB if rated_TB else None
    return Member(Facts(name), name, op, "2026", {"consistency": table}, own, stated, rated)


CLIENT = member("client", run(10_000, 2.5), "80 USD", own=True)
SPARED = member("client", run(18_000, 2.4, tested=375 * GB), "80 USD", own=True, op="25 % OP")
ENTERPRISE = member("enterprise", run(40_000, 8.0), "400 USD", 3000.0)
DRIVES = [CLIENT, SPARED, ENTERPRISE]


def test_how_many_it_takes():
    assert economy.needed(CLIENT, ENTERPRISE) == (4, 4)
    assert economy.needed(SPARED, ENTERPRISE) == (3, 3)
    unsure = member("x", run(10_000, 2.5, error=500.0))
    low, high = economy.needed(unsure, member("y", run(40_100, 8.0, error=500.0)))
    assert (low, high) == (4, 5)
    assert isinstance(economy.needed(member("x", run(None, 2.5)), ENTERPRISE), str)
    assert economy.needed(member("x", run(1, 2.5)), ENTERPRISE) == "more than 1000"


def test_what_four_of_them_come_to():
    four = economy.several(CLIENT, 4, 4, "USD")
    assert four.iops.value == 40_000 and four.power_W.value == pytest.approx(10.0) and four.p99_us.value == 500.0
    assert four.cost.value == pytest.approx(320.0) and four.capacity_bytes.value == pytest.approx(2000 * GB)
    # 300 TB are 600 drive writes of 500 GB: 80 / 600 USD each, of four drives four times as much
    assert four.per_drive_write.value == pytest.approx(4 * 80 / 600)
    assert four.per_TB.value == pytest.approx(80 / 300)
    three = economy.several(SPARED, 3, 3, "USD")
    assert three.per_drive_write.value == pytest.approx(3 * 80 / 800)  # of the 375 GB that are used


def test_what_is_not_stated_is_null_with_its_reason():
    poor = member("poor", run(5000, 2.0), None, None)
    of = economy.several(poor, 1, 1, "USD")
    assert (of.cost.value, of.cost.why) == (None, price.NO_PRICE)
    assert of.per_TB.value is None and of.iops.value == 5000
    dear = economy.several(member("dear", run(5000, 2.0), "80 USD", None), 1, 1, "USD")
    assert (dear.per_TB.value, dear.per_TB.why) == (None, economy.NO_RATING)


def test_nothing_is_set_against_the_price_of_a_scaled_run():
    table = run(10_000, 2.5, tested=2 * GB)
    table.plan.scaled = True
    scaled = member("client", table, "80 USD", own=True)
    of = economy.several(scaled, 1, 1, "USD")
    assert [(one.value, one.why) for one in (of.per_drive_write, of.per_TB)] == [(None, economy.SCALED)] * 2
    assert of.cost.value == 80 and of.iops.value == 10_000
    assert economy.sentence([scaled]) == "80 USD." and "GB for each USD" in economy.sentence([CLIENT])
    html = "".join(economy.cards([scaled, ENTERPRISE], "USD")[0])
    assert html.count(f">{economy.SCALED}<") == 4


def test_the_section_has_a_line_for_each_drive_and_each_over_provisioning():
    html = economy.section(DRIVES)
    assert html.count("as fast: ") == 2 and "4 × client, default OP" in html and "3 × client, 25 % OP" in html
    assert html.count('<div class="card"') == 4 and "gb-per-money" in html
    assert economy.currency(DRIVES) == "USD"


def test_without_any_price_the_section_says_how_to_state_one():
    bare = [member("a", run(10_000, 2.5), own=True), member("b", run(20_000, 2.5))]
    html = economy.section(bare)
    assert escape(economy.NO_PRICES) in html and "as fast: 2 × a" in html and "USD" not in html
    assert economy.sentence(bare) == ""


def test_a_price_of_the_page_comes_before_that_of_a_file():
    table = SimpleNamespace(**vars(CLIENT.tables["consistency"]))
    table.data.header["drive"]["model"] = "client"
    table.data.header["started"] = {"utc_ns": 0}
    facts = Facts("a", price=price.parse("50 USD"))
    (one,) = library.members([(facts, table)], facts, {"client": price.parse("70 USD")})
    assert one.price.amount.value == 70
    (other,) = library.members([(facts, table)], facts)
    assert other.price.amount.value == 50
