"""Signal integrity of the interposer's PCIe pairs: impedance, loss, skew and eye, each figure by two methods.

    python hardware/interposer/pairs.py            the tables of README.md
    ./ssdrig hardware signal [--json]              the same

A pair is two strips on F.Cu over the ground of In1, 0.5 mm apart as the contacts are, with a strip of ground on either
side. Method 1 is a 2-D field solver: finite volumes on a graded grid, solved exactly, with solder mask, strip thickness
and ground strips. Method 2 is Hammerstad and Jensen's microstrip (IEEE MTT-S 1980) with IPC-2141A's factor for the
coupling. Losses: Wheeler's incremental inductance rule and Hammerstad's factor for roughness; the dielectric's by its
share of the field. What is assumed is in ASSUMED. SI units, but for names that end in mm, dB, Ohm."""

import math
from typing import NamedTuple

import numpy as np

LIGHT_m_s = 299792458.0
EPS0 = 8.8541878128e-12
MU0 = 4e-7 * math.pi
COPPER_Ohm_m = 1.72e-8


class Stack(NamedTuple):
    """What lies over the reference plane."""

    height_mm: float  # of the dielectric
    permittivity: float
    thickness_mm: float = 0.035
    mask_mm: float = 0.02  # 0: no mask, as at the contacts
    mask_permittivity: float = 3.8


class Line(NamedTuple):
    """A pair and what the solver gives of it."""

    zdiff_Ohm: float
    permittivity: float  # effective
    share: float  # of the field's energy in prepreg and mask: d ln(eff) / d ln(eps)
    resistance_per_root_Hz: float  # of one strip and its return, per m, smooth copper


# JLC04081H-3313, published by the fab (jlcpcb.com/impedance): 0.8 mm, four layers
STACK = Stack(0.0994, 4.1)
# at contacts and lands In1 is cut away: the reference is In2, behind the core (4.48)
DEEP = Stack(0.0994 + 0.0152 + 0.5, 4.4, mask_mm=0.0)
PITCH_mm, WIDTH_mm = 0.5, 0.2
CONTACT_mm, LAND_mm = (0.35, 2.0), (0.3, 1.55)  # width and length: of the edge (M.2, 2.3.5.2), of the socket
TARGET_Ohm = 85.0

ASSUMED = {
    "loss tangent of prepreg and mask": 0.02,
    "roughness of the foil, rms, um": 1.5,
    "difference of permittivity under the two strips (weave)": 0.1,
}
LENGTH_mm = 26.95  # of a pair between contact and land: board/place.py


class Generation(NamedTuple):
    transfers_per_s: float
    budget_dB: float | None  # from die to die at half the rate; Gen3 has its limits as an eye
    ends_dB: float | None  # of it the drive (as an add-in card: 8 and 9.5 dB) and the package of the root (5 and 9 dB)
    socket_dB: float  # assumed, of the second socket's contacts; a socket made for Gen3 may have more
    board_dB_per_inch: float  # assumed, of the main board's trace


# budgets: PCI Express base 4.0 and 5.0 (36 dB and 9.5 dB for a card: asteralabs.com, PCIe 5.0 insertion loss budget)
GENERATIONS = {
    "Gen3": Generation(8e9, None, None, 0.25, 0.55),
    "Gen4": Generation(16e9, 28.0, 13.0, 0.5, 1.0),
    "Gen5": Generation(32e9, 36.0, 18.5, 1.0, 1.6),
}


# ---- method 1: the field


def graded(points, counts, power=1.7):
    """Grid lines through `points`; in each interval so many, closer together towards both ends."""
    lines = [points[0]]
    for a, b, n in zip(points, points[1:], counts):
        t = np.linspace(0, 1, n + 1)[1:]
        u = np.where(t < 0.5, 0.5 * (2 * t) ** power, 1 - 0.5 * (2 - 2 * t) ** power)
        lines += list(a + (b - a) * u)
    return np.array(lines)


