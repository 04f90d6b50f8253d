"""The judge of power-loss tests: its verdict against two references, its mutants, its speed."""

import itertools
import random
import time
from pathlib import Path
from types import ModuleType

import numpy as np

from selfcheck import Figure, at_least, exactly, in_turn, powerloss_machine, powerloss_scenes
from selfcheck.powerloss_scenes import KEPT, Checker
from ssdrig.powerloss import promise, record, verdict
from ssdrig.powerloss.history import FLUSH, FUA, ROW, WRITE

SEARCHED, BY_SETS, OF_MUTANTS = 20_000, 100_000, 400
MOST_SEARCHED, MOST_BY_SETS = 4, 8  # commands of a history
DATA_BYTES = 64 << 20
DATA_GB = DATA_BYTES / 1e9
COMMANDS = 100_000
TRIES = 5

# what is broken -> (module, text, what stands there instead)
MUTANTS = {
    "R1 off": ("verdict", "min(session.on_ns, *session.glitches_ns, NEVER)", "min(*session.glitches_ns, NEVER, NEVER)"),
    "R2 off": ("verdict", "session.settled_ns is None or session.settled_ns > session.verify_ns", "False"),
    "R3 off": ("verdict", "min(session.on_ns, *session.glitches_ns, NEVER)", "session.on_ns"),
    "F*: < for <=": ("verdict", 'rows["done_ns"] <= (flushes', 'rows["done_ns"] < (flushes'),
    "F*: the first FLUSH": ("verdict", "flushes.max()", "flushes.min()"),
    "D_b: > for >=": ("verdict", "seen_ns >= least_ns", "seen_ns > least_ns"),
    "FUA ignored": ("verdict", '(lasting | (rows["flags"] & FUA > 0))', "lasting"),
    "a failed command counts": ("verdict", '(session.rows["status"] == 0) & ', ""),
    "base not updated": ("verdict", "np.where(lost, record.UNKNOWN", "np.where(False, record.UNKNOWN"),
    "trim durable at once": ("verdict", '(rows["kind"] == BLANK) & lasting', '(rows["kind"] >= TRIM) & lasting'),
    "reads as trimmed ignored": ("verdict", '(rows["kind"] == BLANK) & lasting', "~counted"),
    "zeros read make zeros older": ("verdict", " & ~((pair_kind == BLANK) & blank[block])", ""),
    "trimmed blocks must be what they were": (
        "verdict",
        "(pair_kind == TRIM) & may_be",
        "(pair_kind > BLANK) & may_be",
    ),
    "trimmed blocks may be anything for ever": ("verdict", "(pair_kind == TRIM) & may_be", "(pair_kind == TRIM)"),
    "ignored trims accused": ("verdict", " and not ignores_trims", ""),
    "blocks are whole where nobody says so": ("verdict", "if not promise.atomic_blocks:", "if False:"),
    "a torn block's parts are not looked at": ("verdict", "np.maximum.at(out, at[bad], finding[bad])", "pass"),
    "a trim is forgotten at its next reading": ("verdict", "| (blocks.trimmed & free)", ""),
    "a trim lasts beyond a durable write": ("verdict", "(blocks.trimmed & free)", "blocks.trimmed"),
    "a trimmed block may turn to anything": ("verdict", "legal |= trimmed & blank", "legal |= trimmed"),
    "atomic test off": ("verdict", "(n >= 2) & (n <=", "(n >= 2) & (0 * n >"),
    "a completed write in the cache must be whole": ("verdict", "torn[counted[torn_row[torn]]]", "torn[:0]"),
    "a sector under way must be readable": ("verdict", "if promise.sector_blocks:", "if False:"),
    "a sector with durable data need not be readable": ("verdict", "(kind == WRITE) & ~lasting]", "(kind == WRITE)]"),
    "short trims must be executed": ("verdict", ">= _least_trim(rows)", "> 0"),
    "atomic boundary ignored": ("verdict", "if promise.boundary_blocks:", "if False:"),
    "atomic limit off by one": ("promise", "limit + 1", "limit"),
    "boundary off by one": ("promise", "boundary + 1 if", "boundary if"),
    "torn test off": ("record", "(parts != whole[:, None]).any(axis=1)", "[]"),
}


def mutated(name: str) -> Checker:
    """The checker with one of MUTANTS. Raises ValueError where its text does not stand exactly once in the module."""
    of, old, new = MUTANTS[name]
    module = {"record": record, "promise": promise, "verdict": verdict}[of]
    path = str(module.__file__)
    source = Path(path).read_text()
    if source.count(old) != 1:
        raise ValueError(f"mutant {name!r}: {old!r} stands {source.count(old)} times in {path}")
    broken = ModuleType(module.__name__)
    broken.__file__ = path
    exec(compile(source.replace(old, new), path, "exec"), broken.__dict__)
    return Checker()._replace(**{of: broken})


