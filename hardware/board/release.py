"""Makes from the sources what a person orders and builds by: `./ssdrig hardware release`.

Each step is a function of (the project's folder, where its results go). Nothing is written where sources, netlist and
board do not agree, where KiCad's rule checks have anything to say, or where a part has no manufacturer's number or no
dated price. Dates are taken out of what KiCad writes, so that the same sources give the same bytes, but for
the pictures."""

import contextlib
import csv
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import circuit
import draw
import export
import fill
import footprints
import layout
import models
import place
from draw import NAME

from ssdrig.base import child_cpu
from ssdrig.base.words import counted
from ssdrig.setup import kicad

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "guide"))
import bill as bill_page

FOLDER = layout.FOLDER
FABS = sorted((Path(__file__).resolve().parent / "fabs").glob("*.kicad_dru"))
INNER = "In1.Cu,In2.Cu," if place.LAYERS == 4 else ""
LAYERS = f"F.Cu,{INNER}B.Cu,F.Mask,B.Mask,F.Paste,F.SilkS,B.SilkS,Edge.Cuts"
THEN = (1980, 1, 1, 0, 0, 0)  # of a file in an archive
DATES = (  # in what KiCad writes: (pattern, instead)
    (rb"%TF\.CreationDate,[^*]*\*%", b"%TF.CreationDate,1980-01-01T00:00:00+00:00*%"),
    (rb"(G04 Created by KiCad \([^)]*\) date )[^*]*\*", rb"\g<1>1980-01-01 00:00:00*"),
    (rb"; DRILL file \{KiCad [^}]*\} date \S+", b"; DRILL file {KiCad}"),
    (rb"; #@! TF\.CreationDate,\S+", b"; #@! TF.CreationDate,1980-01-01T00:00:00+00:00"),
    (rb'"CreationDate": *"[^"]*"', b'"CreationDate": "1980-01-01T00:00:00+00:00"'),
    (rb"(FILE_NAME\('[^']*',')[^']*'", rb"\g<1>1980-01-01T00:00:00'"),
    (rb"/CreationDate \(D:\d+", lambda m: b"/CreationDate (D:" + b"0" * (len(m[0]) - 17)),
)
ZOOM = str(1.5 * min(1, place.WIDTH / place.HEIGHT / 1.5))  # a board that is higher than the picture still fits
VIEWS = {  # pictures: options of `pcb render`
    "top": ("--side", "top", "--zoom", ZOOM),
    "bottom": ("--side", "bottom", "--zoom", ZOOM),
    "slanted": ("--perspective", "--rotate", "'-40,0,15'", "--zoom", "1.3"),
}


class NotReleased(Exception):
    """What keeps the release back, as a person can mend it."""


def stale():
    """Files that their sources would make otherwise."""
    made = draw.files() | layout.library() | {f"{NAME}.kicad_pcb": layout.board(fill.filled())}
    outdated = [name for name, text in made.items() if (FOLDER / name).read_text() != text]
    source = {}
    for part in circuit.PARTS:
        for pin, net in part.nets.items():
            if net and not part.ref.startswith("#"):
                source.setdefault(net, set()).add((part.ref, pin))
    same = export.connections((FOLDER / f"{NAME}.net").read_text()) == source
    return outdated + ([] if same else [f"{NAME}.net"])


def ran(*arguments):
    done = export.kicad(*arguments)
    if done.returncode:
        raise NotReleased(f"kicad-cli {' '.join(map(str, arguments[:3]))}: {done.stdout[-500:]}{done.stderr[-500:]}")


def undated(path):
    content = path.read_bytes()
    for pattern, instead in DATES:
        content = re.sub(pattern, instead, content)
    path.write_bytes(content)


