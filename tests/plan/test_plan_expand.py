"""plan/expand.py: what a plan does on a drive."""

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.plan import expand, grammar
from ssdrig.plan.kinds import load
from ssdrig.run import prepare

ALL = frozenset(grammar.CAPABILITIES)
MIB = 1 << 20


def drive(capacity_bytes=256 << 30, raw_nand_bytes=256 << 30, logical_block_bytes=512):
    return {
        "capacity_bytes": capacity_bytes,
        "raw_nand_bytes": raw_nand_bytes,
        "logical_block_bytes": logical_block_bytes,
        "rated_write_bytes": 600 * capacity_bytes,
    }


def acts(name, variant=None, sets=None, capabilities=ALL, **of_drive):
    text, where = grammar.find(name)
    return expand.expand(grammar.read(text, where, variant, sets), drive(**of_drive), capabilities)


# have blocks of 512 bytes; a variant for drives with blocks of 4 KiB stands beside each
OF_512 = [("pts-dirth", "cbw", 4096), ("jesd219-enterprise", "512", 4096), ("jesd219-enterprise", "mixed-512", 4096)]
OF_512 += [("endurance", "512", 4096)]


@pytest.mark.slow
@pytest.mark.parametrize("block", [512, 4096])
@pytest.mark.parametrize("capacity", [64 << 20, 30 * 10**12])
@pytest.mark.parametrize("name", grammar.shipped())
def test_every_plan_and_variant_fits_every_drive(name, capacity, block):
    text, where = grammar.find(name)
    for variant in (None, *grammar.read(text, where).variants):
        if (name, variant, block) in OF_512:
            with pytest.raises(UsageError, match="this drive has blocks of 4096 bytes"):
                acts(name, variant, logical_block_bytes=block)
            continue
        planned = acts(name, variant, capacity_bytes=capacity, raw_nand_bytes=capacity, logical_block_bytes=block)
        assert planned and all(act.range_bytes <= capacity for act in planned)


def test_pts_iops_has_56_points_a_round_and_leaves_out_what_the_drive_cannot():
    planned = [act for act in acts("pts-iops") if act.repeat]
    assert len(planned) == 56 and {act.path for act in planned} == {"rounds/point"}
    assert [(act.point["read"], act.point["block"]) for act in planned[:2]] == [(100, "1024 KiB"), (100, "128 KiB")]
    assert planned[0].keys["block"] == ((1 << 20, 100),) and planned[0].label == "rounds/point read=100 block=1024KiB"
    assert (planned[0].repeat.least, planned[0].repeat.most, planned[0].repeat.judged) == (5, 25, 1)
    quick = next(act.repeat for act in acts("pts-iops", "quick") if act.repeat)
    assert (quick.least, quick.most, quick.judged) == (6, 25, 2)
    left_out = [act for act in acts("pts-iops", logical_block_bytes=4096) if act.not_run]
    assert len(left_out) == 7 and {act.point["block"] for act in left_out} == {"512 B"}
    assert {act.not_run for act in left_out} == {"this drive has blocks of 4096 bytes"}


