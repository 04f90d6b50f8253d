"""Reviews of made-up drives in no time: every plan of TESTED carried out with loads whose rates follow from one number,
the speed of the drive. For the page of a review with a library of several drives."""

import itertools
import json
import random
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import synthetic_run
from synthetic_plan import DRIVE, Writer
from synthetic_pts import document, steady_load

from ssdrig import cli
from ssdrig.plan import expand, grammar, reviews
from ssdrig.plan.rules import ends
from ssdrig.report import review_page
from ssdrig.runs import parts

CAPACITY_BYTES = 64 << 20  # a load of a minute is past its spare area
SECOND_NS = 1_000_000_000
# plans of the review: its entry, sets at the variant `quick`
TESTED = {
    "consistency": {},
    "consistency op25": {"range": "raw 75 %"},
    "pts-tp": {"most": "5"},
    "pts-lat": {"most": "5"},
    "qd-sweep": {},
    "bs-sweep": {},
    "mix-sweep": {},
    "sync-write": {},
    "load-line": {},
    "background": {},
    "four-states": {},
}
WHOLE = MappingProxyType({"reads": 4.0, "sequential": 6.0, "fresh": 3.0})  # times the random writes of a full drive


class Made(NamedTuple):
    """A drive: IOPS of random writes when it is full, W when it works and when it rests, how often NAND is written."""

    model: str
    iops: int
    work_W: float = 2.5
    rest_W: float = 0.4
    wa: float = 3.0
    price: str | None = None


SIX = tuple(
    Made(f"SIMULATED drive {name}", iops, watts, rest, wa, f"{price} USD")
    for name, iops, watts, rest, wa, price in (
        ("Alpha 1TB", 9_000, 2.5, 0.40, 3.4, 79),
        ("Bravo 1TB", 9_040, 2.1, 0.30, 3.4, 75),
        ("Charlie 2TB", 14_000, 3.4, 0.55, 2.8, 129),
        ("Delta 1TB", 6_200, 1.9, 0.25, 4.1, 59),
        ("Echo 4TB", 21_000, 4.8, 0.90, 2.2, 289),
        ("Foxtrot enterprise 1TB", 30_000, 6.5, 1.60, 1.6, 310),
    )
)

PUBLICATION = """title = "Alpha 1TB"
summary = "It is small."
pros = ["Steady at the end", "Low idle power"]
cons = ["Slow among its neighbours"]
conclusion = "Buy it."
[specification]
Controller = "E18"
NAND = "176-layer TLC"
DRAM = "1 GB DDR4"
"Form factor" = "M.2 2280"
Warranty = "5 years"
[test_system]
Mainboard = "A. Board 1"
"Ambient temperature" = "23 °C"
[price]
"SIMULATED drive Alpha 1TB" = "79 USD"
"""


