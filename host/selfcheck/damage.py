"""Damages of a run folder: whatever happens to one of its files, `report` gives the figures as they were, or says in
`notes` which file or figure is not as written, or refuses in words. Never a traceback, never a silent number."""

import json
import math
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from selfcheck import Figure, exactly
from ssdrig.base.errors import SsdrigError
from ssdrig.reading import table
from ssdrig.report import page
from ssdrig.runs import integrity, journal

RANDOM, STRUCTURED, FORGED = 2000, 1500, 1000
MEMORY_BYTES = 4 << 30
RUN_WORDS = ["run", "consistency", "--virtual", "sata-tlc", "--capacity", "512MiB", "--duration", "8", "--quiet"]
VALUES: tuple = (
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    math.nan,
    "",
    "x" * 300,
    "\u0000",
    [],
    {},
    [1],
    {"a": 1},
    1.5,
    "12",
    2**62,
)
WHOLE = (
    b"",
    b"[]",
    b"{}",
    b"null\n",
    b"1e999",
    b"[" * 100_000,
    b"\xff\xfe" * 40,
    b"\0" * 4096,
    b"NaN",
    b'{"jobs": [1]}\n',
)

Change = Callable[[Path], object]


def changes(run: Path, count: int, structured: bool, seed: int = 1) -> Iterator[tuple[str, str, Change]]:
    """`count` of (file's path in the folder, the damage in words, what does it to the file)."""
    chance = random.Random(seed)
    names = [name for name in integrity.sums(run) if (run / name).stat().st_size] + ["events.jsonl"] * 3
    weights = [3 if name in ("rig.bin", "run.json", "events.jsonl") or "load" in name else 1 for name in names]
    for _ in range(count):
        name = chance.choices(names, weights)[0]
        words, change = (_structured if structured else _random)(chance, (run / name).read_bytes())
        yield name, words, change


def _random(chance: random.Random, data: bytes) -> tuple[str, Change]:
    at = chance.randrange(len(data))
    long = min(len(data) - at, 1 + int(chance.expovariate(1 / 200)))
    kind = chance.choice(("flip", "flip", "flip", "noise", "cut", "remove", "insert", "repeat", "zeros"))
    if kind == "flip":
        new = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    elif kind == "cut":
        new = data[:at]
    elif kind == "remove":
        new = data[:at] + data[at + long :]
    elif kind == "insert":
        new = data[:at] + chance.randbytes(long) + data[at:]
    elif kind == "repeat":
        new = data[: at + long] + data[at:]
    else:
        new = data[:at] + (chance.randbytes(long) if kind == "noise" else bytes(long)) + data[at + long :]
    return f"{kind} at {at}, {long} bytes", lambda path: path.write_bytes(new)


def _structured(chance: random.Random, data: bytes) -> tuple[str, Change]:
    kind = chance.choice(("value", "value", "value", "value", "key", "lines", "whole", "gone", "folder", "end"))
    if kind == "whole":
        new = chance.choice(WHOLE)
        return f"whole file {new[:20]!r}", lambda path: path.write_bytes(new)
    if kind == "gone":
        return "gone", Path.unlink
    if kind == "folder":
        return "a folder", _make_folder
    if kind == "end":
        new = data[:-1] if chance.random() < 0.5 else data + chance.choice((b"\n", b"}", b"\r\n\0", data[-50:]))
        return "another end", lambda path: path.write_bytes(new)
    lines = data.split(b"\n")
    if kind in ("value", "key"):
        try:
            return _in_json(chance, data, lines, kind)
        except (ValueError, IndexError):
            pass  # no JSON
    a, b = sorted(chance.randrange(len(lines)) for _ in "ab")
    words = chance.choice(("drop", "double", "swap", "order", "carriage returns"))
    if words == "drop":
        del lines[a : b + 1 if chance.random() < 0.3 else a + 1]
    elif words == "double":
        lines.insert(b, lines[a])
    elif words == "swap":
        lines[a], lines[b] = lines[b], lines[a]
    elif words == "order":
        lines.reverse()
    new = (b"\r\n" if words == "carriage returns" else b"\n").join(lines)
    return f"lines: {words} {a} {b}", lambda path: path.write_bytes(new)


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _in_json(chance: random.Random, data: bytes, lines: list[bytes], kind: str) -> tuple[str, Change]:
    """One value or key somewhere in the file's document, or in one of its lines, changed or gone."""
    at = None
    try:
        document = json.loads(data)
    except ValueError:
        at = chance.choice([i for i, line in enumerate(lines) if line.startswith(b"{") and line.endswith(b"}")])
        document = json.loads(lines[at])
    places = list(_places(document))
    holder, key = chance.choice(places)
    value = chance.choice(VALUES)
    if kind == "key" and isinstance(holder, dict):
        words = f"key {key!r} "
        held = holder.pop(key)
        if chance.random() < 0.5:
            holder[key + "x"] = held
    else:
        words = f"{key!r} = {value!r:.30} "
        holder[key] = value
    text = json.dumps(document).encode()
    new = text if at is None else b"\n".join([*lines[:at], text, *lines[at + 1 :]])
    return words + (f"in line {at}" if at is not None else ""), lambda path: path.write_bytes(new)