@pytest.mark.parametrize(
    ("variant", "percent", "cache", "load"), [(None, 100, "off", (4, 32)), ("client", 75, "on", (2, 16))]
)
def test_pts_iops_has_the_order_and_the_settings_that_the_methods_state(variant, percent, cache, load):
    """host/docs/how/methods.md; mixes outside, block sizes inside, each from large to small."""
    planned = acts("pts-iops", variant)
    points = [act for act in planned if act.repeat]
    blocks = ("1024 KiB", "128 KiB", "64 KiB", "32 KiB", "16 KiB", "8 KiB", "4 KiB", "512 B")
    mixes = (100, 95, 65, 50, 35, 5, 0)
    assert [(a.point["read"], a.point["block"]) for a in points] == [(mix, size) for mix in mixes for size in blocks]
    assert {(a.keys["threads"], a.keys["qd"]) for a in points} == {load} and {a.keys["time"] for a in points} == {60}
    assert {a.keys["pattern"] for a in points} == {"random"} and {a.keys["compressible"] for a in points} == {0}
    assert {a.range_bytes for a in points} == {(256 << 30) * percent // 100}
    tracked = ("iops read=0 block=4KiB", "iops read=65 block=64KiB", "iops read=100 block=1024KiB")
    assert points[0].repeat.until[0].track == tracked
    assert [act.path for act in planned[:3]] == ["purge", "cache", "wipc"]
    assert planned[1].keys["write_cache"] == cache and planned[2].keys["block"] == 128 << 10


def test_trim_validation_measures_the_same_three_times():
    planned = {act.path: act for act in acts("trim-validation") if not act.not_run}
    assert [*planned] == ["purge", "clean", "fill", "torture", "dirty", "trim", "after"]
    assert planned["clean"].keys == planned["dirty"].keys == planned["after"].keys
    keys, torture = planned["clean"].keys, planned["torture"].keys
    assert [keys[key] for key in ("pattern", "read", "qd", "time")] == ["sequential", 0, 1, 60]
    assert [torture[key] for key in ("pattern", "read", "qd", "time")] == ["random", 0, 32, 3600]
    assert (keys["block"], torture["block"]) == (((128 << 10, 100),), ((4096, 100),))


def test_an_amount_is_of_the_capacity_and_a_fill_without_one_is_one_pass():
    wipc = next(act for act in acts("pts-iops", "client") if act.path == "wipc")
    assert (wipc.range_bytes, wipc.amount_bytes) == (192 << 30, 512 << 30)
    fill = next(act for act in acts("consistency", "op25") if act.path == "fill")
    assert fill.range_bytes == fill.amount_bytes == 192 << 30


def test_a_range_of_raw_nand_is_the_reviews_over_provisioning():
    # 336 GiB of raw NAND, 200 GB tested: 44.6 %
    op = 100 * (1 - 200e9 / (336 << 30))
    planned = acts(
        "consistency", None, {"range": f"raw {100 - op:.6f} %"}, capacity_bytes=240 * 10**9, raw_nand_bytes=336 << 30
    )
    assert planned[1].range_bytes == pytest.approx(200e9, abs=MIB)
    with pytest.raises(UsageError, match="raw NAND is known"):
        acts("consistency", "op25", raw_nand_bytes=None)
    with pytest.raises(UsageError, match="own over-provisioning is 6.9 % of raw NAND"):
        acts("consistency", None, {"range": "raw 100 %"}, capacity_bytes=int(0.931 * (256 << 30)))
    with pytest.raises(UsageError, match="at least 16 MiB"):
        acts("consistency", None, {"range": "1 MiB"})


def test_what_the_bench_lacks_is_said_before_anything_starts():
    with pytest.raises(UsageError, match="none of trim here"):
        acts("trim-validation", capabilities=frozenset({"purge"}))


def test_durable_writes_are_not_run_where_none_reach_the_drive():
    """fio's NBD engine sends no FUA: its figures would be those of plain writes."""
    planned = [act for act in acts("sync-write", capabilities=prepare.VIRTUAL) if act.path == "commit"]
    assert {act.point["sync"] for act in planned if act.not_run} == {"each"} and len(planned) == 12
    assert "without FUA" in next(act.not_run for act in planned if act.not_run)
    assert not any(act.not_run for act in acts("sync-write", capabilities=prepare.REAL))


def test_pts_lat_is_nine_points_at_queue_depth_one_then_twenty_minutes_of_writes():
    planned = acts("pts-lat")
    points, histogram = [act for act in planned if act.repeat], planned[-1]
    assert [(act.point["read"], act.point["block"]) for act in points] == [
        (read, block) for read in (100, 65, 0) for block in ("8 KiB", "4 KiB", "512 B")
    ]
    assert all((act.keys["qd"], act.keys["threads"], load.longest_s(act)) == (1, 1, 60) for act in points)
    assert all(act.keys["smart"] == "none" for act in (*points, histogram))
    (ruled,) = points[0].repeat.until
    assert ruled.track == ("lat_mean read=0 block=4KiB",) and (points[0].repeat.least, points[0].repeat.most) == (5, 25)
    keys = histogram.keys
    assert (histogram.path, keys["read"], keys["block"]) == ("histogram", 0, ((4096, 100),))
    assert load.longest_s(histogram) == 1200 and {act.amount_bytes for act in (*points, histogram)} == {None}
    by_ios = [act for act in acts("pts-lat", "quick") if act.do == "load"]
    assert [act.amount_bytes for act in by_ios] == [4000 * size for size in (8192, 4096, 512)] * 3 + [30_000 * 4096]
    wipc = next(act for act in acts("pts-lat", "client") if act.path == "wipc")
    assert (wipc.range_bytes, wipc.amount_bytes) == (192 << 30, 512 << 30)


@pytest.mark.parametrize(("variant", "percent", "cache"), [(None, 100, "off"), ("client", 75, "on")])
def test_pts_tp_fills_with_the_block_of_its_rounds(variant, percent, cache):
    """Read, then write, one thread of 32, in order; each block size on a drive purged for it."""
    planned = acts("pts-tp", variant)
    assert next(act for act in planned if act.do == "set").keys == {"write_cache": cache}
    for size in (1024, 128):
        block = size << 10
        fill = next(act for act in planned if act.path == f"wipc-{size}")
        assert (fill.keys["block"], fill.amount_bytes, fill.range_bytes) == (
            block,
            512 << 30,
            (256 << 30) * percent // 100,
        )
        points = [act for act in planned if act.path == f"rounds-{size}/point"]
        assert [act.point["read"] for act in points] == [100, 0] and {act.keys["block"] for act in points} == {
            ((block, 100),)
        }
        assert {(a.keys["pattern"], a.keys["qd"], a.keys["threads"], load.longest_s(a)) for a in points} == {
            ("sequential", 32, 1, 60)
        }
        (ruled,) = points[0].repeat.until
        assert ruled.track == ("MB/s read=0",) and (points[0].repeat.least, points[0].repeat.most) == (5, 25)
    assert [act.path for act in planned if act.do == "purge"] == ["purge-1024", "purge-128"]


@pytest.mark.parametrize(("variant", "oio"), [(None, (4, 32)), ("client", (2, 16))])
def test_pts_wsat_writes_a_purged_drive_until_it_is_saturated(variant, oio):
    """4 times the capacity, 6 h, or the rule on minutes that are half an hour apart; no fill comes before."""
    planned = acts("pts-wsat", variant)
    wsat, histogram = (act for act in planned if act.do == "load")
    assert [act.do for act in planned] == ["purge", "set", "load", "load"]
    rule, written, time = wsat.keys["until"]
    assert (rule.rule, rule.record_s, rule.spaced_s, rule.after.fixed_bytes) == ("pts", 60, 1800, 1 << 20)
    assert (written.written.times, time.time_s, load.longest_s(histogram)) == (4, 6 * 3600, 1200)
    for act in (wsat, histogram):
        assert (act.keys["threads"], act.keys["qd"]) == oio
        assert (act.keys["read"], act.keys["block"]) == (0, ((4096, 100),))


SMALL = """schema = 1
name = "x"
title = "x"
source = "x"
about = "x"
"""


@pytest.mark.parametrize(
    ("step", "least"),
    [
        ('do = "fill"\namount = "512 KiB"\nthreads = 5', "640 KiB"),
        (
            'do = "load"\npattern = "random"\nread = 0\nblock = { "4 KiB" = 50, "64 KiB" = 50 }\namount = "32 KiB"',
            "64 KiB",
        ),
        ('do = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\nthreads = 32\namount = "64 KiB"', "128 KiB"),
    ],
)
def test_an_amount_has_a_block_for_each_thread(step, least):
    plan = grammar.read(SMALL + f'[[step]]\nname = "few"\n{step}\n')
    with pytest.raises(UsageError, match=f"an amount of at least {least} for few, a block for each thread"):
        expand.expand(plan, drive(), ALL)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("qd = 2147483648", "at most 1024 threads with 65536 I/Os in flight in all for deep"),
        ("threads = 1025", "at most 1024 threads with 65536 I/Os in flight in all for deep"),
        ("threads = 1024\nover = [{ qd = [64, 65] }]", "66560 I/Os"),
        (
            'qd = 1024\nover = [{ block = ["1 MiB", "2 MiB"] }]',
            "at most 1 GiB of memory for the I/Os in flight of deep",
        ),
    ],
)
def test_no_more_ios_in_flight_than_a_host_can_have(step, expected):
    """fio itself refuses them only when the step begins, behind hours of preconditioning."""
    block = "" if "block" in step else 'block = "4 KiB"\n'
    load = f'do = "load"\npattern = "random"\nread = 0\ntime = "9 s"\n{block}'
    plan = grammar.read(f'{SMALL}[[step]]\nname = "deep"\n{load}{step}\n')
    with pytest.raises(UsageError, match=expected):
        expand.expand(plan, drive(), ALL)