def wrong(checker: Checker, histories: int = OF_MUTANTS) -> int:
    """In how many scenes and random histories the checker is not right."""
    scenes = sum(
        powerloss_scenes.judged(scene, checker) != powerloss_scenes.expected(scene) for scene in powerloss_scenes.SCENES
    )
    scenes += powerloss_scenes.two_cuts(checker) != powerloss_scenes.TWO_CUTS
    scenes += checker.promise.nvme(*powerloss_scenes.pages(), True)[:7] != KEPT[:7]
    return scenes + differences(histories, checker.verdict)


def differences(histories: int, checker: ModuleType = verdict, seed: int = 1) -> int:
    """Random histories on which verdict and the definition by sets differ."""
    chance = random.Random(seed)
    count = 0
    for _ in range(histories):
        history = powerloss_machine.drawn(chance, MOST_BY_SETS)
        count += powerloss_machine.judged(history, checker) != powerloss_machine.by_sets(history)
    return count


def searched(histories: int, seed: int = 2) -> tuple[int, int, int]:
    """(random histories that the machine can show, their images, histories on which verdict and machine differ)."""
    chance = random.Random(seed)
    shown = images = differ = 0
    while shown < histories:
        history = powerloss_machine.drawn(chance, MOST_SEARCHED)
        images_searched = powerloss_machine.searched(history)
        if images_searched:
            shown, images = shown + 1, images + len(images_searched)
            differ += set(itertools.product(*powerloss_machine.judged(history))) != images_searched
    return shown, images, differ


def against_references() -> list[Figure]:
    counts = np.array([searched(SEARCHED // 20, seed) for seed in in_turn(range(20), "powerloss-verdict")]).sum(axis=0)
    differ = sum(differences(BY_SETS // 20, seed=seed) for seed in in_turn(range(20), "powerloss-verdict"))
    return [
        at_least("random histories against a searched machine", counts[0], "histories", SEARCHED),
        Figure("images that the machine can show", float(counts[1]), "images", "for comparison", True),
        exactly("of these histories, verdicts that differ", counts[2], "histories", 0),
        exactly(f"verdicts that differ from the sets, of {BY_SETS}", differ, "histories", 0),
    ]


def mutants() -> list[Figure]:
    return [
        exactly("scenes and histories where the checker is wrong", wrong(Checker()), "cases", 0),
        *(at_least(f"the same with: {name}", wrong(mutated(name)), "cases", 1) for name in MUTANTS),
    ]


def speed() -> list[Figure]:
    """CPU time, the fastest of a few tries: what else runs on the machine can only add to it."""
    data = np.zeros(DATA_BYTES, np.uint8)
    one = 1 << 20
    fill = lambda: [record.fill(data[at : at + one], 7, 1 + at // one, at // 512) for at in range(0, DATA_BYTES, one)]
    lba512 = np.arange(DATA_BYTES // 4096) * 8
    session, blocks = large(COMMANDS)
    return [
        Figure("records stamped", DATA_GB / _cpu_s(fill), "GB/s", "for comparison", True),
        at_least(
            "blocks of 4 KiB classified", DATA_GB / _cpu_s(lambda: record.classify(data, 7, lba512, 4096)), "GB/s", 4
        ),
        Figure(
            f"verdict on {COMMANDS} commands",
            _cpu_s(lambda: verdict.judge(session, blocks, KEPT)) * 1e3,
            "ms",
            "for comparison",
            True,
        ),
    ]


def large(commands: int) -> tuple[verdict.Session, verdict.Blocks]:
    """A session of 4 KiB writes at random over 1 GiB, 32 of them under way at each time, one in eight with FUA, one in
    sixteen a FLUSH; each block shows what was written last."""
    chance = np.random.default_rng(1)
    rows = np.zeros(commands, ROW)
    rows["seq"] = np.arange(1, commands + 1)
    rows["lba"], rows["n"], rows["kind"] = chance.integers(0, 1 << 18, commands), 1, WRITE
    rows["flags"] = FUA * (chance.random(commands) < 1 / 8)
    rows["kind"][chance.random(commands) < 1 / 16] = FLUSH
    rows["submit_ns"] = np.arange(commands) * 20_000
    rows["done_ns"] = rows["submit_ns"] + 31 * 20_000
    writes = rows[rows["kind"] == WRITE]
    lba, last = np.unique(writes["lba"][::-1].astype(np.int64), return_index=True)
    seen = writes["seq"][::-1][last].astype(np.int64)
    end_ns = int(rows["done_ns"][-1])
    times = (end_ns, end_ns + 10**9, end_ns + 10**9, end_ns + 2 * 10**9)
    return verdict.Session(rows, *times), verdict.Blocks(lba, np.zeros_like(lba), seen, np.zeros(len(lba), bool))


def _cpu_s(call) -> float:
    call()
    took_s = []
    for _ in range(TRIES):
        began = time.process_time()
        call()
        took_s.append(time.process_time() - began)
    return min(took_s)


BENCHES = {
    "powerloss-verdict": ("the verdict after a cut against a searched machine and against sets", against_references),
    "powerloss-mutants": ("broken judges of power loss, each of which must be noticed", mutants),
    "powerloss-speed": ("stamping and classifying records, and the verdict on a long session", speed),
}