def checked(project, out):
    """ERC, DRC with schematic parity, and the rules of each manufacturer: the reports, or NotReleased."""
    reports = []
    ok, report = export.rule_check(project / f"{NAME}.kicad_sch", project / "erc.txt")
    reports.append(("schematic", ok, report))
    ok, report = fill.rule_check(project)
    reports.append(("layout", ok, report))
    for rules in FABS:
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary) / "project"
            shutil.copytree(project, copy)
            shutil.copy(rules, copy / f"{NAME}.kicad_dru")
            ok, report = fill.rule_check(copy)
        reports.append((rules.stem, ok, report))
    for name, ok, report in reports:
        if not ok or "Error" in report and "expression" in report.lower():
            raise NotReleased(f"the rule check of {name} has something to say:\n{report[-2000:]}")
    dated = re.compile(r"^\*\* Created on .*\n|^ERC report \([^)]*\)", re.M)
    text = "\n".join(f"== {name}\n{dated.sub('', report)}" for name, _, report in reports)
    (out / "rule-checks.txt").write_text(text.replace(str(project), "."))


def gerbers(project, out):
    """Copper, mask, paste, print, edge and holes, as one archive for the manufacturer."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pcb = project / f"{NAME}.kicad_pcb"
        ran("pcb", "export", "gerbers", "--layers", LAYERS, "-o", f"{folder}/", pcb)
        ran("pcb", "export", "drill", "--excellon-units", "mm", "--excellon-separate-th", "-o", f"{folder}/", pcb)
        for path in folder.glob("*.gbrjob"):
            path.write_text(json.dumps(job(json.loads(path.read_text()), folder), indent=1) + "\n")
        with zipfile.ZipFile(out / f"{NAME}-gerbers.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.iterdir()):
                undated(path)
                archive.writestr(zipfile.ZipInfo(path.name, THEN), path.read_bytes(), zipfile.ZIP_DEFLATED)


def job(settings, folder):
    """The job file with the layers that the gerbers in `folder` name themselves by: KiCad 9 numbers them L1, L5, L7,
    L4. The finish is the order's, not the file's."""
    settings.get("GeneralSpecs", {}).pop("Finish", None)
    for row in settings["FilesAttributes"]:
        (row["FileFunction"],) = re.findall(r"TF\.FileFunction,([^*]+)\*", (folder / row["Path"]).read_text())
    return settings


def placement(project, out):
    """Where the machine puts each SMD part, with the column names that JLCPCB reads."""
    raw = out / "placement.raw"
    words = ("--format", "csv", "--units", "mm", "--side", "front", "--smd-only")
    ran("pcb", "export", "pos", *words, "-o", raw, project / f"{NAME}.kicad_pcb")
    with open(raw, newline="") as file:
        rows = list(csv.DictReader(file))
    raw.unlink()
    with open(out / "placement.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("Designator", "Mid X", "Mid Y", "Layer", "Rotation"))
        for row in rows:
            side = {"top": "Top", "bottom": "Bottom"}[row["Side"]]
            writer.writerow((row["Ref"], f"{row['PosX']}mm", f"{row['PosY']}mm", side, row["Rot"]))


def bill():
    """The rows of bom.csv; what a row cut short does not say is empty."""
    with open(FOLDER / "bom.csv", newline="") as file:
        return list(csv.DictReader(file, restval=""))


BASES = ("listed", "decoded", "memory", "drawing")  # how a part's number is known: ../README.md, Building the board


def lacking(rows):
    """[(item, what it lacks)] of rows that nobody can order by: the manufacturer's number is the order number. What the
    machine places needs one that a list has, or that the maker's ordering code gives."""
    gaps = []
    for row in rows:
        refs = row["references"].split()
        placed = refs and machine_places(refs[0])
        # what a person at the fab reads beside the designators
        package = [] if row["package"] or not refs else ["package"]
        known = ("listed", "decoded") if placed else BASES
        wrong = [name for name in ("manufacturer", "part_number", "number_source", "price_source") if not row[name]]
        wrong += ["number_basis"] if row["number_basis"] not in known else []
        # JLCPCB's own number: none without the lists that it was read in, and a reason where there is none
        read = re.fullmatch(r"[1-9] public lists?, 20\d\d-[01]\d-[0-3]\d", row["lcsc_source"])
        wrong += ["lcsc"] if row["lcsc"] and not re.fullmatch(r"C\d{4,8}", row["lcsc"]) else []
        wrong += ["lcsc_source"] if not (read if row["lcsc"] else row["lcsc_source"].startswith("none: ")) else []
        wrong += ["price_basis"] if row["price_basis"] not in ("quoted", "estimate") else []
        wrong += ["price_date"] if not re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", row["price_date"]) else []
        wrong += ["unit_usd"] if not re.fullmatch(r"\d+\.\d\d", row["unit_usd"]) or not float(row["unit_usd"]) else []
        counted = row["quantity"] == str(len(refs)) if refs else re.fullmatch(r"[1-9]\d*", row["quantity"])
        wrong += [] if counted else ["quantity"]
        gaps += [(row["item"], name) for name in wrong + package]
    return gaps


