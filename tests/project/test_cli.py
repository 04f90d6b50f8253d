"""The words of the command line: help, examples, what was meant, quantities, old names, which run is meant."""

import argparse
import errno
import importlib
import io
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ssdrig import cli
from ssdrig.base import arguments
from ssdrig.base.errors import LimitMissed, UsageError, exit_codes
from ssdrig.base.terminal import error_lines
from ssdrig.run import options, run
from ssdrig.runs import named


def modules() -> dict:
    return {name: importlib.import_module(module) for name, (module, _) in cli.COMMANDS.items()}


def parsers(parser: argparse.ArgumentParser):
    """Each parser below one, itself included."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


ALL = list(parsers(cli.parser_of(modules())))


# ---- help


@pytest.mark.parametrize("columns", [70, 80, 100])
def test_the_help_has_every_command_in_its_group_and_fits(columns):
    text = cli.help_text(columns)
    assert max(map(len, text.splitlines())) <= columns
    grouped = [name for names in cli.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted([*cli.COMMANDS, *cli.OF_THE_CLONE]), "each command belongs to one group"
    for name in grouped:
        assert f"\n  {name} " in text
    for words in ("first steps:", "./ssdrig demo", "README.md", *(name for name, _ in exit_codes().values())):
        assert words in " ".join(text.split())


def test_without_words_the_help_is_shown_and_nothing_was_done(capsys):
    assert cli.main([]) == 2
    seen = capsys.readouterr()
    assert not seen.out and "first steps:" in seen.err


@pytest.mark.parametrize("words", [["help"], ["--help"], ["help", "run"], ["run", "-h"], ["help", "selfcheck"]])
def test_ways_to_ask_for_help(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0 and "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("parser", ALL, ids=[parser.prog for parser in ALL])
def test_every_argument_is_explained_in_the_width_of_the_terminal(parser, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, parser.format_usage().splitlines())) <= 80
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        assert action.help, f"{parser.prog} {action.dest}"
        if action.help != argparse.SUPPRESS:
            assert action.nargs == 0 or action.metavar or action.choices, f"{parser.prog} {action.dest}: no metavar"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_example_can_be_typed(name):
    module = modules()[name]
    parser = cli.parser_of({name: module})
    for words, what in getattr(module, "EXAMPLES", ()):
        arguments = shlex.split(words.partition(" > ")[0])
        assert arguments[0] == name and what
        parser.parse_args(arguments)
    for words, _ in cli.FIRST:
        assert words.split()[0] in cli.COMMANDS


# ---- wrong words


@pytest.mark.parametrize(
    "words, expected, seen_words, hint",
    [
        ("reprot", "a command", "'reprot'", "do you mean 'report'?"),
        ("zzz", "a command", "'zzz'", "`ssdrig --help` lists the commands"),
        ("--foo", "an option of `ssdrig`", "--foo", "lists the options"),
        ("run --durration 5", "an option of `ssdrig run`", "--durration", "do you mean '--duration'?"),
        ("run consistency --virtual sata-tlc --foo=3", "an option of", "--foo=3", "?"),
        ("run x -Z", "an option of `ssdrig run`", "-Z", "lists the options"),
        ("-", "a command", "'-'", "--help"),
        ("-1 run", "a command", "'-1'", "--help"),
        ("help -", "a command", "'-'", "--help"),
        ("rig cutt", "`ssdrig rig` flash, setup, info, calibrate", "'cutt'", "do you mean 'cut'?"),
        ("rig", "`ssdrig rig` flash, setup, info, calibrate", "none", "ssdrig rig --help"),
        ("trace", "`ssdrig trace` ", "none", "ssdrig trace --help"),
        ("hardware", "`ssdrig hardware` release", "none", "ssdrig hardware --help"),
        ("rig cut --steady-from", "an option of `ssdrig rig cut`", "--steady-from", "lists the options"),
        ("run", "PLAN", "none", "ssdrig run --help"),
        ("run x y z", "no more words", "z", "ssdrig run --help"),
        ("run x --repeat two", "--repeat with a whole number", "'two'", "ssdrig run --help"),
        ("run x --repeat", "--repeat with a value", "none", "ssdrig run --help"),
        ("run x --finish kepe", "--finish keep, trim or purge", "'kepe'", "do you mean 'keep'?"),
        ("run x --duration soon", "--duration with a duration such as 90", "'soon'", "units"),
        ("run x --duration 1.5", "--duration with whole seconds", "'1.5'", "round it"),
        ("run x --json=3", "--json without a value", "'3'", "--help"),
        ("run x --p 3", "one option", "--p, which may be --purge-method, --power-off", "--help"),
        ("run consistancy --virtual sata-tlc", "the name of a plan", '"consistancy"', "do you mean 'consistency'?"),
        ("run consistency --virtual sata-tlx", "a preset of the virtual drive", "sata-tlx", "do you mean 'sata-tlc'?"),
        ("trace play x --drive 3 --virtual 4", "--virtual or --drive", "both", "--help"),
        ("trace play x", "one of --drive --virtual", "none", "--help"),
        ("rig cut --random 5ms", "--random with two values", "fewer", "--help"),
        ("rig cut --off 1000", "--off with a duration such as", "'1000'", "units"),
        ("rig cut --above 300", "--above with a current such as 300mA", "'300'", "uA"),
        ("purge", "DRIVE", "none", "./ssdrig drives"),
        ("units --write 1MiB", "DRIVE", "none", "./ssdrig drives"),
        ("selfcheck energi", "names of", "energi", "do you mean 'energy'?"),
    ],
)
def test_wrong_words_are_usage_errors_that_say_what_was_meant(words, expected, seen_words, hint, capsys):
    assert cli.main(words.split()) == 2
    seen = capsys.readouterr()
    lines = seen.err.replace("\r\x1b[K", "").splitlines()
    assert not seen.out and len(lines) == 3, lines
    assert ": error: expected " in lines[0] and expected in lines[0]
    assert lines[1].startswith("  found: ") and seen_words in lines[1]
    assert lines[2].startswith("  hint:  ") and hint in lines[2]


@pytest.mark.parametrize(
    "words", ["report {}", "runs {}/x", "push {}", "note {} x", "label ./{}", "query hot {}", "wear --smartctl {}"]
)
def test_a_path_that_is_too_long_is_a_usage_error(words, capsys):
    words = words.format("x" * 5000).split()
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert "ssdrig " + words[0] in err and max(map(len, err.splitlines())) < 200 and "too long" in err


def test_nothing_is_begun_before_all_words_are_read(monkeypatch, tmp_path):
    """A wrong option behind a right one, and a value that no run could have."""
    from ssdrig.virtual import bench

    monkeypatch.setattr(bench, "start", lambda *_, **__: pytest.fail("the virtual bench was started"))
    for words in ("--capacity huge", "--op 250", "--duration 3", "--steady-from 70", "--nope"):
        run = ["run", "consistency", "--virtual", "sata-tlc", "--duration", "60", "--runs", str(tmp_path / "runs")]
        assert cli.main([*run, *words.split()]) == 2, words
    assert not (tmp_path / "runs").exists()


def test_an_error_is_one_line_a_part_whatever_it_holds(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = error_lines("ssdrig x", UsageError("a\nb", "\x1b[2Jmodel\nfound: no", "c"))
    assert text == "ssdrig x: error: expected a b\n  found: \\x1b[2Jmodel found: no\n  hint:  c"


# ---- quantities


@pytest.mark.parametrize(
    "words, key, value",
    [
        ("run x --duration 5m", "duration", 300),
        ("run x --duration 90", "duration", 90),
        ("run x --duration 1.5h", "duration", 5400),
        ("run x --duration 33min --steady-from 20m", "zoom", 1200),
        ("run x --idle 2m --smart-interval 30s", "smart_interval", 30),
        ("demo --duration 2m", "duration", 120),
        ("watch --interval 10m", "interval", 600.0),
        ("push r --timeout 2m", "timeout", 120.0),
        ("units S --poll-interval 1m", "settle", 60.0),
        ("rig info --time 500ms", "seconds", 0.5),
        ("rig cut --off 1.5s", "off_ms", 1500),
        ("rig cut --profile ramp --fall 50ms --bulk 470uF 1mF", "bulk_uF", [470, 1000]),
        ("rig cut --random 5ms 2s", "random_us", [5000, 2_000_000]),
        ("rig cut --consecutive 3 --above 0.3A", "above_mA", 300.0),
    ],
)
def test_quantities_take_units(words, key, value):
    arguments = words.split()
    args = cli.parser_of({arguments[0]: modules()[arguments[0]]}).parse_args(arguments)
    assert getattr(args, key) == value and type(getattr(args, key)) is type(value)


# ---- which run


@pytest.fixture
def runs(tmp_path):
    for name in (
        "20260101T000000Z-consistency-A-00aa",
        "20260102T000000Z-pts-iops-B-11aa",
        "20260103T000000Z-x-B-22bb",
    ):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    return tmp_path / "runs"


def test_a_run_by_its_folder_its_id_its_last_digits_or_the_newest(runs, monkeypatch):
    newest = sorted(runs.iterdir())[-1]
    assert named.one("latest", runs) == newest
    assert named.one("22bb", runs) == newest and named.one(newest.name, runs) == newest
    assert named.one(str(newest)) == newest
    assert named.one("nowhere/else", runs) == Path("nowhere/else")  # its reader says what is wrong
    monkeypatch.chdir(runs.parent)
    (runs.parent / "latest").mkdir()
    assert named.one("latest") == Path("latest")  # what is there comes first


@pytest.mark.parametrize(
    "word, seen, hint",
    [
        ("0aa", "'0aa'", "./ssdrig runs"),  # fewer than four digits
        ("ffff", "'ffff'", "./ssdrig runs"),
        ("lastest", "'lastest'", "do you mean 'latest'?"),
        ("20260103T000000Z-x-B-22bc", "22bc", "do you mean '20260103T000000Z-x-B-22bb'?"),
    ],
)
def test_a_word_that_names_no_run(runs, word, seen, hint):
    with pytest.raises(UsageError) as info:
        named.one(word, runs)
    assert seen in info.value.seen and hint in info.value.do


def test_digits_of_several_runs_name_none(runs):
    (runs / "20260104T000000Z-y-C-22bb").mkdir()
    (runs / "20260104T000000Z-y-C-22bb" / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="2 runs end in"):
        named.one("22bb", runs)


def test_a_folder_of_runs_stands_for_all_in_it(runs, tmp_path):
    assert [run.name[:8] for run in named.several([runs])] == ["20260101", "20260102", "20260103"]
    assert named.several(["22bb", runs / "x"], runs) == [sorted(runs.iterdir())[-1], runs / "x"]
    with pytest.raises(UsageError, match="the folder"):
        named.one("latest", tmp_path / "none")


# ---- output


def test_v_shows_each_event():
    event = {"t_ns": 3_000_000_000, "kind": "step.begin", "n": 4, "crc": "x", "step": "load", "point": {"qd": 4}}
    assert run._event_line(event, 1_000_000_000) == '    0:02  step.begin  step=load  point={"qd": 4}'
    assert len(run._event_line({"t_ns": 0, "kind": "note", "text": "x" * 9999}, 0)) < 200


def test_output_options_are_the_same_everywhere():
    short = {"-q": "--quiet", "-n": "--dry-run", "-o": "--output", "-v": "--verbose", "-h": "--help"}
    for parser in ALL:
        for action in parser._actions:
            for name in action.option_strings:
                if len(name) == 2:
                    assert short[name] in action.option_strings, f"{parser.prog} {name}"
        long = {name for action in parser._actions for name in action.option_strings}
        for letter, name in short.items():
            assert name not in long or letter in long, f"{parser.prog} has {name} without {letter}"


def test_run_and_review_share_their_options():
    assert options.parse(["x", "-v"]).verbose and not options.parse(["x"]).verbose


# ---- hostile names


def test_a_socket_is_no_run(tmp_path, capsys):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as link:
        link.bind(str(path))
        assert cli.main(["report", str(path)]) == 8
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        *((words, 8) for words in ("report {}", "export {} --parquet lake", "label {} --title x", "resume {}")),
        *((words, 8) for words in ("query hot {}", "note {} x", "push {} --influx http://h/db")),
        *((words, 2) for words in ("wear --smartctl {}/x.json", "runs {}", "trace show {}/x", "plans check {}/x.toml")),
    ],
)
def test_a_folder_that_may_not_be_looked_into_is_one_error(words, code, tmp_path, monkeypatch, capsys):
    """Python 3.11 to 3.13 say nothing of exists() there, but raise."""
    locked = tmp_path / "locked"
    locked.mkdir()

    def as_another_user(call):
        def refused(path=".", *more, **named):
            if str(path).startswith(f"{locked}/") or (str(path) == str(locked) and call.__name__ != "stat"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return call(path, *more, **named)

        return refused

    for module, name in ((os, "stat"), (os, "scandir"), (os, "listdir"), (os, "open"), (io, "open")):
        monkeypatch.setattr(module, name, as_another_user(getattr(module, name)))
    monkeypatch.setattr("builtins.open", io.open)
    monkeypatch.chdir(tmp_path)
    assert cli.main(words.format(locked).split()) == code
    err = capsys.readouterr().err
    assert "Permission denied" in err and "Traceback" not in err and not (tmp_path / "lake").exists()


@pytest.mark.parametrize("words", ["runs", "export {} --parquet lake", "run consistency --virtual sata-tlc"])
def test_a_current_folder_that_was_removed_is_one_error(words, tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert cli.main(words.format(tmp_path).split()) == 2
    assert "a current folder that is there" in capsys.readouterr().err


def test_columns_of_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    text = arguments.examples([("run x", "a line that is too long for a terminal of fifty columns")])
    assert text == "examples:\n  # a line that is too long for a terminal of fifty columns\n  ./ssdrig run x"


# ---- tables


def test_many_runs_are_a_row_each_and_fit():
    from ssdrig.report import screen

    figures = [
        {"iops_mean": 10000.0 * i, "zero_seconds": 0, "clat_p99_us": 900.0, "power_mean_W": 4.1, "state": "complete"}
        | {"energy_uJ_per_io": 70.5, "wa": 2.5, "wa_error": 0.01, "samples_lost": None}
        for i in range(1, 13)
    ]
    names = [f"Some Maker 990 PRO with a long name {i}" for i in range(1, 13)]
    for columns in (80, 200):
        lines = screen.runs_in_rows(names, figures, columns)
        assert len(lines) == 13 and max(map(len, lines)) <= columns
        assert all(f"name {i} " in line for i, line in enumerate(lines[1:], 1))  # what tells them apart is left
    assert lines[1].startswith(names[0]) and "10\u202f000" in lines[1] and "2.50" in lines[1]
    alike = [f"{i}, default OP" for i in range(12)]
    lines = screen.runs_in_rows(alike, figures, 60)
    assert max(map(len, lines)) <= 60 and all(any(line.startswith(name) for line in lines) for name in alike)


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_a_table_is_cut_where_the_terminal_ends(columns):
    """Every cell is there once, every part of the table has the names of its rows."""
    from ssdrig.report import phases

    names = ["step", *(f"rounds-1024/point threads=4 read={i}" for i in range(3))]
    table = [[name, *(f"{i}.{c}" + "  longer" * (c == 4) for c in range(12))] for i, name in enumerate(names)]
    table[0][6] = "a heading that is wider than the terminal"
    lines = phases.text(table, "  ", columns)
    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    assert all(words.count(f"{i}.{c}") == 1 for i in range(4) for c in range(12) if (i, c) != (0, 5))
    assert [words.count(word) for word in ("heading", "wider")] == [1, 1]
    parts = sum("step" in line.split()[:1] for line in lines)
    assert parts == sum("read=2" in line for line in lines) and (parts == 1) == (columns == 200)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_table_of_a_dry_run_fits(columns, capsys, monkeypatch):
    from ssdrig.base import progress
    from ssdrig.run import dry_run

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(progress, "is_live", lambda: True)
    for words in ("consistency", "pts-iops", "slc-cache --budget 8GB"):
        assert cli.main(["run", *words.split(), "--virtual", "sata-tlc", "-n"]) == 0
        lines = capsys.readouterr().err.replace("\r\x1b[K", "").splitlines()
        assert max(map(len, lines)) < columns, max(lines, key=len)
        assert sum(line.startswith("  in all") for line in lines) == 1
    rows = [("a", "one two three", "0:10", "5 GB")]
    assert dry_run.in_columns(rows, None) == ["  a  one two three  0:10  5 GB"]


COMMAND = """
import sys, types
from ssdrig import cli
from ssdrig.base.errors import LimitMissed
module = types.ModuleType("of_the_test")
module.VERDICT, module.EXAMPLES, module.add_arguments = sys.argv[1] == "verdict", (), lambda parser: None
def command(args):
    print("x" * int(sys.argv[2]))
    raise LimitMissed("a", "b", "c")
module.command = command
sys.modules["of_the_test"] = module
cli.COMMANDS["check"] = ("of_the_test", "")
raise SystemExit(cli.main(["check"]))
"""


@pytest.mark.parametrize("length", [1, 1_000_000])
def test_a_verdict_is_not_lost_with_the_reader_of_stdout(length):
    """As in `ssdrig check latest | grep -q missed` with pipefail."""
    for name in ("check", "compare"):
        assert modules()[name].VERDICT
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-c", COMMAND, "verdict", str(length)]
    with open(writer, "wb") as gone:
        done = subprocess.run(words, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == LimitMissed.exit_code and "Traceback" not in done.stderr and "ignored" not in done.stderr