def capacitance(stack, width_mm, pitch_mm, fineness, recede_mm=0.0, permittivity=None, vacuum=False):
    """F/m of one strip of a pair in odd mode. recede_mm: by which all metal draws back (in vacuum)."""
    r = recede_mm
    w, bottom = width_mm - 2 * r, stack.height_mm + 2 * r
    top = bottom + stack.thickness_mm - 2 * r
    left, right = pitch_mm / 2 - w / 2, pitch_mm / 2 + w / 2
    guard_left, guard_right = 1.5 * pitch_mm - w / 2, 1.5 * pitch_mm + w / 2
    far = 1.5 * pitch_mm + 3 * pitch_mm + 2 * stack.height_mm
    n = lambda count: max(2, round(count * fineness))
    xs = graded([0, left, right, guard_left, guard_right, far], [n(14), n(16), n(14), n(8), n(10)])
    levels = sorted({0, bottom, bottom + stack.mask_mm, top, top + stack.mask_mm})
    ys = graded([*levels, top + 4 * pitch_mm], [n(16), *[n(6)] * (len(levels) - 2), n(16)])
    dx, dy = np.diff(xs), np.diff(ys)
    mx, my = (xs[:-1] + xs[1:]) / 2, (ys[:-1] + ys[1:]) / 2
    eps = np.ones((len(dx), len(dy)))
    if not vacuum:
        eps[:, my < bottom] = permittivity or stack.permittivity
        if stack.mask_mm:
            metal = ((mx > left) & (mx < right)) | ((mx > guard_left) & (mx < guard_right))
            over = metal[:, None] & (my > top) & (my < top + stack.mask_mm)
            beside = ~metal[:, None] & (my > bottom) & (my < bottom + stack.mask_mm)
            eps[over | beside] = stack.mask_permittivity
    strip = lambda a, b: (
        (xs[:, None] >= a - 1e-9) & (xs[:, None] <= b + 1e-9) & (ys >= bottom - 1e-9) & (ys <= top + 1e-9)
    )
    live, guard = strip(left, right), strip(guard_left, guard_right)
    fixed = live | guard
    fixed[0], fixed[-1], fixed[:, 0], fixed[:, -1] = True, True, True, True
    return EPS0 * energy(dx, dy, eps, fixed, live.astype(float))


def energy(dx, dy, eps, fixed, potential):
    """Twice the energy of the field with these potentials on the fixed nodes, in units of eps0: sum of conductance
    times difference squared. One column of nodes after the other is eliminated, exactly."""
    padded = np.pad(eps, 1)
    across = (padded[1:-1, :-1] * np.pad(dy, 1)[:-1] + padded[1:-1, 1:] * np.pad(dy, 1)[1:]) / 2 / dx[:, None]
    along = (padded[:-1, 1:-1] * np.pad(dx, 1)[:-1, None] + padded[1:, 1:-1] * np.pad(dx, 1)[1:, None]) / 2 / dy
    columns, rows = fixed.shape
    inverse, rest = [], []
    for i in range(columns):
        a = np.zeros((rows, rows))
        right = across[i] if i < columns - 1 else np.zeros(rows)
        left = across[i - 1] if i else np.zeros(rows)
        k = np.arange(rows - 1)
        a[k, k + 1] = a[k + 1, k] = -along[i]
        a[np.arange(rows), np.arange(rows)] = right + left + np.pad(along[i], (1, 0)) + np.pad(along[i], (0, 1))
        b = np.zeros(rows)
        if i:
            a -= left[:, None] * inverse[-1] * np.where(fixed[i - 1], 0.0, left)
            b += left * (inverse[-1] @ rest[-1])
        a[fixed[i]], b[fixed[i]] = 0.0, potential[i][fixed[i]]
        a[fixed[i], fixed[i]] = 1.0
        inverse.append(np.linalg.inv(a))
        rest.append(b)
    field = np.empty(fixed.shape)
    field[-1] = inverse[-1] @ rest[-1]
    for i in range(columns - 2, -1, -1):
        step = across[i] * field[i + 1]
        step[fixed[i]] = 0.0
        field[i] = inverse[i] @ (rest[i] + step)
    return (across * np.diff(field, axis=0) ** 2).sum() + (along * np.diff(field, axis=1) ** 2).sum()


def solved(stack=STACK, width_mm=WIDTH_mm, pitch_mm=PITCH_mm, fineness=1.0):
    """The Line by the field solver."""
    case = (stack, width_mm, pitch_mm, fineness)
    filled, empty = capacitance(*case), capacitance(*case, vacuum=True)
    zodd = 1 / (LIGHT_m_s * math.sqrt(filled * empty))
    denser = stack._replace(permittivity=stack.permittivity * 1.02, mask_permittivity=stack.mask_permittivity * 1.02)
    more = capacitance(denser, *case[1:])
    share = math.log(more / filled) / math.log(1.02)
    step_mm = 5e-4
    inductance = lambda c: 1 / (LIGHT_m_s**2 * c)
    grown = inductance(capacitance(*case, recede_mm=step_mm, vacuum=True)) - inductance(
        capacitance(*case, recede_mm=-step_mm, vacuum=True)
    )
    per_root_Hz = math.sqrt(math.pi * MU0 * COPPER_Ohm_m) / MU0 * grown / (2e-3 * step_mm)
    return Line(2 * zodd, filled / empty, share, per_root_Hz)