# as PCBWay's template has them; Eurocircuits and others that go by the manufacturer's number read the same
ASSEMBLER = (
    "Item #,Designator,Qty,Manufacturer,Mfg Part #,Description / Value,Package/Footprint,Type,Your Instructions / Notes"
)


def by_number(rows):
    """The rows of each maker's number, in the order of the bill: one line to order by, whatever it is used for."""
    of = {}
    for row in rows:
        of.setdefault((row["manufacturer"], row["part_number"]), []).append(row)
    return list(of.values())


def placed_by_machine(rows):
    return [row for row in rows if row["references"] and machine_places(row["references"].split()[0])]


def assembler_rows(rows):
    """The bill for the assembler: what the machine places, a line for each manufacturer's number. JLCPCB's number where
    one is known."""
    for i, same in enumerate(by_number(placed_by_machine(rows)), 1):
        refs = [ref for row in same for ref in row["references"].split()]
        value = layout.PARTS[refs[0]].value
        items = ", ".join(row["item"] for row in same)
        what = items if value in items else f"{items}, {value}"
        notes = [note(row["alternative"]) for row in same]
        strictest = max(notes, key=lambda words: (words == ASK, "%" in words, len(words)))
        of = same[0]
        number = of["manufacturer"], of["part_number"]
        yield i, ",".join(refs), len(refs), *number, what, of["package"], "SMD", strictest, of["lcsc"]


ASK = "ask before you replace it"


def note(alternative):
    alike = alternative.startswith("any ") or "of any maker" in alternative
    return f"else: {alternative}" if alike else ASK


