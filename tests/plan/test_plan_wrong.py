"""What plan/grammar.py and the modules it reads with say about broken plans: expected, seen with the place, do. Of
values of a wrong type: test_plan_wrong_types.py."""

import pytest
from broken_plans import HEAD, LOAD, REPEAT, STEP, refused, steps

from ssdrig.base.words import do_you_mean
from ssdrig.plan import grammar


@pytest.mark.parametrize(
    "line, sentence",
    [
        ('time = "٦0 s"', 'time = "٦0 s"'),
        ('time = "½ s"', 'time = "½ s"'),
        ('time = "1e3 s"', "one of the units"),
        ('time = "0 s"', "a time of at least 1 ms"),
        ('time = "-5 s"', "one of the units"),
        ('time = "60 sec"', 'do you mean "60 s"?'),
        ("time = 60", 'do you mean "60 s"?'),
        ("time = 1e400", "numbers that fit in 64 bits"),
        (f"time = 0x{'f' * 900}", "numbers that fit in 64 bits"),
        (f"time = {'9' * 900}", "numbers that fit in 64 bits"),
        (f'amount = "{"9" * 900} B"', "an amount such as"),
        ('range = "0 %"\ntime = "1 s"', 'range = "0 %"'),
        ('range = "101 %"\ntime = "1 s"', 'range = "101 %"'),
        ('qd = true\ntime = "1 s"', "qd = true"),
        ('qd = 32.0\ntime = "1 s"', "do you mean 32?"),
        ('qd = "32"\ntime = "1 s"', "do you mean 32?"),
        ("cycles = 1", "cycles without on"),
        ('on = "5 s"\ntime = "1 s"', "on without cycles"),
        ('off = "5 s"\ntime = "1 s"', "off alone"),
        ('amount = "1 x"\ntime = "1 s"', "time and amount"),
        ('hot = [[100, 100], []]\ntime = "1 s"', "zones"),
        ('hot = [[60, 50], [40, 40]]\ntime = "1 s"', "zones"),
        ('arrival = "poisson"\ntime = "1 s"', "rate together with arrival"),
        ('until = "quiet"', "a list of ends"),
        ('until = [{ steady = "pts", value = "iops" }]', 'add { time = "6 h" }'),
        ('until = [{ written = "4 x" }]', 'add { time = "6 h" }'),
        ('until = [{ cliff = false }, { time = "1 h" }]', "cliff = false"),
        ('until = [{ steady = "pts", value = "W" }, { time = "1 h" }]', "one of iops"),
        ('until = [{ steady = "pts", track = ["iops"] }, { time = "1 h" }]', "track only in a repeat"),
        ('until = [{ steady = ["pts"], value = "iops" }, { time = "1 h" }]', 'steady = ["pts"]'),
        ('until = [{ time = "1 h" }, { time = "2 h" }]', "time twice"),
        ('until = [{ time = "1 h", written = "1 x" }]', "give each its own table"),
        ('until = [{ tiem = "1 h" }]', "do you mean 'time'?"),
        (
            'until = [{ steady = "pts", value = "iops", record = "1 min", spaced = "30 s" }, { time = "1 h" }]',
            "overlap",
        ),
        ('windows = { "a b" = "all" }\ntime = "1 s"', '"a b"'),
        ('windows = { a = "from 100 %" }\ntime = "1 s"', '"from 100 %"'),
        ('windows = { a = "from 60 s" }\ntime = "60 s"', "begin before the load ends"),
        ('judge = { window = "from 2 min", rule = "pts" }\ntime = "60 s"', "begin before the load ends"),
        ('windows = { a = "9 s..3 s" }\ntime = "60 s"', '"9 s..3 s"'),
        ('judge = { window = "steadi", rule = "pts" }\nwindows = { steady = "all" }\ntime = "1 s"', "'steady'"),
        ('over = [{ qd = [1, 1] }]\ntime = "1 s"', "1 twice"),
        ('over = [{ qd = [1], threads = [1] }]\ntime = "1 s"', "one key each"),
        ('over = [{ qd = [1] }, { qd = [2] }]\ntime = "1 s"', "qd twice"),
        ('over = [{ read = [0, 100] }]\ntime = "1 s"', "read either set or swept"),
        ('over = [{ qd = [1, true] }]\ntime = "1 s"', "single values"),
        ('over = [{ qd = ["1"] }]\ntime = "1 s"', "do you mean 1?"),
        ('over = [{ sync = ["each", "bogus"] }]\ntime = "1 s"', "one of none, each, flush"),
        ('over = [{ windows = ["all"] }]\ntime = "1 s"', "over to sweep keys"),
        ('over = [{ range = ["1 GiB", "1024 MiB"] }]\ntime = "1 s"', "again"),
        ('over = [{ time = ["1 s"] }]\ntime = "1 s"', "either set or swept"),
        ('over = [{ qd = ["$n"] }]\ntime = "1 s"', '"$n"'),
        (f"over = [{{ qd = {list(range(1, 102))} }}, {{ threads = {list(range(1, 102))} }}]", "10201 in over"),
        ('smart = "egdes"\ntime = "1 s"', "edges"),
        ('smart = "0 s"\ntime = "1 s"', '"0 s"'),
        ('needs = [["rig"]]\ntime = "1 s"', "needs"),
        ('needs = ["rigg"]\ntime = "1 s"', "do you mean 'rig'?"),
        ('optional = 1\ntime = "1 s"', "optional = 1"),
        ('use = ["a"]\ntime = "1 s"', "use"),
        ('step = 3\ntime = "1 s"', "a key of a load step"),
        ('"read.x" = 3\ntime = "1 s"', "read.x"),
        ('tiem = "1 s"', "do you mean 'time'?"),
    ],
)
def test_a_wrong_load(line, sentence):
    words = refused(f"{HEAD}[[step]]\n{LOAD}{line}\n")
    assert sentence in words and "my.toml" in words


