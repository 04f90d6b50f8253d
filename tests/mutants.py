"""Mutation test, run by hand and not in CI: breaks one place of the code at a time and counts the breaks that the tests
which are not slow do not notice.

    python tests/mutants.py [--count 200] [--seed 1] [--only SUBSTRING] [--jobs 2] [--list] [--out FILE.jsonl]

Each mutant is one change of one node: a comparison, an operator, a constant, a condition, a lost statement. It is made
in a copy of the tree, and the tests of its area run there until one fails. A mutant that no test kills is printed as a
diff of one line: a missing test, or a change that makes no difference (an equivalent mutant).
"""

import argparse
import ast
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 240  # for the tests of one mutant, and at least SLOWER times what the unchanged code takes
SLOWER = 4  # a mutant that hangs for longer counts as killed, and is named

# area -> (its files, the tests that may kill a mutant of it, the most direct ones first)
AREAS = {
    "firmware": (
        [f"firmware/{name}.py" for name in ("link", "clock64", "lane", "sampler", "ina226", "ina228", "switch", "cut")],
        # the sources on CPython; whole boards in real time would take minutes for each mutant that these let live
        "test_clock64 test_link test_sampler test_lane test_i2c_drivers test_switch_states test_switch_power"
        " test_switch_limits test_ramp test_trip",
    ),
    "meter": (
        ["host/ssdrig/meter/*.py"],
        "test_reduced test_clock test_frames test_messages test_limits test_samples_limits test_rails_grid"
        " test_calibration_limits test_samples test_closure test_rails test_calibration test_fast_host"
        " test_points_results test_analysis test_figures",
    ),
    "wear": (
        [
            f"host/ssdrig/drive/{name}.py"
            for name in (
                *("wear/wa", "wear/endurance", "wear/retention"),
                *("smart/plausible", "smart/nvme_counters", "smart/ata_counters", "smart/ata_readings"),
                "smart/ata_table",
            )
        ],
        "test_wa test_endurance_bounds test_retention test_ata_bytes test_ata_rows test_ata_counters_bounds"
        " test_counters_bounds test_counters_nvme test_endurance test_ata_counters test_ata_life test_counters"
        " test_wear test_warranty test_smart",
    ),
    "messages": (["host/ssdrig/meter/messages.py"], "test_messages test_rig_session test_hello test_frames"),
    "standing": (["host/ssdrig/drive/wear/standing.py"], "test_wear_history test_wear_samples test_wear"),
    "guard": (
        [
            f"host/ssdrig/drive/{name}.py"
            for name in ("uses", "layers", "openers", "claims", "door", "guard", "confirm")
        ],
        "test_guard_bounds test_guard_layers test_door test_confirm test_guard test_holders test_latch test_purge"
        " test_drives test_inventory test_fleet",
    ),
    "powerloss": (
        [f"host/ssdrig/powerloss/{name}.py" for name in ("record", "history", "promise", "verdict", "judging")],
        "test_powerloss",
    ),
    "retention": (
        # each mutant of aged.py is compiled anew, 30 s of CPU time
        [f"host/ssdrig/virtual/flash/{name}.py" for name in ("aged", "ageing", "charge_loss")],
        "test_charge_loss test_ageing",
    ),
    "journal": (
        [f"host/ssdrig/runs/{name}.py" for name in ("journal", "rigbin", "rigrecords", "integrity")],
        "test_journal_limits test_journal test_damage test_torn test_run test_samples test_points",
    ),
    "plateaus": (
        [
            *("host/ssdrig/plan/rules/plateaus.py", "host/ssdrig/load/fiofine.py"),
            *("host/ssdrig/reading/cache_recovery.py", "host/ssdrig/reading/filling.py"),
        ],
        "test_slc_cache test_slc_run test_review_says",
    ),
    "windows": (
        ["host/ssdrig/plan/rules/windows.py"],
        "test_steady test_rules_ends test_window_figures test_window_wa test_figures test_report_windows",
    ),
    "analysis": (
        [
            *("host/ssdrig/reading/*.py", "host/ssdrig/plan/rules/*.py"),
            *(f"host/ssdrig/load/{name}.py" for name in ("fiolog", "fioseconds", "fiostatus")),
        ],
        "test_steady test_window_figures test_analysis_smart test_analysis_load test_analysis_power"
        " test_analysis_events test_fiolog_windows test_fiolog_limits test_fiolog test_fiotext test_forged_fio"
        " test_figures test_window test_analysis test_rails test_report_rails test_torn test_wall test_witness"
        " test_set_up test_own_report test_sleep_states test_quiet test_minutes test_verdict test_table test_damage",
    ),
    "lake": (
        [
            f"host/ssdrig/publish/lake/{name}.py"
            for name in ("schema", "rows", "seconds", "sampling", "read", "write", "place")
        ],
        "test_lake_schema test_lake_rows test_lake_labels test_lake_seconds test_lake",
    ),
    "tail": (["host/ssdrig/serve/tail.py"], "test_browser_tail"),
}
SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    area: str
    path: str
    line: int
    what: str
    before: str
    after: str
    text: str  # the whole mutated file


