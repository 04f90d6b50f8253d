"""Draws the ways in of M.2 and U.2 drives: what goes where, and the contacts of the card that must be covered."""

import svg

# 3.3 V of a PCIe slot (B10 is 3.3Vaux, A11 PERST#), on the edge of the card; contact 1 is the one beside the bracket
COVERED = {"A": (9, 10, 11), "B": (8, 10)}
CONTACTS = 18  # that are drawn of the edge; the notch lies behind 11
POWER, DATA, SIGNAL = "#d35400", "#2b6cb0", "#6b7c3a"
PITCH = 24  # px of 1 mm


def block(x, y, wide, lines, fill="#f4f1ea"):
    """A box with lines of text, the first one bold."""
    high = 16 * len(lines) + 12
    shapes = [svg.rect(x, y, x + wide, y + high, fill, "#555555", rx=4)]
    for i, words in enumerate(lines):
        weight = {"font_weight": "bold"} if i == 0 else {}
        shapes.append(svg.text(x + wide / 2, y + 18 + 16 * i, words, 11.5, "middle", **weight))
    return shapes


def arrow(points, colour, words="", lift=6):
    """A line with a head at its end, and a word above its first piece."""
    (x0, y0), (x1, y1) = points[-2:]
    length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    head = [(x1 - 9 * ux + s * 5 * uy, y1 - 9 * uy - s * 5 * ux) for s in (1, -1)]
    shapes = [svg.line([*points[:-1], (x1 - 4 * ux, y1 - 4 * uy)], colour, 3)]
    shapes.append(svg.line([head[0], (x1, y1), head[1]], colour, 3))
    (a, b), (c, d) = points[:2]
    return shapes + ([svg.text((a + c) / 2, (b + d) / 2 - lift, words, 11, "middle", fill=colour)] if words else [])


def edge(side, x, y):
    """One face of the card's edge: contacts from the bracket on, those to be covered in orange."""
    title = {"B": "side B, the one with the parts", "A": "side A, the back (mirrored: bracket at the right)"}[side]
    shapes = [svg.text(x, y - 10, title, 12, font_weight="bold")]
    wide = (CONTACTS + 2.4) * PITCH
    shapes.append(svg.rect(x, y, x + wide, y + 96, "#dfe9df", "#555555"))
    place = lambda n: (n - 0.5 + (1.4 if n > 11 else 0) + 0.5) * PITCH
    flip = lambda at: x + (at if side == "B" else wide - at)
    shapes.append(
        svg.rect(flip(place(11) + 0.75 * PITCH), y + 30, flip(place(12) - 0.75 * PITCH), y + 96, "#ffffff", "#555555")
    )
    for n in range(1, CONTACTS + 1):
        at = flip(place(n))
        lit = n in COVERED[side]
        shapes.append(svg.rect(at - 8, y + 34, at + 8, y + 94, svg.LIT if lit else "#d9c27a", "#7a6320"))
        shapes.append(svg.text(at, y + 26, f"{side}{n}" if lit else str(n), 11 if lit else 8.5, "middle"))
        if lit:
            name = {("B", 10): "3.3Vaux", ("A", 11): "PERST#"}.get((side, n), "3.3 V")
            shapes.append(
                svg.text(at + 4, y + 90, name, 10, transform=f"rotate(-90 {svg.number(at + 4)} {svg.number(y + 90)})")
            )
    return shapes