@pytest.mark.parametrize(
    "outer, inner, sentence",
    [
        ("times = 2", 'time = "1 s"', "read in a load step"),
        ("", 'read = 0\ntime = "1 s"', "exactly one of times, until, over"),
        ("times = 2\nmost = 3", 'read = 0\ntime = "1 s"', "most without until"),
        ('until = [{ time = "1 h" }]\nmost = 9', 'read = 0\ntime = "1 s"', "another end"),
        ('until = [{ steady = "pts", track = [] }]\nmost = 9', 'read = 0\ntime = "1 s"', "track"),
        (
            'until = [{ steady = "pts", track = ["iops qd=9"] }]\nmost = 9',
            'over = [{ qd = [1] }]\nread = 0\ntime = "1 s"',
            "qd to be one of 1",
        ),
        (
            'until = [{ steady = "pts", track = ["iops"] }]\nmost = 9',
            'over = [{ qd = [1] }]\nread = 0\ntime = "1 s"',
            "0 loads",
        ),
        (
            'until = [{ steady = "pts", track = ["iops qd"] }]\nmost = 9',
            'over = [{ qd = [1] }]\nread = 0\ntime = "1 s"',
            "qd to be one of 1",
        ),
        (
            'until = [{ steady = "pts", track = ["iops"], record = "1 s" }]\nmost = 9',
            'read = 0\ntime = "1 s"',
            "record",
        ),
        ('over = [{ read = ["banana"] }]', 'time = "1 s"', '"banana"'),
        ("over = [{ raed = [0] }]", 'read = 0\ntime = "1 s"', "do you mean 'read'?"),
        ("over = [{ read = [0] }]", 'read = 0\ntime = "1 s"', "either set or swept"),
        ("over = [{ read = [0] }]", 'over = [{ read = [0] }]\ntime = "1 s"', "each key swept once"),
        ('over = [{ at = ["max"] }]', 'read = 0\ntime = "1 s"', "put a choose step before it"),
        ("times = 2", 'read = 0\ntime = "1 s"\n[[step.step.step]]\nname = "x"\ndo = "purge"', "a key of a load step"),
        ("times = 2", 'read = 0\ntime = "1 s"\n[[step.step]]\nname = "x"\ndo = "repeat"\ntimes = 1', "first level"),
        ("times = 2", 'read = 0\ntime = "1 s"\n[[step.step]]\nname = "point"\ndo = "flush"', "point again"),
    ],
)
def test_a_wrong_repeat(outer, inner, sentence):
    assert sentence in refused(HEAD + REPEAT.format(outer, inner))


def test_what_a_repeat_sweeps_is_read_for_each_step_inside():
    parsed = steps(REPEAT.format("over = [{ read = [100, 0] }]", 'time = "1 s"'))
    assert "read" not in parsed["rounds/point"].keys and parsed["rounds"].axes == {"read": [100, 0]}


