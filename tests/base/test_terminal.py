"""Control characters of drives and files never reach the terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic_run
from hypothesis import given
from hypothesis import strategies as st

from ssdrig import cli
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable, printable_lines

HOST = Path(__file__).resolve().parents[2] / "host"
EVIL = "EVIL\x1b[2J\x1b]0;title\x07\r\x9b1m\u202eX\nfake line: health ok"


@given(st.text())
def test_a_field_stays_in_its_line(text):
    assert not [c for c in printable(text) if ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029\u202e\ud800"]


def test_what_is_written_out():
    assert printable(EVIL) == "EVIL\\x1b[2J\\x1b]0;title\\x07\\x0d\\x9b1m\\u202eX\\x0afake line: health ok"
    assert printable("Ünïcode 860 EVO µ 日本") == "Ünïcode 860 EVO µ 日本" and printable(None) is None
    assert printable_lines("a\tb\n\x1b[32mok\x1b[0m\x1b[8mhidden") == "a\tb\n\x1b[32mok\x1b[0m\\x1b[8mhidden"


def test_progress(capsys):
    show = Progress()
    show.show(EVIL)
    show.say(EVIL)
    err = capsys.readouterr().err
    assert "\x1b" not in err and "\x07" not in err and len(err.splitlines()) == 3


@pytest.mark.parametrize("name", ["model_name", "serial_number", "firmware_version"])
def test_wear_of_a_file(tmp_path, capsys, name):
    document = {"json_format_version": [1, 0], "smartctl": {"exit_status": 0}, "device": {"protocol": "NVMe"}}
    path = tmp_path / "smart.json"
    path.write_text(json.dumps({**document, "model_name": "M", name: EVIL}))
    cli.main(["wear", "--smartctl", str(path)])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\x07" not in out + err
    assert not [line for line in (out + err).splitlines() if line.startswith("fake line")]


def test_a_run_folder_forges_no_line_of_the_list(tmp_path, capsys):
    folder = tmp_path / "a\nfake line"
    folder.mkdir()
    drive = {"model": "M", "serial": "S", "time_dilation": 1}
    header = {"schema": 1, "run": "r", "started": {"t_ns": 1, "utc_ns": 1}, "drive": drive, "method": {}}
    (folder / "run.json").write_text(json.dumps(header | {"plan": {"name": EVIL}}))
    assert cli.main(["runs", "--runs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and not [line for line in lines if line.startswith("fake line")]
    assert all("\\x0afake line" in line for line in lines)  # name, folder, the command that goes on


def test_an_error_with_a_hostile_name(capsys):
    assert cli.main(["run", "consistency", "--virtual", "x\x1b[2Jy"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_live_line_is_never_wider_than_the_terminal(monkeypatch, capsys):
    for columns in (10, 40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        show = Progress()
        show.live = True
        show.show("x" * 91)
        line = capsys.readouterr().err.removeprefix("\r\x1b[K")
        assert len(line) == min(91, columns - 1)


@pytest.mark.slow
def test_a_locale_without_utf8(tmp_path):
    """The page is UTF-8 whatever the locale; what a locale cannot print is written out."""
    run = synthetic_run.write(tmp_path, [5000] * 12, name="early", power=False)
    environ = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [sys.executable, "-m", "ssdrig", "report", str(run)]
    done = subprocess.run(words, env=environ, capture_output=True)
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr.decode()
    html = (run / "report.html").read_text("utf-8")
    assert "\u00c2" not in html and "\u00b5" in html, "micro, not its two bytes"


def test_no_template_or_table_is_read_in_the_locale():
    """read_text() and write_text() of what a person or another machine wrote name their encoding."""
    for name in ("report/page.py", "drive/wear/warranty.py", "drive/smart/ata_table.py", "commands/rig.py"):
        assert ".read_text()" not in (HOST / "ssdrig" / name).read_text("utf-8"), name


IN_BACKGROUND = """
import os, signal, subprocess, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)  # a session without one gets it
settings = termios.tcgetattr(terminal)
settings[3] |= termios.TOSTOP
termios.tcsetattr(terminal, termios.TCSANOW, settings)
words = [sys.executable, "-m", "ssdrig", "plans", "show", "no-such-plan"]
child = subprocess.Popen(words, stderr=terminal, process_group=0)
status = os.waitpid(child.pid, os.WUNTRACED)[1]
if os.WIFSTOPPED(status):
    child.kill()
os._exit(99 if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
def test_words_of_a_run_in_the_background_do_not_stop_it():
    """`stty tostop`: SIGTTOU to who writes to the terminal from the background. fio would go on, unread."""
    ours, theirs = os.openpty()
    words = [sys.executable, "-c", IN_BACKGROUND, os.ttyname(theirs)]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": str(HOST)}, start_new_session=True)
    assert done.returncode == 2 and b"no-such-plan" in os.read(ours, 4096)
    for fd in (ours, theirs):
        os.close(fd)


@pytest.mark.parametrize("closed", [*(pytest.param(fds, marks=pytest.mark.slow) for fds in ((1,), (2,))), (0, 1, 2)])
def test_closed_streams_are_never_a_file_of_the_run(tmp_path, closed):
    """Without stdout (`>&-`) the first file opened would be descriptor 1."""
    run = synthetic_run.write(tmp_path, [900] * 5 + [300, 500] * 3, zoom_s=5)
    script = (
        "import os, sys; from ssdrig import cli; code = cli.main(['report', sys.argv[1], '--json', '--quiet'])\n"
        "print('x', file=sys.stderr)\n"
        f"seen = {{os.readlink(f'/proc/self/fd/{{fd}}') for fd in {closed}}}\n"
        "os._exit(code or (0 if seen == {os.devnull} else 99))"
    )
    words = [sys.executable, "-c", script, str(run)]
    closing = "".join(f" {fd}>&-" for fd in closed)
    done = subprocess.run(["sh", "-c", f'"$@"{closing}', "sh", *words], env=os.environ | {"PYTHONPATH": str(HOST)})
    assert done.returncode == 0 and (run / "figures.json").exists()