def m2():
    """The SVG of the way in for M.2."""
    shapes = [
        svg.text(20, 26, "M.2: its 3.3 V through the rig, its data through a card in the slot", 17, font_weight="bold")
    ]
    shapes += block(20, 60, 150, ["ATX supply", "SATA plug: 12 V"])
    shapes += block(250, 60, 190, ["3.3 V converter", "limits at 5 to 8 A; a fuse", "of 3 A in its 12 V lead"])
    shapes += block(520, 60, 150, ["rig, rail 0", "board: J3 IN - OUT", "switch, crowbar, meter"], "#fdebd0")
    shapes += block(770, 60, 190, ["M.2 socket on the card", "3.3 V side of its capacitors", "and its ground"])
    shapes += arrow([(170, 88), (250, 88)], POWER, "12 V") + arrow([(440, 88), (520, 88)], POWER, "3.3 V")
    shapes += arrow([(670, 88), (770, 88)], POWER, "3.3 V, 5 A")
    shapes += block(770, 180, 190, ["PCIe slot of the computer", "data, clock, ground"])
    shapes += arrow([(865, 180), (865, 126)], DATA)
    shapes += [svg.text(878, 160, "PCIe", 11, fill=DATA)]
    lines = (
        "1 Cover the orange contacts of the card's edge with polyimide tape (two layers, to the end of each contact).",
        "2 Solder the rail's wires at the socket: 3.3 V to the plus of its largest capacitor, ground beside it; 1 mm2.",
        "3 Ohmmeter, card in the slot, mains off: the computer's 3.3 V and the socket's are not joined (> 1 kOhm).",
        "4 PERST#: 1 kOhm from the slot's A11 to the socket (pin 50), there the drain of the FET on GPIO 18.",
        "   A host drives PERST#: joined, 42 to 69 mA flow into the cut drive, and the residual does not show it.",
    )
    shapes += [svg.text(20, 190 + 18 * i, line, 12) for i, line in enumerate(lines)]
    shapes += edge("B", 20, 304) + edge("A", 20, 444)
    words = (
        "Contacts as public tables have them:",
        "the ohmmeter decides. Cards with a",
        "regulator from 12 V (B1-B3, A2, A3)",
        "or a power plug of their own: cut",
        "that path as well. The first two",
        "rows of teeth end at the notch,",
        "behind contact 11.",
    )
    shapes += [svg.text(540, 312 + 17 * i, line, 12) for i, line in enumerate(words)]
    return svg.page(985, 557, "The way in for an M.2 drive", shapes)


def u2():
    """The SVG of the way in for U.2."""
    shapes = [svg.text(20, 26, "U.2: its 12 V through the rig, its data through the cable", 17, font_weight="bold")]
    shapes += block(20, 60, 150, ["ATX supply", "SATA plug: 12 V, 5 V"])
    shapes += block(
        250,
        60,
        210,
        ["rig", "in: J1, cut cable with plug", "out: J2, with receptacle", "rail 2: 12 V, rail 1: 5 V"],
        "#fdebd0",
    )
    shapes += block(560, 60, 190, ["power plug of the cable", "15-pin SATA, male"])
    shapes += block(820, 60, 140, ["U.2 drive", "SFF-8639"])
    shapes += arrow([(170, 88), (250, 88)], POWER, "12 V, 5 V") + arrow([(460, 88), (560, 88)], POWER, "12 V, 5 V")
    shapes += arrow([(750, 88), (820, 88)], POWER, "12 V")
    shapes += block(560, 180, 190, ["host adapter", "SFF-8643 (or SlimSAS)"])
    shapes += arrow([(750, 205), (890, 205), (890, 104)], DATA, "PCIe x4")
    shapes += arrow([(355, 136), (355, 250), (905, 250), (905, 104)], SIGNAL)
    shapes += [svg.text(560, 243, "3.3Vaux by J4, if the cable brings it out", 11, fill=SIGNAL)]
    lines = (
        "1  The drive lives on 12 V: cut rail 2; rail 1 (5 V) goes through, or is cut with it if the cable joins it.",
        "2  P13 to P15 of the SATA plug carry 12 V: three contacts, 4.5 A; a drive of 25 W takes 2.1 A.",
        "3  Breakout: exchange the two sensors, so that the INA228 is on 12 V, or build 12 V alone.",
        "4  PERST# comes through the data cable: the host drives it into the cut drive, and 12 V do not show it.",
        "   Open its wire and lead it through J5 and J6: 1 kOhm, held low while power is gone.",
    )
    shapes += [svg.text(20, 290 + 19 * i, line, 12) for i, line in enumerate(lines)]
    return svg.page(985, 390, "The way in for a U.2 drive", shapes)