def order_lists(project, out):
    """The bill for the assembler, that of all, with what is bought elsewhere, and the same as a page with the board."""
    rows = bill()
    if MADE_BY_MACHINE:
        with open(out / "bom-assembler.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*ASSEMBLER.split(","), "LCSC Part #"])
            writer.writerows(assembler_rows(rows))
    shutil.copy(FOLDER / "bom.csv", out / "bom.csv")
    (out / "bom.html").write_text(bill_page.page(rows))
    (out / "order.md").write_text(order(rows))


def total_usd(rows):
    return sum(float(row["unit_usd"]) * int(row["quantity"]) for row in rows)


def order(rows):
    """What one fab and one assembler are sent, what is bought beside it, and what that costs; Markdown."""
    placed = placed_by_machine(rows)
    (board,) = [row for row in rows if row["number_basis"] == "drawing"]
    by_hand = by_number([row for row in rows if row not in placed and row is not board])
    quoted = total_usd([row for row in rows if row["price_basis"] == "quoted"])
    known, pieces = numbers(rows), sum(int(row["quantity"]) for row in placed)
    files = f"`{NAME}-gerbers.zip`, `{NAME}.d356` for its test"
    by_machine = f"{counted(len(by_number(placed)), 'number')}, {pieces} SMD parts, top side"
    dates = sorted(row["price_date"] for row in rows)
    lines = [
        f"# Order of the {circuit.ETCHED}, revision {circuit.REVISION}",
        "",
        f"Prices of one board in USD, without tax and shipping, of {dates[0]} to {dates[-1]}; the seller's own"
        " quotation is the first real one.",
        "",
        "| what | send | USD |",
        "|---|---|---|",
        f"| fab: {board['distributor']} | {files} | {total_usd([board]):.2f}, one of five |",
        *(
            []
            if not placed
            else [
                f"| assembler: PCBWay; {by_machine} | the same, `bom-assembler.csv`,"
                f" `placement.csv` | {total_usd(placed):.2f}, work not counted |"
            ]
        ),
        f"| by hand, below: {counted(len(by_hand), 'number')} | | {sum(map(total_usd, by_hand)):.2f} |",
        f"| **all** | | **{total_usd(rows):.2f}**, of it quoted {quoted:.2f} |",
        "",
        f"The board: {board['alternative']}.",
        *(
            ["An assembler asks for a set-up and a stencil, too, and for reels' ends: more of each than is placed."]
            * bool(placed)
        ),
        *circuit.ALSO,
        "",
        (
            f"{counted(len(rows), 'row')} in the bill, each with its maker's number: {known['listed']} seen in a public"
            f" list, {known['decoded']} from the ordering code, {known['memory']} from memory: check the latter at the"
            " seller before you pay."
        ),
        "",
        "| bought apart and soldered by hand | number | pieces | USD | where | else | number from |",
        "|---|---|---|---|---|---|---|",
        *map(by_hand_line, by_hand),
    ]
    return "\n".join(lines) + "\n"


def by_hand_line(same):
    """The line of what is bought by one number."""
    of = same[0]
    items, pieces = ", ".join(row["item"] for row in same), sum(int(row["quantity"]) for row in same)
    if all("cut in two" in row["alternative"] for row in same) and len(same) == 2:
        items, pieces = f"{items}: one cable, cut in two", 1
    cells = (
        *(items, f"{of['manufacturer']} {of['part_number']}", pieces, f"{total_usd(same):.2f}"),
        *(of["distributor"], of["alternative"], of["number_basis"]),
    )
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def shape_of(ref):
    return footprints.footprint(layout.PARTS[ref])


def machine_places(ref):
    return all(pad.kind == footprints.SMD for pad in shape_of(ref).pads if pad.number)


def numbers(rows):
    """{how the number is known: kinds}."""
    return {basis: sum(row["number_basis"] == basis for row in rows) for basis in BASES}


def at_jlcpcb(rows):
    """(numbers that the machine places, with JLCPCB's number, with one that two lists or more agree on)."""
    placed = [same[0] for same in by_number(placed_by_machine(rows))]
    named = [row for row in placed if row["lcsc"]]
    return len(placed), len(named), sum(row["lcsc_source"][0] > "1" for row in named)


def schematic(project, out):
    ran("sch", "export", "pdf", "-o", out / "schematic.pdf", project / f"{NAME}.kicad_sch")
    undated(out / "schematic.pdf")
    shutil.copy(FOLDER / f"{NAME}.net", out)


def step(project, out):
    """The board itself as STEP, with its holes: parts have no STEP models here."""
    ran("pcb", "export", "step", "--force", "-o", out / f"{NAME}-board.step", project / f"{NAME}.kicad_pcb")
    undated(out / f"{NAME}-board.step")


def tied():
    """{net: the net that a strip of copper joins it to, until somebody cuts it}, with KiCad's names."""
    by_net = {}
    for ref, part in layout.PARTS.items():
        for one, other in shape_of(ref).ties:
            by_net[layout.net_name(part, other)] = layout.net_name(part, one)
    return by_net


def netlist_for_the_test(project, out):
    """IPC-D-356: by it the manufacturer tests each net of the bare board. What a strip joins is one net there: KiCad
    writes two, and the tester would call them a short."""
    path = out / f"{NAME}.d356"
    ran("pcb", "export", "ipcd356", "-o", path, project / f"{NAME}.kicad_pcb")
    undated(path)
    path.write_text(joined_nets(path.read_text(), tied()))


def joined_nets(text, ties):
    """An IPC-D-356 netlist with the first net's name (14 characters) at the points of both."""
    lines = text.splitlines(keepends=True)
    at = {one[:14].ljust(14): other[:14].ljust(14) for one, other in ties.items()}
    return "".join(f"{line[:3]}{at.get(line[3:17], line[3:17])}{line[17:]}" for line in lines)


def pictures(project, out):
    """Renders with parts as boxes of their size (models.py)."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shapes = {shape.name: shape for shape in map(footprints.footprint, layout.PARTS.values())}
        pcb = folder / f"{NAME}.kicad_pcb"
        pcb.write_text(models.equipped((project / f"{NAME}.kicad_pcb").read_text(), folder, shapes.values()))
        argv, own = kicad.renderer(folder / "kicad")
        environment = os.environ | own | {"HOME": temporary, "KICAD_CONFIG_HOME": temporary}
        for name, how in VIEWS.items():
            picture = out / f"{NAME}-{name}.png"
            words = ["pcb", "render", "-o", str(picture), "-w", "1600", "-h", "1000", "--background", "opaque", *how]
            done = child_cpu.output([*argv, *words, str(pcb)], env=environment)
            if done.returncode or not picture.exists():
                raise NotReleased(f"the picture {name}: {done.stdout[-300:]}{done.stderr[-300:]}")


def printed_case(project, out):
    """Base and lid, as the tests hold them against the layout."""
    for path in sorted((FOLDER.parent / "case").glob("*.stl")):
        shutil.copy(path, out / f"{NAME}-case-{path.name}")


MADE_BY_MACHINE = any(machine_places(ref) for ref, part in layout.PARTS.items() if part.item)
STEPS = (checked, gerbers, pictures, step, schematic, placement, order_lists, netlist_for_the_test, printed_case)


def digest(out):
    """The release's own number: SHA-256 over the digests of all but the pictures, which it writes to digests.txt."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(out.iterdir())
        if path.suffix != ".png" and path.name != "digests.txt"
    ]
    (out / "digests.txt").write_text("\n".join(lines) + "\n")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