# ---- method 2: closed forms


def closed_form_Ohm(stack=STACK, width_mm=WIDTH_mm, pitch_mm=PITCH_mm):
    """(Zdiff, effective permittivity) by Hammerstad and Jensen for the strip, by IPC-2141A for the pair. No mask."""
    u0, t = width_mm / stack.height_mm, stack.thickness_mm / stack.height_mm
    er = stack.permittivity
    wider = t / math.pi * math.log(1 + 4 * math.e / (t / math.tanh(math.sqrt(6.517 * u0)) ** 2))
    u1, ur = u0 + wider, u0 + wider * (1 + 1 / math.cosh(math.sqrt(er - 1))) / 2
    z01 = lambda u: (
        60 * math.log((6 + (2 * math.pi - 6) * math.exp(-((30.666 / u) ** 0.7528))) / u + math.sqrt(1 + 4 / u**2))
    )
    a = 1 + math.log((ur**4 + (ur / 52) ** 2) / (ur**4 + 0.432)) / 49 + math.log(1 + (ur / 18.1) ** 3) / 18.7
    b = 0.564 * ((er - 0.9) / (er + 3)) ** 0.053
    eff = (er + 1) / 2 + (er - 1) / 2 * (1 + 10 / ur) ** (-a * b)
    z0 = z01(ur) / math.sqrt(eff)
    eff *= (z01(u1) / z01(ur)) ** 2
    gap = (pitch_mm - width_mm) / stack.height_mm
    return 2 * z0 * (1 - 0.48 * math.exp(-0.96 * gap)), eff


def closed_form_resistance(stack=STACK, width_mm=WIDTH_mm, pitch_mm=PITCH_mm):
    """Line.resistance_per_root_Hz by Wheeler's rule on the closed form in vacuum: all metal draws back by half a
    micron and by less."""

    def zodd_Ohm(back_mm):
        height, thickness = stack.height_mm + 2 * back_mm, stack.thickness_mm - 2 * back_mm
        air = Stack(height, 1.0, thickness, 0.0)
        return closed_form_Ohm(air, width_mm - 2 * back_mm, pitch_mm)[0] / 2

    step_mm = 5e-4
    grown = (zodd_Ohm(step_mm) - zodd_Ohm(-step_mm)) / LIGHT_m_s
    return math.sqrt(math.pi * MU0 * COPPER_Ohm_m) / MU0 * grown / (2e-3 * step_mm)


# ---- the way from contact to contact


def loss_Np_m(line, f):
    """(copper's, dielectric's) at a frequency."""
    depth_um = math.sqrt(COPPER_Ohm_m / (math.pi * f * MU0)) * 1e6
    rough = ASSUMED["roughness of the foil, rms, um"] / depth_um
    factor = 1 + 2 / math.pi * math.atan(1.4 * rough**2)
    copper = line.resistance_per_root_Hz * math.sqrt(f) * factor / line.zdiff_Ohm  # R / (2 Zodd)
    tangent = ASSUMED["loss tangent of prepreg and mask"]
    return copper, math.pi * f / LIGHT_m_s * math.sqrt(line.permittivity) * line.share * tangent


def cascade(waves):
    """(S11, S21) at TARGET_Ohm of (differential impedance in Ohm, propagation per m, length in mm) one behind the
    other."""
    matrix = np.eye(2, dtype=complex)
    for z, gamma, length_mm in waves:
        x = gamma * length_mm * 1e-3
        matrix = matrix @ np.array([[np.cosh(x), z * np.sinh(x)], [np.sinh(x) / z, np.cosh(x)]])
    (a, b), (c, d) = matrix
    total = a + b / TARGET_Ohm + c * TARGET_Ohm + d
    return (a + b / TARGET_Ohm - c * TARGET_Ohm - d) / total, 2 / total


def gamma_per_m(line, f):
    """Propagation of a Line at a frequency."""
    return sum(loss_Np_m(line, f)) + 2j * math.pi * f * math.sqrt(line.permittivity) / LIGHT_m_s


def chain(pieces, f):
    """(S11, S21) at TARGET_Ohm of (Line, length in mm) one behind the other."""
    return cascade([(line.zdiff_Ohm, gamma_per_m(line, f), length_mm) for line, length_mm in pieces])


