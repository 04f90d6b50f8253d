"""The end of `demo`: eight lines at most, of runs that are written here in place of the virtual bench's."""

import pytest
import synthetic_run

from ssdrig.base.progress import Progress
from ssdrig.commands import demo


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Two runs, the second with 25 % over-provisioning, twice as fast."""

    def perform(args, show: Progress):
        show.show("load 50 %")
        show.say("a table of forty lines")
        iops = 4000 if args.op is None else 8000
        seconds, op = [9000] * 6 + [iops, iops + 1, iops - 1] * 8, 25 if args.op else None
        folder = synthetic_run.write(tmp_path, seconds, zoom_s=12, op_percent=op, name=f"demo-{iops}")
        return folder, 0

    monkeypatch.setattr(demo.run, "perform", perform)
    return tmp_path


def carried_out(made, *words: str) -> int:
    return demo.command(demo._parsed(demo, ["--runs", str(made), *words]))


@pytest.mark.usefixtures("short_loads_have_errors")
def test_it_ends_in_at_most_eight_lines(made, capsys):
    assert carried_out(made) == 0
    lines = capsys.readouterr().err.splitlines()
    intro = next(i for i, line in enumerate(lines) if "real time" in line)
    end = [line for line in lines[intro + 1 :] if line != "load 50 %"]
    assert len(end) <= 8 and "forty" not in "".join(lines)
    assert "2.0 ×" in end[0] and end[1].split()[0] == "IOPS"
    # 9 000 is beyond no cliff of 8 000: these seconds are scatter
    assert "4\u202f000.00 ± 0.45  2.500 ± 0.029" in end[2] and "8\u202f000 ± 287  2.500 ± 0.029" in end[3]
    assert str((made / "demo.html").resolve()) in end[-2] and (made / "demo.html").stat().st_size > 100_000


def test_verbose_adds_the_notes_and_quiet_says_nothing(made, capsys):
    carried_out(made, "-v")
    assert "forty" in capsys.readouterr().err
    for folder in made.iterdir():
        folder.rename(made.parent / folder.name)
    carried_out(made, "-q")
    assert capsys.readouterr().err == ""