HALF = ".unfinished-"  # begins the name of the folder, in that of a release, where its files are made


def left_of(out):
    """Folders that killed releases have left in `out`. Raises NotReleased where anything else is there."""
    if not os.path.lexists(out):
        return []
    files = list(out.iterdir()) if out.is_dir() else [out]
    if not all(path.name.startswith(HALF) for path in files):
        raise NotReleased(f"expected an empty folder, or none, at {out}; do: give another one by --out")
    return files


@contextlib.contextmanager
def partial_folder(out):
    """A folder in `out` for what is not done yet: whoever is killed leaves nothing beside it. Raises NotReleased as
    left_of() does, and while another release is being made there."""
    was_there = out.exists()
    out.mkdir(parents=True, exist_ok=True)
    held = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotReleased(f"expected no other release in {out}, seen one that is being made; do: wait") from None
        for path in left_of(out):
            shutil.rmtree(path)
        with tempfile.TemporaryDirectory(prefix=HALF, dir=out) as folder:
            yield Path(folder)
    finally:
        os.close(held)
        if not was_there and not any(out.iterdir()):
            out.rmdir()


def release(out, say=print):
    """Make all of it in the folder `out`, which must be empty or missing. Returns the release's digest. Raises
    NotReleased, ToolMissing; `out` then has nothing of it, and where this process is killed nothing that looks done."""
    left_of(out)  # before anything is fetched
    kicad.provision(say)
    if stale():
        do = "python hardware/board/draw.py, fill.py, export.py"
        raise NotReleased(f"not as their sources make them: {', '.join(stale())}; do: {do}")
    if wrong := lacking(bill()):
        missing = ", ".join(f"{item}: {name}" for item, name in wrong)
        raise NotReleased(f"without a number to order by, or a dated price: {missing}; do: complete bom.csv")
    with partial_folder(out) as made, tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "project"
        project.mkdir()
        fill.project(project, (FOLDER / f"{NAME}.kicad_pcb").read_text())

        def one(make):
            began = time.monotonic()
            try:
                make(project, made)
            except child_cpu.NotReady as stuck:
                raise NotReleased(f"{make.__name__}: {stuck}") from None
            say(f"{make.__name__}: {time.monotonic() - began:.0f} s")

        # of a board that is soldered by hand no machine places anything
        steps = [make for make in STEPS if MADE_BY_MACHINE or make is not placement]
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(one, make) for make in steps]:
                done.result()
        of_all = digest(made)
        for path in sorted(made.iterdir(), key=lambda path: path.name == "digests.txt"):  # which says that all is there
            path.rename(out / path.name)
    return of_all