def _places(value) -> Iterator[tuple]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def figures(run: Path, with_page: bool = False) -> dict:
    """What `report RUN --json` prints, as it comes back from JSON. Raises SsdrigError."""
    data, out, _ = table.in_full(run)
    if with_page:
        page.render([], 0, [(data, out)])
    return json.loads(json.dumps(out))


def trial(run: Path, name: str, change: Change, want: dict, with_page: bool = False) -> str | None:
    """Damage one file of the folder, read the figures, put it back. Returns the fault in words, or None."""
    path = run / name
    original = path.read_bytes()
    try:
        change(path)
        got = figures(run, with_page)
    except SsdrigError as error:
        return None if Path(name).name in str(error) else f"refused without the file's name: {error}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"traceback: {type(error).__name__}: {str(error)[:80]} in {Path(where.filename).name}:{where.lineno}"
    finally:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(original)
    differ = sorted(key for key in want if key != "notes" and json.dumps(got.get(key)) != json.dumps(want[key]))
    new = [note for note in got["notes"] if note not in want["notes"]]
    step = f"{Path(name).parent.name}: "  # of a file of fio: what is said of its step
    if differ and not any(name in note or note.startswith(step) or any(key in note for key in differ) for note in new):
        return f"silent: {', '.join(differ)[:120]}"
    return None


def unsealed(run: Path) -> None:
    """Make the folder one as older versions wrote it: no numbers, no CRCs, no sums."""
    events = [event for event in journal.events(run) if event["kind"] != "sums"]
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def forged(chance: random.Random, name: str, data: bytes) -> tuple[str, bytes]:
    """(the forgery in words, the new content) of one of fio's files, such as an editor or a person leaves it."""
    kinds = ("mark", "order", "swap", "negative", "far", "odd")
    kind, lines = chance.choice(kinds), data.splitlines(keepends=True)
    if name.endswith("out.json"):
        numbers = list(re.finditer(rb"(?<=:)\s*\d+", data))
        stamps = list(re.finditer(rb'(?<="t_ns":)\s*\d+', data))
    else:
        numbers = list(re.finditer(rb"\b\d+", data))
        stamps = list(re.finditer(rb"^\d+", data, re.MULTILINE))
    number = chance.choice(numbers)
    if kind == "mark":
        return "a byte order mark", b"\xef\xbb\xbf" + data
    if kind == "order":
        chance.shuffle(lines)
        return "lines in another order", b"".join(lines)
    if kind == "swap":
        whole = [i for i, line in enumerate(lines) if line[:1].isdigit() or line.startswith(b'{"')]
        at, other = chance.choice(whole), chance.choice(whole)
        lines[at], lines[other] = lines[other], lines[at]
        return f"lines {at} and {other} swapped", b"".join(lines)
    if kind == "far":
        number = chance.choice(stamps or numbers)  # older documents have no t_ns
        by = chance.choice((-1, 1)) * 10 ** chance.randint(4, 9) * (1_000_000 if name.endswith("out.json") else 1)
        new = b"%d" % (int(number.group()) + by)
        words = f"a time {by} further"
    elif kind == "negative":
        new, words = b"-" + number.group().strip(), "a negative number"
    else:
        new = chance.choice((b"1e3", b"0x10", b"", b"99999999999999999999", b"7 7", b"nan", b"1.5", "\u0663".encode()))
        words = f"{new!r} for a number"
    return f"{words} at byte {number.start()}", data[: number.start()] + new + data[number.end() :]