def candidates(source: str) -> list[tuple[ast.AST, str]]:
    """(node, kind of change) of every place that can be broken; words for people and type hints are left alone."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.JoinedStr, ast.Assert)) or (
            isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        ):
            skipped |= {id(child) for child in ast.walk(node)} - {id(node)}
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if hint is not None:
                skipped |= {id(child) for child in ast.walk(hint)}
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "say",
            "show",
            "print",
            "append",
            "fit",
            "const",
            "namedtuple",
            "dataclass",
            "field",
            "lru_cache",
        ):
            if any(isinstance(a, (ast.JoinedStr, ast.Constant)) for a in node.args):
                skipped |= {id(child) for child in ast.walk(node)} - {id(node)}
    nodes: list[tuple[ast.AST, str]] = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            nodes.append((node, "compare"))
        elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in SWAPS:
            nodes.append((node, "operator"))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            nodes.append((node, "not"))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and hasattr(node, "lineno"):
            nodes.append((node, "constant"))
        elif isinstance(node, (ast.If, ast.IfExp)):
            nodes.append((node, "condition"))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            nodes.append((node, "lost call"))
        elif isinstance(node, ast.Raise):
            nodes.append((node, "lost raise"))
    return nodes


def mutated(source: str, node: ast.AST, kind: str) -> tuple[str, str, str]:
    """The source with one node changed, and that node before and after. Only the node's own text is replaced, so the
    rest, comments and MicroPython's decorators included, stays byte for byte."""
    lines = source.encode().split(b"\n")
    start = sum(len(line) + 1 for line in lines[: node.lineno - 1]) + node.col_offset
    end = sum(len(line) + 1 for line in lines[: node.end_lineno - 1]) + node.end_col_offset
    if kind == "condition":
        start = sum(len(line) + 1 for line in lines[: node.test.lineno - 1]) + node.test.col_offset
        end = sum(len(line) + 1 for line in lines[: node.test.end_lineno - 1]) + node.test.end_col_offset
    before = source.encode()[start:end].decode()
    if kind == "compare":
        node.ops[0] = SWAPS[type(node.ops[0])]()
        after = f"({ast.unparse(node)})"
    elif kind == "operator":
        node.op = SWAPS[type(node.op)]()
        after = ast.unparse(node) if isinstance(node, ast.AugAssign) else f"({ast.unparse(node)})"
    elif kind == "not":
        after = f"({ast.unparse(node.operand)})"
    elif kind == "constant":
        after = repr(node.value + 1)
    elif kind == "condition":
        after = f"(not ({before}))"
    else:
        after = "pass"
    text = source.encode()
    return (text[:start] + after.encode() + text[end:]).decode(), before, after