class Carried(Writer):
    """One plan on one drive, each step in order."""

    def __init__(self, folder: Path, name: str, of: Made, sets: dict, review: str | None, utc_s: int, busy=False):
        plan = name.split()[0]
        text, where = grammar.find(plan)
        variant = "quick" if "quick" in grammar.read(text, where).variants else None
        read = grammar.read(text, where, variant, sets)
        self.of, self.dice, self.busy = of, random.Random(f"{of.model} {name}"), busy
        self.drive = DRIVE | {"model": of.model, "capacity_bytes": CAPACITY_BYTES, "raw_nand_bytes": 76 << 20}
        self.drive |= {"rated_write_bytes": CAPACITY_BYTES * 600}
        tested = 57 << 20 if "op25" in name else CAPACITY_BYTES
        header = {
            "plan": {"name": plan, "variant": variant, "scaled": variant == "quick"}
            | {"params": read.params, "text": text, "acts": []},
            "method": {"name": plan, "seed": 1, "tested_bytes": tested, "op_percent": 25 if "op25" in name else None},
            "drive": self.drive,
        }
        header |= {"review": {"folder": folder.name, "plan": review}} if review else {}
        slug = f"{name} {of.model.split(' drive ')[-1]}".replace(" ", "-").lower()
        super().__init__(folder, text, variant, name=slug, utc_ns=utc_s * SECOND_NS, more=header)
        self.plan = grammar.of_run(header["plan"], where)
        self.acts = expand.expand(self.plan, self.drive, frozenset(grammar.CAPABILITIES))
        groups = [list(group) for _, group in itertools.groupby(self.acts, key=lambda act: act.repeat)]
        self.number_of = {act.label: number for group in groups for number, act in enumerate(group, 1)}
        self.faster = 1.9 if "op25" in name else 1.0
        self.host_bytes, self.nand_bytes = 1 << 40, 2 << 40

    def rate(self, act, round_: int | None) -> int:
        """I/Os a second of an act."""
        keys = keys_of(act)
        block = sum(size * percent / 100 for size, percent in keys["block"])
        share = keys["read"] / 100
        rate = self.of.iops * self.faster * (share * WHOLE["reads"] + 1 - share)
        rate *= min(1.0, (4096 / block) ** 0.9) if block > 4096 else 1.0
        rate *= WHOLE["sequential"] if keys["pattern"] == "sequential" else 1.0
        rate *= min(1.0, (keys["qd"] * keys["threads"] / 16) ** 0.8)
        if act.path in ("fresh", "trimmed"):
            rate *= WHOLE["fresh"]
        if asked := keys.get("rate"):
            rate = min(rate, asked)
        return max(3, round(rate * (1 + self.dice.gauss(0, 0.004)) * (1.3 if round_ == 1 else 1.0)))

    def power_W(self, rate: int, act) -> float:
        full = self.of.iops * self.faster
        return self.of.rest_W + (self.of.work_W - self.of.rest_W) * min(1.0, 0.25 + 0.75 * min(1.0, rate / full))

    def all(self) -> Path:
        """The run folder."""
        seen: dict[str, list[float]] = {}
        left = list(self.acts)
        while left:
            act = left.pop(0)
            if act.repeat is None:
                self.carry_out(act, None)
                continue
            group = [act] + [other for other in left if other.repeat == act.repeat]
            left = [other for other in left if other.repeat != act.repeat]
            rounds = min(act.repeat.most, 5) if act.repeat.ruled else act.repeat.most
            for number in range(1, rounds + 1):
                for one in group:
                    self.carry_out(one, number)
                tracked = {words: [] for entry in act.repeat.until for words in entry.track or ()}
                for words in tracked:
                    seen.setdefault(words, []).append(1000.0 + self.dice.random())
                if tracked:
                    verdicts = ends.tracked({words: seen[words] for words in tracked})
                    passed = all(verdict["passed"] for verdict in verdicts.values())
                    self.event("round", step=act.repeat.path, round=number, steady=passed, tracked=verdicts)
        return self.end()

    def carry_out(self, act, round_: int | None) -> None:
        if act.not_run:
            self.not_run(act.label, act.not_run)
        elif act.do in ("load", "fill"):
            self.one_load(act, round_)
        elif act.do == "idle":
            self.step(act.path, 12, self.of.rest_W, **({"round": round_} if round_ else {}))
            if act.keys.get("until") == "quiet":
                event = {"reached": True, "after_s": 4.0, "floor_W": self.of.rest_W, "floor_error_W": 0.002}
                event |= {"above_J": 1.5, "above_error_J": 0.02, "lasted_s": 12, "band_W": 0.01, "why": None}
                event |= {"nand_written_bytes": 0, "host_written_bytes": 0, "nand_why": None}
                self.event("quiet", step=act.path, **event)
        else:
            self.step(act.path, 0.5, 1.0, method="format") if act.do == "purge" else self.step(act.path, 0.2, 1.0)

    def one_load(self, act, round_: int | None) -> None:
        """Its counts by the second: with a cliff where the plan is the consistency test."""
        rate = self.rate(act, round_)
        counts = [rate] * 3
        if act.path == "load":
            counts = [rate * 4] * 8 + [rate] * 52
        if act.path == "histogram":
            counts = [rate] * 8
        counts = [max(2, round(count * (1 + self.dice.gauss(0, 0.02)))) for count in counts]
        keys = keys_of(act)
        block = round(sum(size * percent / 100 for size, percent in keys["block"]))
        moved = sum(counts) * block * (1 - keys["read"] / 100)
        polled = round_ is None and moved
        if polled:
            self.poll("before", self.host_bytes, self.nand_bytes)
        round_of = {"round": round_} if round_ else {}
        lat_ns = round(keys["qd"] * keys["threads"] * 1e9 * len(counts) / sum(counts))
        folder = act.folder(round_, self.number_of[act.label])
        more = {"fio": folder} | round_of | ({"point": dict(act.point)} if act.point else {})
        if round_ is None and keys["read"] == 0 and not act.point:
            self.load(act.path, counts, self.power_W(rate, act), block, lat_ns, folder)
        else:
            self.short(act, counts, folder, more, rate)
        if self.busy:  # another delay at each load, as a host with other work has it
            late = {"answers": sum(counts), "late_us": self.dice.uniform(50, 2000), "service_us": 100.0}
            self.event("witness", step=act.path, label=act.label, answers=late, **round_of)
        self.host_bytes += round(moved)
        self.nand_bytes += round(moved * (1.0 if act.do == "fill" else self.of.wa))
        if polled:
            self.poll("after", self.host_bytes, self.nand_bytes)

    def short(self, act, counts, folder: str, more: dict, rate: int) -> None:
        """As synthetic_pts.Run.does."""
        put = steady_load(rate, self.power_W(rate, act), keys_of(act), len(counts), cpu=10.0)
        self.event("step.start", **{"laid": synthetic_run.USED_UP} | more, step=act.path)
        self.t_ns += 50_000_000
        self._power(put.watts[0])
        self.t_ns += 50_000_000
        path = self.path / "fio" / folder
        path.mkdir(parents=True)
        (path / "start.json").write_text(json.dumps({"t_ns": self.t_ns, "utc_ns": self.t_ns}))
        lines = [document(put, s, keys_of(act)["threads"], self.t_ns, s == put.seconds - 1) for s in range(put.seconds)]
        (path / "out.json").write_text("\n".join(lines) + "\n")
        self.t_ns += put.seconds * SECOND_NS
        self._power(self.of.rest_W)
        self.event("step.end", step=act.path, ok=True, bytes=round(put.ios * put.block), **more)
        self.t_ns += 100_000_000