# the table of hardware/README.md, a row each: (what it is for, data: from the host on, where the rig's rail goes in,
# the rail, what the reading has besides the drive, what happens to PERST#)
TODAY = (
    (
        "M.2, U.2 or E1.S behind a cable",
        ("host adapter", "OCuLink, SFF-8643", "or SlimSAS"),
        ("drive-side board", "own power plug", "(SATA or 4-pin)"),
        "12 V or 5 V",
        "M.2: its converter, 10 to 15 %",
        "its wire through J5, J6",
    ),
    (
        "M.2 on a U.2 carrier",
        ("host adapter", "SFF-8643 to", "SFF-8639 cable"),
        ("U.2-to-M.2 carrier", "cable's SATA plug", "12 V, converter"),
        "12 V",
        "the carrier's converter",
        "its wire through J5, J6",
    ),
    (
        "M.2, card with one trace to cut",
        ("PCIe slot", "ordinary:", "remove and rescan"),
        ("PCIe card", "3.3 V trace cut,", "A11 covered"),
        "3.3 V",
        "nothing",
        "1 kOhm, FET on GPIO 18",
    ),
    (
        "M.2, plain card",
        ("PCIe slot", "ordinary:", "remove and rescan"),
        ("PCIe card", "A9-A11, B8, B10", "covered"),
        "3.3 V",
        "nothing",
        "1 kOhm, FET on GPIO 18",
    ),
    (
        "M.2 in an enclosure",
        ("USB4, Thunderbolt", "data only", ""),
        ("enclosure", "its 5 V alone", "bridge and drive"),
        "5 V",
        "the bridge, 1 to 2 W",
        "the bridge's own",
    ),
)
ROW = 112  # px


def today():
    """The SVG of all ways: data from the left, supply through the rig from below."""
    shapes = [svg.text(20, 26, "Ways in for M.2, U.2 and EDSFF that exist today", 17, font_weight="bold")]
    for column, words in ((20, "data"), (222, "drive's side"), (452, "supply"), (730, "what else is measured; PERST#")):
        shapes.append(svg.text(column, 50, words, 12, font_weight="bold"))
    for k, (title, host, board, rail, besides, perst) in enumerate(TODAY):
        y = 62 + ROW * k
        shapes.append(svg.text(20, y + 12, f"{k + 1}  {title}", 12.5, font_weight="bold"))
        shapes += block(20, y + 22, 140, [line for line in host if line])
        shapes += arrow([(160, y + 48), (222, y + 48)], DATA, "PCIe" if "USB" not in host[0] else "USB")
        shapes += block(222, y + 22, 150, board)
        shapes += arrow([(452, y + 48), (372, y + 48)], POWER, rail)
        shapes += block(452, y + 22, 110, ["rig", f"rail of {rail}"], "#fdebd0")
        shapes += arrow([(620, y + 48), (562, y + 48)], POWER)
        shapes += block(620, y + 22, 84, ["supply", "ATX"] if rail != "3.3 V" else ["supply", "3.3 V"])
        shapes.append(svg.text(730, y + 42, f"besides the drive: {besides}", 12))
        shapes.append(svg.text(730, y + 62, f"PERST#: {perst}", 12))
    foot = 62 + ROW * len(TODAY)
    lines = (
        "E1.S, E3.S by way 1, up to 54 W on 12 V (three contacts of 1.5 A); drives of 70 W are for no build of ours.",
        "Ways 2 and 4 have pictures of their own; run powerloss rehearses whether a host lets a drive come back.",
    )
    shapes += [svg.text(20, foot + 14 + 18 * i, line, 12) for i, line in enumerate(lines)]
    return svg.page(1070, foot + 44, "Ways in for M.2, U.2 and EDSFF", shapes)


def pictures():
    """{file: SVG}."""
    return {"ways.svg": today(), "way-m2.svg": m2(), "way-u2.svg": u2()}