@pytest.mark.parametrize(
    "text, sentence",
    [
        (
            '[workload.a]\nuse = "b"\n[workload.b]\nread = 0\n[[step]]\nname = "x"\nuse = "a"',
            "workloads that use no other",
        ),
        ("[workload.a]\nread = 0\n" + STEP, "no use of workload a"),
        ('[workload.a]\nname = "a"\n' + STEP, "name in my.toml, workload a"),
        ('[workload.a]\ndo = "load"\nraed = 0\n' + STEP, "do you mean 'read'?"),
        ('[[step]]\nname = "x"\nuse = "nothing"', "use = "),
        ("[param]\nx = 1\n" + STEP, "no use of $x"),
        ("[param]\nx = 1.5\n" + STEP, "x = 1.5"),
        ('[param]\nx = [1, "60 s"]\n' + STEP, "list of quantities of one unit"),
        ('[param]\nx = { "4 KiB" = 50 }\n' + STEP, "parameter x"),
        ("[param]\nX = 1\n" + STEP, "rename it"),
        ("[param]\nx = 1\n[variant.v]\ny = 1\n" + STEP, "y in my.toml, variant v"),
        ('[param]\nx = 1\n[variant.v]\nx = "1 s"\n' + STEP, "x in the unit of its default, 1"),
        ('[variant."a b"]\n' + STEP, "each name of a variant"),
        ("[variant]\na = 1\n" + STEP, "each variant to be a table"),
        (STEP + STEP, "load again"),
        (STEP.replace('"load"\ndo', '"Load"\ndo'), 'name = "Load"'),
        (STEP.replace('"load"\ndo', f'"{"l" * 41}"\ndo'), "at most 40"),
        ('[[step]]\nname = "x"\ndo = "cut"\ntrace = "y"', "do you mean 'cuts'?"),
        ('[[step]]\nname = "x"\ndo = "set"', "at least one of write_cache"),
        ('[[step]]\nname = "x"\ndo = "idle"\nuntil = "quiet"', "until without most"),
        ('[[step]]\nname = "x"\ndo = "idle"\nuntil = "quite"\nmost = "1 h"', "do you mean 'quiet'?"),
        ('[[step]]\nname = "x"\ndo = "ask"\ntext = "a\\u202eb"', "one line of text"),
        (
            '[[step]]\nname = "x"\ndo = "choose"\nfrom = "y"\npoints = [{ at = "max" }]',
            "put a repeat with a swept load",
        ),
        ('[[step]]\nname = "x"\ndo = "choose"\nfrom = "y"\npoints = [{ at = "max", where = "lat < 5 ms" }]', "lat_"),
    ],
)
def test_wrong_tables(text, sentence):
    assert sentence in refused(HEAD + text)


def test_a_variant_is_checked_also_when_another_one_is_read():
    text = HEAD + '[param]\ntime = "60 s"\n[variant.v]\ntime = "0 s"\n' + STEP.replace('"60 s"', '"$time"')
    assert "my.toml, variant v, step load" in refused(text)
    assert "my.toml, variant v, step load" in refused(text, "v")
    assert "a variant of my.toml" in refused(text, "w")


def test_choose_picks_from_points_that_are_there():
    text = REPEAT.format("times = 2", 'read = 0\nover = [{ qd = [1, 4] }]\ntime = "1 s"')
    pick = '[[step]]\nname = "pick"\ndo = "choose"\nfrom = "rounds/point"\npoints = [{{ at = "min", {} }}]\n'
    at = (
        '[[step]]\nname = "again"\ndo = "repeat"\nover = [{{ at = ["{}"] }}]\n[[step.step]]\n' + LOAD + 'time = "1 s"\n'
    )
    assert steps(text + pick.format("qd = 4") + at.format("min"))["again"].axes == {"at": ["min"]}
    assert "a value that rounds/point has" in refused(HEAD + text + pick.format("qd = 2"))
    assert "do you mean 'qd'?" in refused(HEAD + text + pick.format("qdd = 2"))
    assert "a point that the choose step before it has picked" in refused(
        HEAD + text + pick.format("qd = 4") + at.format("max")
    )
    assert "from to be a swept load" in refused(HEAD + pick.format("qd = 4") + text)
    late = "points picked by iops, MB/s, lat_mean, which are known when a round ends"
    assert late in refused(HEAD + text + pick.format("qd = 4") + 'value = "W"\n')
    assert late in refused(HEAD + text + pick.format('where = "lat_p99 < 1 ms"'))
    chosen = pick.format("qd = 4").replace('"pick"', '"pick2"').replace("rounds/point", "again/load")
    swept = at.format("min").replace('time = "1 s"', 'over = [{{ time = ["1 s", "2 s"] }}]'.format())
    assert "sweep all of its points on its own" in refused(HEAD + text + pick.format("qd = 4") + swept + chosen)
    plan = at.format("min").replace("time =", "qd = 2\ntime =")
    assert "qd either set or swept" in refused(HEAD + text + pick.format("qd = 4") + plan)