def keys_of(act) -> dict:
    """The keys of a load; a fill is one of sequential writes."""
    if act.do == "load":
        return act.keys
    return {"pattern": "sequential", "read": 0, "threads": 1, "block": ((act.keys["block"], 100),)} | {
        "qd": act.keys["qd"]
    }


def review(base: Path, of: Made, tested=TESTED, utc_s: int = 1_700_000_000, busy=()) -> Path:
    """The folder of a review of a drive. `busy`: the plans of `tested` during which the host was."""
    name = f"20261122T180000Z-review-{of.model.split(' drive ')[-1].replace(' ', '-').lower()}-0001"
    folder = base / name
    folder.mkdir(parents=True)
    whys = {entry.name: None if entry.name in tested else "left out here" for entry in reviews.entries()}
    plans = [
        {"name": e.name, "plan": e.plan, "variant": "quick", "sets": {}, "seed": 1, "why": whys[e.name]}
        for e in reviews.entries()
    ]
    drive = DRIVE | {"model": of.model, "capacity_bytes": CAPACITY_BYTES, "raw_nand_bytes": 76 << 20}
    whole = {"schema": 1, "review": name, "level": "standard", "options": {}, "budget_bytes": None, "plans": plans}
    whole |= {"drive": drive, "rated_bytes": CAPACITY_BYTES * 600.0}
    (folder / parts.REVIEW).write_text(json.dumps(whole))
    if of.price:
        (folder / "review.toml").write_text(f'[price]\n"{of.model}" = "{of.price}"\n')
    for i, (entry, sets) in enumerate(tested.items()):
        Carried(folder, entry, of, sets, entry, utc_s + 100 * i, entry in busy).all()
    return folder


def page_of(base: Path, drives=SIX) -> Path:
    """The page of a review of the first drive, with the reviews of the others as files of other houses."""
    for i, of in enumerate(drives):
        folder = review(base / f"house-{i}" if i else base / "runs", of)
        if not i:
            own = folder
            (own / "review.toml").write_text(PUBLICATION)
            continue
        file = base / f"{i - 1}.ssdlib"
        assert cli.main(["library", "export", str(folder), "-o", str(file)]) == 0
        assert cli.main(["library", "import", str(file), "--runs", str(base / "runs")]) == 0
        assert file.stat().st_size < 400_000
    out = base / "review.html"
    review_page.write(own, None, out)
    return out
