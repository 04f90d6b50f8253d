from ssdrig.progress import Progress, sparkline


def test_sparkline_is_logarithmic_and_shows_zero_as_a_hole():
    assert sparkline([10, 100, 1000]) == "▁▅█"
    assert sparkline([5, 0, 5]) == "▁ ▁"
    assert sparkline([0, 0]) == "  "
    assert len(sparkline(list(range(1, 100)), width=10)) == 10


def test_in_a_log_one_line_each_ten_seconds(capsys):
    p = Progress()
    for i in range(5):
        p.show(f"second {i}")
    p.say("done")
    assert capsys.readouterr().err.splitlines() == ["second 0", "done"]


def test_quiet_says_nothing(capsys):
    p = Progress(quiet=True)
    p.show("x")
    p.say("y")
    assert capsys.readouterr().err == ""