def eye(pieces, rate):
    """The worst eye's height behind the interposer alone, as a share of what was sent: the main value of a single bit's
    response less all others (peak distortion), no equaliser, edges of 0.35 of a bit."""
    over, bits = 16, 64
    step = 1 / rate / over
    count = over * bits
    f = np.fft.rfftfreq(count, step)
    s21 = np.array([chain(pieces, x)[1] if x else 1.0 for x in f])
    bit = np.zeros(count)
    bit[over : 2 * over] = 1.0
    edge = max(1, round(0.35 * over))
    spectrum = np.fft.rfft(bit) * np.fft.rfft(np.r_[np.ones(edge) / edge, np.zeros(count - edge)])
    answer = np.fft.irfft(spectrum * s21, count)
    best = 0.0
    for phase in range(over):
        at = answer[phase::over]
        best = max(best, 2 * at.max() - np.abs(at).sum())
    return best


def pieces(length_mm=LENGTH_mm, fineness=1.0):
    """Contact of the edge, pair, land of the socket."""
    return [
        (solved(DEEP, CONTACT_mm[0], PITCH_mm, fineness), CONTACT_mm[1]),
        (solved(STACK, WIDTH_mm, PITCH_mm, fineness), length_mm),
        (solved(DEEP, LAND_mm[0], PITCH_mm, fineness), LAND_mm[1]),
    ]


def skew_ps(length_mm=LENGTH_mm):
    """(of the copper, of the glass weave by the assumed difference)."""
    eff = closed_form_Ohm()[1]
    slower = math.sqrt(eff + ASSUMED["difference of permittivity under the two strips (weave)"]) - math.sqrt(eff)
    return 0.0, length_mm * 1e-3 / LIGHT_m_s * slower * 1e12


def generations(fineness=1.0):
    """A row for each generation: loss of interposer and socket, its share of the budget, what stays for the main
    board."""
    way, rows = pieces(fineness=fineness), []
    for name, of in GENERATIONS.items():
        nyquist = of.transfers_per_s / 2
        worst = max(abs(chain(way, nyquist * part / 40)[0]) for part in range(1, 41))
        own_dB = -20 * math.log10(abs(chain(way, nyquist)[1]))
        left_dB = of.budget_dB and of.budget_dB - of.ends_dB - own_dB - of.socket_dB
        rows.append(
            {
                "generation": name,
                "GHz": nyquist / 1e9,
                "interposer_dB": round(own_dB, 2),
                "socket_dB": of.socket_dB,
                "return_loss_dB": round(-20 * math.log10(worst), 1),
                "eye": round(float(eye(way, of.transfers_per_s)), 2),
                "budget_dB": of.budget_dB,
                "left_dB": left_dB and round(left_dB, 1),
                "left_inch": left_dB and round(left_dB / of.board_dB_per_inch, 1),
                "skew_ps": [round(ps, 1) for ps in skew_ps()],
                "weave_UI": round(skew_ps()[1] * 1e-12 * of.transfers_per_s, 3),
            }
        )
    return rows


MESHES = (0.7, 1.0, 1.4)


def methods():
    """{method: (Zdiff in Ohm, effective permittivity)} of the pair."""
    by_mesh = {f"field, mesh x {mesh:g}": solved(fineness=mesh)[:2] for mesh in MESHES}
    named = by_mesh | {"closed form": closed_form_Ohm()}
    return {name: (round(float(z), 2), round(float(eff), 3)) for name, (z, eff) in named.items()}


def figures():
    """All of it, as data: methods, loss at 8 and 16 GHz by mesh, generations, assumptions."""
    losses = {
        f"{f / 1e9:g} GHz, mesh x {mesh:g}": round(-20 * math.log10(abs(chain(pieces(fineness=mesh), f)[1])), 3)
        for f in (8e9, 16e9)
        for mesh in MESHES
    }
    return {
        "target_Ohm": TARGET_Ohm,
        "Zdiff_Ohm": {name: z for name, (z, _) in methods().items()},
        "insertion_loss_dB": losses,
        "generations": generations(),
        "assumed": ASSUMED,
    }


def markdown():
    """The tables of README.md."""
    pairs = figures()
    lines = ["| impedance by | Zdiff, Ohm |", "|---|---|"]
    lines += [f"| {name} | {z:.1f} |" for name, z in pairs["Zdiff_Ohm"].items()]
    heads = ("", "at GHz", "interposer, dB", "second socket, dB (assumed)", "return loss, dB", "eye")
    lines += ["", f"| {' | '.join((*heads, 'left for the main board, dB', 'inches'))} |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    dash = lambda value: "-" if value is None else f"{value:g}"
    for row in pairs["generations"]:
        cells = [
            row[name] for name in ("GHz", "interposer_dB", "socket_dB", "return_loss_dB", "eye", "left_dB", "left_inch")
        ]
        lines.append(f"| {row['generation']} | {' | '.join(map(dash, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