def forgeries(run: Path, count: int, seed: int = 1, say=None) -> list[str]:
    """`count` forgeries of fio's files, one at a time, each with the sums made anew, so that nothing but the file's
    content can show it. Returns the faults."""
    chance, want = random.Random(seed), figures(run)
    faults: list[str] = []
    names = [p.relative_to(run).as_posix() for p in sorted(run.glob("fio/*/*")) if p.suffix == ".log"]
    names = [*names, *names, *(p.relative_to(run).as_posix() for p in sorted(run.glob("fio/*/out.json")))]
    names = [name for name in names if (run / name).stat().st_size]
    sealed = (run / "events.jsonl").read_bytes()
    for i in range(count):
        if say and i % 100 == 99:
            say(f"forgery {i + 1}/{count}: {len(faults)} faults")
        name = chance.choice(names)
        words, new = forged(chance, name, (run / name).read_bytes())

        def change(path: Path, new: bytes = new) -> None:
            path.write_bytes(new)
            reseal(run)

        try:
            if fault := trial(run, name, change, want):
                faults.append(f"{name}: {words}: {fault}")
        finally:
            (run / "events.jsonl").write_bytes(sealed)
    return faults


def reseal(run: Path) -> None:
    """Make the sums anew, as someone who alters a run would."""
    events = [e | {"files": integrity.sums(run)} if e["kind"] == "sums" else e for e in journal.events(run)]
    (run / "events.jsonl").write_bytes(b"".join(integrity.sealed(e, number) for number, e in enumerate(events)))


def trials(run: Path, count: int, structured: bool, seed: int = 1, with_page: bool = False, say=None) -> list[str]:
    """`count` damages of a folder, one at a time. Returns the faults, each with its file and damage."""
    want, faults = figures(run, with_page), []
    for i, (name, words, change) in enumerate(changes(run, count, structured, seed)):
        if fault := trial(run, name, change, want, with_page):
            faults.append(f"{name}: {words}: {fault}")
        if say and i % 100 == 99:
            say(f"damage {i + 1}/{count}: {len(faults)} faults")
    if json.dumps(figures(run, with_page)) != json.dumps(want):
        faults.append("the folder was not put back")
    return faults


def _damage() -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-damage-", dir="/var/tmp"))
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        subprocess.run(
            [sys.executable, "-P", "-m", "ssdrig", *RUN_WORDS, "--runs", str(folder)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (run,) = (path for path in folder.iterdir() if (path / "run.json").exists())
        shutil.rmtree(run / "truth", ignore_errors=True)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, before[1]))
        began, faults = time.monotonic(), []

        def say(words: str) -> None:
            print(words, file=sys.stderr)

        for count, structured in ((RANDOM, False), (STRUCTURED, True)):
            faults += trials(run, count, structured, say=say)
        forged_ones = forgeries(run, FORGED, say=say)
        unsealed(run)
        old = [fault for fault in trials(run, STRUCTURED // 3, True, seed=2, say=say) if "traceback" in fault]
        for fault, n in Counter(faults + forged_ones + old).most_common(40):
            print(f"{n} x {fault}", file=sys.stderr)
        print(f"{(time.monotonic() - began):.0f} s", file=sys.stderr)
        return [
            exactly("tracebacks", sum("traceback" in fault for fault in faults), f"of {RANDOM + STRUCTURED}", 0),
            exactly("figures that differ without a word", sum("silent" in f for f in faults), "", 0),
            exactly("refused without the file's name", sum("refused" in f for f in faults), "", 0),
            exactly("forged files of fio, sums made anew: faults", len(forged_ones), f"of {FORGED}", 0),
            exactly("tracebacks of a folder without sums", len(old), f"of {STRUCTURED // 3}", 0),
        ]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        shutil.rmtree(folder, ignore_errors=True)


BENCHES = {"damage": ("any damage of a run folder is reported: no traceback, no silent figure", _damage)}