def choose(count: int, seed: int, only: str) -> list[Mutant]:
    """`count` mutants, drawn without repetition, each area with the same share."""
    chance, chosen = random.Random(seed), []
    areas = [name for name in AREAS if only in name or any(only in f for f in AREAS[name][0])]
    for area in areas:
        pool = []
        for path in files_of(area):
            name = str(path.relative_to(ROOT))
            if only in area or only in name:
                source = path.read_text()
                pool += [(name, source, i) for i in range(len(candidates(source)))]
        chance.shuffle(pool)
        for name, source, i in pool[: -(-count // len(areas))]:
            node, kind = candidates(source)[i]
            text, before, after = mutated(source, node, kind)
            chosen.append(Mutant(area, name, node.lineno, kind, before, after, text))
    return chosen


def files_of(area: str) -> list[Path]:
    """The files whose code is broken. Raises ValueError where one is not there (any more)."""
    files = []
    for pattern in AREAS[area][0]:
        matches = sorted(ROOT.glob(pattern))
        if not matches:
            raise ValueError(f"{area}: no file {pattern}")
        files += matches
    return files


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """What a copy of the tree has no use for; runs/ at the top is the user's."""
    useless = shutil.ignore_patterns(".git", "__pycache__")(folder, names)
    return useless | ({"runs"} if Path(folder) == ROOT else set())


def tests_of(area: str, tree: Path) -> list[str]:
    """Files of the area's tests, in order; a word also stands for the files that begin with it and an underscore.
    Raises ValueError for a word that stands for none: its mutants would survive for want of a test that was renamed."""
    tests: dict[str, None] = {}
    for word in AREAS[area][1].split():
        matches = [*sorted(tree.glob(f"tests/*/{word}.py")), *sorted(tree.glob(f"tests/*/{word}_*.py"))]
        if not matches:
            raise ValueError(f"{area}: no test {word}")
        tests |= dict.fromkeys(str(p.relative_to(tree)) for p in matches)
    return list(tests)


def verdict(mutant: Mutant | None, area: str, tree: Path, limit_s: float) -> tuple[str, float]:
    """("killed" | "survived" | "hung", seconds) of one mutant in its own copy of the tree; None: the code as it is."""
    began = time.monotonic()
    path = tree / mutant.path if mutant else None
    if path:
        path.write_text(mutant.text)
    try:
        argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
        environment = os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": str(tree / "h")}
        done = subprocess.run(
            [*argv, *tests_of(area, tree)], cwd=tree, env=environment, capture_output=True, text=True, timeout=limit_s
        )
        if mutant is None and done.returncode:
            print(done.stdout[-3000:])
        word = "killed" if done.returncode else "survived"
    except subprocess.TimeoutExpired:
        word = "hung"
    finally:
        if path:
            path.write_bytes((ROOT / mutant.path).read_bytes())
    return word, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="an area, or a part of a path")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument(
        "--out", type=Path, help="append one JSON line for each mutant; those in there are not run again"
    )
    args = parser.parse_args()
    mutants = choose(args.count, args.seed, args.only)
    seen = {}
    if args.out and args.out.exists():
        seen = {tuple(r["key"]): r["verdict"] for r in map(json.loads, args.out.read_text().splitlines())}
    words: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutants-", dir="/var/tmp") as folder:
        trees = [Path(folder, str(i)) for i in range(args.jobs)]
        for tree in trees if not args.list else []:
            shutil.copytree(ROOT, tree, symlinks=True, ignore=_not_copied)
        limits_s = {}
        for area in sorted({m.area for m in mutants}) if not args.list else []:
            word, took_s = verdict(None, area, trees[0], 10 * LIMIT_S)
            limits_s[area] = max(LIMIT_S, SLOWER * took_s)
            print(f"{area}: unchanged code {'passes' if word == 'survived' else 'FAILS'} in {took_s:.0f} s", flush=True)
            if word != "survived":
                return 1

        def judge(number: int, mutant: Mutant) -> str:
            key = (mutant.path, mutant.line, mutant.before, mutant.after)
            if args.list or key in seen:
                word, took_s = seen.get(key, "listed"), 0.0
            else:
                tree = trees.pop()
                word, took_s = verdict(mutant, mutant.area, tree, limits_s[mutant.area])
                trees.append(tree)
                if args.out:
                    with open(args.out, "a") as file:
                        file.write(json.dumps({"key": key, "area": mutant.area, "verdict": word}) + "\n")
            if word != "killed":
                print(
                    f"{number:3} {word} {mutant.path}:{mutant.line}: {mutant.before!r} -> {mutant.after!r}", flush=True
                )
            return word

        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            words = list(pool.map(judge, range(len(mutants)), mutants))
    if args.list:
        return 0
    survived = words.count("survived")
    hung = words.count("hung")
    print(f"{len(words)} mutants, {len(words) - survived} killed ({hung} of them hung), {survived} survived")
    return int(survived > 0.05 * len(words))


if __name__ == "__main__":
    sys.exit(main())