def test_what_the_chosen_point_sets_need_not_be_said():
    text = REPEAT.format("times = 2", 'over = [{ read = [100, 0] }]\ntime = "1 s"')
    pick = '[[step]]\nname = "pick"\ndo = "choose"\nfrom = "rounds/point"\npoints = [{ at = "max" }]\n'
    again = '[[step]]\nname = "again"\ndo = "repeat"\nover = [{ at = ["max"] }]\n'
    again += '[[step.step]]\nname = "load"\ndo = "load"\npattern = "random"\nblock = "4 KiB"\ntime = "1 s"\n'
    assert "read" not in steps(text + pick + again)["again/load"].keys
    assert "read in a load step" in refused(HEAD + again.replace("at = ", "qd = ").replace('"max"', "1"))


def test_parameters_go_into_lists_and_into_until():
    text = '[param]\nblocks = ["4 KiB", "8 KiB"]\nmix = { "4 KiB" = 60, "8 KiB" = 40 }\nend = "1 h"\nrule = "pts"\n'
    text += '[variant.v]\nblocks = ["1 MiB"]\nmix = "4 KiB"\n'
    text += f'[[step]]\n{LOAD}until = [{{ steady = "$rule", value = "iops" }}, {{ time = "$end" }}]\n'
    for name, blocks in (("b", 'over = [{ block = "$blocks" }]'), ("c", 'block = "$mix"')):
        text += f'[[step]]\nname = "{name}"\ndo = "load"\npattern = "random"\nread = 0\n{blocks}\ntime = "1 s"\n'
    parsed = steps(text)
    assert parsed["load"].keys["until"][1].time_s == 3600 and parsed["b"].axes["block"] == ["4 KiB", "8 KiB"]
    assert parsed["c"].keys["block"] == ((4096, 60), (8192, 40))
    plan = grammar.read(HEAD + text, "my.toml", "v", {"end": "2 h", "mix": '{ "16 KiB" = 100 }'})
    assert plan.steps[1].axes["block"] == ["1 MiB"] and plan.steps[2].keys["block"] == ((16384, 100),)
    assert plan.steps[0].keys["until"][1].time_s == 7200 and plan.params["end"] == "2 h"


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("60", 'do you mean "60 s"?'),
        ("60 sec", 'do you mean "60 s"?'),
        ("٦0 s", "in the unit of its default"),
        ("[1", "a value as a plan writes it"),
        ("[" * 900, "a value as a plan writes it"),
        ('"1 s', "a value as a plan writes it"),
        ("4 KiB", "in the unit of its default"),
        ("0 s", "a time of at least 1 ms"),
        ("1" * 5000, "in the unit of its default"),
        ("[0x" + "f" * 900 + "]", "64 bits"),
        ("\x1b[2J", "in the unit of its default"),
    ],
)
def test_a_wrong_set(words, sentence):
    text = HEAD + '[param]\ntime = "60 s"\n' + STEP.replace('"60 s"', '"$time"')
    assert sentence in refused(text, None, {"time": words})
    assert words[0] in '["' or "do you mean 'time'?" in refused(text, None, {"tiem": words})
    assert grammar.read(text, "x", None, {"time": "2 min"}).steps[0].keys["time"] == 120