@pytest.mark.parametrize("step", ['qd = 64\nthreads = 1024\nblock = "4 KiB"', 'qd = 1024\nblock = "1 MiB"'])
def test_as_many_ios_in_flight_as_a_host_can_have(step):
    load = f'do = "load"\npattern = "random"\nread = 0\ntime = "9 s"\n{step}\n'
    (act,) = expand.expand(grammar.read(f'{SMALL}[[step]]\nname = "deep"\n{load}'), drive(), ALL)
    assert act.not_run is None


def test_pauses_that_a_repeat_sweeps_are_of_the_loads_with_bursts():
    """SNIA PTS 2.0 HIR: accesses with pauses, and a baseline without."""
    load = 'do = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\n'
    text = '[[step]]\nname = "wait"\ndo = "repeat"\nover = [{ off = ["5 s", "50 s"] }]\n'
    text += f'[[step.step]]\nname = "accesses"\n{load}on = "5 s"\ncycles = 3\n'
    text += f'[[step.step]]\nname = "base"\n{load}time = "9 s"\n'
    planned = expand.expand(grammar.read(SMALL + text), drive(), ALL)
    assert [(act.path, act.keys.get("on"), act.keys.get("off")) for act in planned] == [
        ("wait/accesses", 5, 5),
        ("wait/base", None, None),
        ("wait/accesses", 5, 50),
        ("wait/base", None, None),
    ]


