"""The board's layout as the tests read it: the KiCad file, by our own reading."""

import functools
import re

from board_files import BOARD

import place  # isort: skip  (hardware/board, by way of board_files)

TEXT = (BOARD / "ssdrig.kicad_pcb").read_text()


def parsed(text):
    """Nested lists of an s-expression."""
    stack = [[]]
    for quoted, bracket, word in re.findall(r'"((?:[^"\\]|\\.)*)"|([()])|([^\s()"]+)', text):
        if bracket == "(":
            stack.append([])
        elif bracket == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word or quoted)
    return stack[0][0]


def every(node, name):
    return [item for item in node if isinstance(item, list) and item and item[0] == name]


def value(node, name, default=None):
    nodes = every(node, name)
    return nodes[0][1:] if nodes else default


def plain(net):
    return net.removeprefix("/")


class Board:
    """What a KiCad board says, by our own reading: pads, footprints, tracks, vias, pours."""

    def __init__(self, text):
        self.tree = parsed(text)
        self.parts, self.pads = (
            {},
            {},
        )  # {ref: (footprint, value)}, {(ref, number): [(net, x, y, width, height, drill)]}
        for item in every(self.tree, "footprint"):
            properties = {field[1]: field[2] for field in every(item, "property")}
            x, y, *angle = map(float, value(item, "at"))
            ref = properties["Reference"]
            self.parts[ref] = (item[1], properties["Value"])
            for pad in every(item, "pad"):
                px, py, *turn = map(float, value(pad, "at"))
                dx, dy = place.turned(px, py, angle[0] if angle else 0)
                width, height = map(float, value(pad, "size"))
                if turn and turn[0] % 180:
                    width, height = height, width
                net = plain(value(pad, "net", ["0", ""])[1])
                drill = float(value(pad, "drill", ["0"])[0])
                self.pads.setdefault((ref, pad[1]), []).append((net, x + dx, y + dy, width, height, drill))
        names = {number: plain(name) for _, number, name in every(self.tree, "net")}
        point = lambda node, name: tuple(map(float, value(node, name)[:2]))
        self.tracks = [
            (
                names[value(s, "net")[0]],
                value(s, "layer")[0],
                float(value(s, "width")[0]),
                point(s, "start"),
                point(s, "end"),
            )
            for s in every(self.tree, "segment")
        ]
        self.vias = [
            (names[value(v, "net")[0]], point(v, "at"), float(value(v, "drill")[0])) for v in every(self.tree, "via")
        ]
        self.pours = []  # (net, layer, [polygon])
        for zone in every(self.tree, "zone"):
            polygons = [
                [tuple(map(float, xy[1:])) for xy in every(value(p, "pts"), "xy")]
                for p in every(zone, "filled_polygon")
            ]
            self.pours.append((plain(value(zone, "net_name")[0]), value(zone, "layer")[0], polygons))


@functools.cache
def board_file() -> Board:
    return Board(TEXT)