@pytest.mark.parametrize(
    "show, sentence",
    [
        ('view = "matirx"', "do you mean 'matrix'?"),
        ('view = "matrix"\nof = "rounds/point"\nrows = "qd"\nvalue = "iops"', "columns in the view matrix"),
        ('view = "matrix"\nof = "rounds/point"\nrows = "qd"\ncolumns = "qd"\nvalue = "iops"', "qd twice"),
        (
            'view = "heat"\nof = "rounds/point"\nrows = "qd"\ncolumns = "block"\nvalue = "iops"',
            "columns of rounds/point",
        ),
        ('view = "lines"\nof = "rounds/point"\nx = "qd"\nwhere = "read=9"\nvalue = "iops"', "read in where"),
        ('view = "lines"\nof = "rounds/point"\nx = "qd"\nwhere = "raed=0"\nvalue = "iops"', "do you mean 'read'?"),
        ('view = "bars"\nof = "rouns"\nvalue = "iops"', "do you mean 'rounds'?"),
        ('view = "bars"\nof = "rounds"\nvalue = "iosp"', "do you mean 'iops'?"),
        ('view = "bars"\nof = "rounds"\nvalue = ["iops", "iops"]', "each once"),
        ('view = "series"\nof = "rounds/point"\nvalue = "W"\nwindow = "steady"', "window of rounds/point"),
        ('view = "series"\nof = "rounds/point"\nvalue = "W"\ntop = -1', "top = -1"),
        ('view = "steady"\nof = "rounds"', "a step that a rule ends"),
        ('view = "figure"\nname = "f"\nformula = "rounds/point.iops"', "many points"),
        ('view = "figure"\nname = "f"\nformula = "x.iops"', "paths of steps"),
        ('view = "figure"\nname = "f"\nformula = "1 +"', "something is missing at its end"),
        ('view = "figure"\nname = "f"\nformula = 3', "formula = 3"),
        ('view = "figure"\nname = "f"\nformula = "1"\n[[show]]\nview = "figure"\nname = "f"\nformula = "2"', "f again"),
    ],
)
def test_a_wrong_view(show, sentence):
    text = HEAD + REPEAT.format("over = [{ read = [0, 100] }]", 'over = [{ qd = [1, 4] }]\ntime = "1 s"')
    words = refused(f"{text}[[show]]\n{show}\n")
    assert sentence in words and "my.toml, show " in words


def test_do_you_mean_names_what_there_is():
    assert do_you_mean("patern", ["pattern", "read"]) == "do you mean 'pattern'?"
    assert do_you_mean("x", ["b", "a"]) == "use one of a, b" and do_you_mean("x", []).startswith("leave it out")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # pauses without bursts, swept by the load itself and by the repeat around it
        ("[[step]]\n" + LOAD + 'over = [{ off = ["1 s", "2 s"] }]\ntime = "9 s"\n', "on together with off"),
        (
            REPEAT.format('over = [{ off = ["1 s", "2 s"] }]', 'read = 0\ntime = "9 s"'),
            "on in a step whose pauses are swept",
        ),
        # who says what is done again
        (STEP + 'resume = "round"\n', "resume to be one of restart, plan, continue"),
        (REPEAT.format("times = 2", 'read = 0\ntime = "1 s"\nresume = "plan"'), "resume in the repeat"),
        (
            REPEAT.format('times = 2\nresume = "continue"', 'read = 0\ntime = "1 s"'),
            "resume to be one of round, restart, plan",
        ),
        # too few rounds for the rule, said without a drive
        (
            REPEAT.format(
                'until = [{ steady = "pts", track = ["iops qd=1"] }]\nmost = 4',
                'over = [{ qd = [1] }]\nread = 0\ntime = "1 s"',
            ),
            "at least 5 rounds, which the rule needs; seen most = 4",
        ),
        (
            REPEAT.format(
                'until = [{ steady = "pts", from = 2, track = ["iops qd=1"] }]\nmost = 5',
                'over = [{ qd = [1] }]\nread = 0\ntime = "1 s"',
            ),
            "at least 6 rounds, which the rule needs; seen most = 5",
        ),
    ],
)
def test_what_had_been_found_out_late_or_not_at_all(text, sentence):
    assert sentence in refused(HEAD + text)


def test_a_repeat_that_no_rule_ends_may_be_short():
    never = 'until = [{ steady = "never", track = ["iops qd=1"] }]\nmost = 2'
    assert steps(REPEAT.format(never, 'over = [{ qd = [1] }]\nread = 0\ntime = "1 s"'))


def test_what_is_no_file_is_refused_at_once(tmp_path, capsys):
    import os

    from ssdrig import cli

    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "link.toml").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "link"):
        assert cli.main(["plans", "check", str(tmp_path / f"{name}.toml")]) == 2
        assert "expected a plan file" in capsys.readouterr().err