@pytest.mark.slow
def test_points_of_all_steps_together_have_an_end_when_the_plan_is_read():
    """Also where they are no repeat's, and in a variant."""
    load = '[[{}]]\nname = "l{}"\ndo = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\ntime = "1 s"\n'
    axes = "\n".join(f"{{ {key} = [{', '.join(map(str, range(1, 101)))}] }}," for key in ("qd", "threads"))
    swept = f"over = [\n{axes}\n]\n"
    repeat = '[[step]]\nname = "r"\ndo = "repeat"\n' + swept
    for count, text in (
        (20_000, repeat + "".join(load.format("step.step", n) for n in range(2))),
        (30_000, repeat + "".join(load.format("step.step", n) for n in range(3))),
        (20_001, "".join(load.format("step", n) + swept * (n < 2) for n in range(3))),
    ):
        if count == 20_000:
            assert len(expand.expand(grammar.read(SMALL + text), drive(), ALL)) == count
        else:
            with pytest.raises(UsageError, match=f"at most 20000 points of all steps together; seen {count}"):
                grammar.read(SMALL + text)
    text = "param = { qds = [1] }\n[variant.many]\nqds = [" + ", ".join(map(str, range(1, 3000))) + "]\n"
    inner = load.format("step.step", 1) + 'over = [{ qd = "$qds" }]\n'
    repeat = '[[step]]\nname = "r"\ndo = "repeat"\nover = [{ threads = [1, 2, 3, 4, 5, 6, 7] }]\n'
    with pytest.raises(UsageError, match="at most 20000 points of all steps together; seen 20993 in .* variant many"):
        grammar.read(SMALL + text.replace(", ", ",\n") + repeat + inner)


def test_degrade_recover_is_eight_rounds_five_more_and_five_rests():
    planned = acts("degrade-recover")
    growing = [act for act in planned if act.path == "degradation/degrade"]
    assert [act.keys["time"] for act in growing] == [60 * minutes for minutes in range(10, 50, 5)]
    passes = [act for act in planned if act.path.endswith("/pass") or act.path.startswith("recovered-")]
    assert len(passes) == 8 + 1 + 5 and all("time" not in act.keys for act in passes)
    assert {load.most_ios(act.keys) for act in passes} == {200_000}
    (steady,) = (act for act in planned if act.path == "steady/degrade")
    assert steady.repeat.most == 5 and steady.keys["time"] == 2700
    sizes = dict(steady.keys["block"])
    assert sum(size * percent for size, percent in sizes.items()) == pytest.approx(100 * 514 * 1024, rel=0.08)
    assert [act.keys["time"] for act in planned if act.do == "idle"] == [300.0] * 5


def test_a_swept_part_that_is_too_small_is_left_out_and_another_is_refused():
    planned = {act.label: act.not_run for act in acts("working-set", capacity_bytes=64 << 20)}
    assert planned["read qd=1 range=10%"] and not planned["read qd=1 range=50%"]
    with pytest.raises(expand.TooSmall):
        acts("host-memory", sets={"part": "10 %"}, capacity_bytes=64 << 20)


def test_speed_is_not_measured_in_a_state_without_io():
    states = [{"max_W": 1.0, "operational": on, "enter_us": 0, "exit_us": 0} for on in (True, True, False)]
    plan = grammar.read(*grammar.find("power-limits"))
    planned = {act.label: act.not_run for act in expand.expand(plan, drive() | {"power_states": states}, ALL)}
    assert not planned["states/write power_state=1"] and planned["states/write power_state=2"]
    assert planned["states/read power_state=3"] != planned["states/read power_state=2"]
    waking = grammar.read(*grammar.find("power-states"))
    loads = expand.expand(waking, drive() | {"power_states": states}, ALL)
    assert not next(act for act in loads if act.label == "states/wake power_state=2").not_run


def test_a_plan_of_which_nothing_can_run_is_refused_with_the_reasons():
    with pytest.raises(UsageError) as error:
        acts("idle-power", capabilities=frozenset({"rig", "apst"}))
    assert "aspm" in error.value.seen and "alpm" in error.value.seen
    assert [act.path for act in acts("idle-power", capabilities=frozenset({"rig", "alpm"})) if not act.not_run]
