"""tests/emulator/build.sh, killed: it knows its folder again, and what it leaves by the name of an image is whole."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILDER = (ROOT / "tests/emulator/build.sh").read_text()
KILLS = """#!/bin/sh
/bin/%s "$@"
echo x >>"%s"
[ $(wc -l <"%s") = %d ] && kill -9 $PPID
true
"""


def program(path, words):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)
    path.chmod(0o755)


def run(script, folder, bin_=None):
    """Exit code of a part of the builder, with the programs of a folder before those of the machine."""
    path = f"PATH={bin_}:/usr/bin:/bin\n" if bin_ else ""
    return subprocess.run(["sh", "-c", path + script, "sh", folder], capture_output=True).returncode


def test_killed_at_its_start_it_knows_its_folder_again(tmp_path):
    """Behind each call that makes something; up to where it asks apt."""
    script = BUILDER.partition("mirror=")[0]
    for n in range(1, 8):
        folder, bin_ = tmp_path / f"{n}/emulator", tmp_path / f"{n}/bin"
        for name in ("mkdir", "mktemp", "mv"):
            program(bin_ / name, KILLS % (name, bin_ / "calls", bin_ / "calls", n))
        killed = run(script, folder, bin_)
        assert run(script, folder) == 0, n
        if not killed:
            break
    assert n > 2 and not killed


def test_killed_in_the_midst_of_an_image_it_leaves_a_whole_one(tmp_path):
    script = 'set -eu\nfolder=$1\nrelease=forky\njobs=1\ncd "$folder"\n' + BUILDER[BUILDER.index("image() {") :]
    made = {"python3": 'while [ "$1" != -o ]; do shift; done; to=$2', "cp": "for to; do :; done"}
    for torn in (*made, ""):
        folder = tmp_path / (torn or "whole")
        for name in ("arm-none-eabi-objcopy", "cmake", "make"):
            program(folder / "bin" / name, "#!/bin/sh\n")
        for name, where in made.items():
            then = "kill -9 $PPID" if name == torn else 'echo new >"$to"'
            program(folder / "bin" / name, f'#!/bin/sh\n{where}\necho half >"$to"\n{then}\n')
        images = [folder / name for name in ("pico.uf2", "ssdrig-pico.uf2", "ssdrig-pico2.uf2", "cortex.elf")]
        for image in images:
            image.write_text("old\n")
        assert run(script, folder, folder / "bin") == (-9 if torn else 0)
        left = {image.read_text() for image in images}
        assert left == ({"old\n"} if torn else {"new\n"})


def test_tools_of_micropython_import_modules_of_their_folder(tmp_path, monkeypatch):
    """The launcher of ssdrig forbids it to its own Python."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    (tmp_path / "tool.py").write_text("import sibling")
    (tmp_path / "sibling.py").touch()
    start = BUILDER.partition("mirror=")[0]
    assert run(start + f"python3 {tmp_path}/tool.py\n", tmp_path / "emulator") == 0
    assert run(f"python3 {tmp_path}/tool.py\n", tmp_path / "emulator") != 0
