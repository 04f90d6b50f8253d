"""The pairs of the interposer by a second solver: openEMS (finite differences in time, three dimensions).

    python hardware/interposer/fullwave.py       the table of README.md; needs openEMS (apt-get install openems)

The pair is a straight line of 16 mm between absorbing ends. Half of it is simulated: in odd mode the plane between the
two strips is a wall. Copper is a sheet of finite conductivity, laminate and mask have their loss at one frequency.
Three voltages and a current along the line give propagation and impedance, whatever the ends reflect:
cosh(gamma d) = (V1 + V3) / (2 V2). openEMS is run as a program, by its XML file; SI units, but for names that end in
mm, dB, Ohm."""

import cmath
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pairs

LIMIT_s = 1200  # of CPU time
LENGTH_mm, STEP_mm = 16.0, 0.25  # of the line, of its cells along it
BELOW_mm, VIA_mm = 0.4, 0.2  # under the plane; thickness and length of a guard's via
PROBES_mm = (4.5, 8.5, 12.5)
SOURCE_mm = 3.0
ABSORBING = 9  # cells at each end; sheets have no effect there, so copper is a perfect conductor in them
FREQUENCIES_Hz = (8e9, 16e9)
COARSE, FINE = 0.7, 1.0


class Wave(NamedTuple):
    """What a line does to a wave of one frequency."""

    zdiff_Ohm: complex
    gamma_per_m: complex


def box(kind, first, last, priority):
    """A box of CSXCAD, mm."""
    ends = "".join(f'<P{k} X="{x:.9g}" Y="{y:.9g}" Z="{z:.9g}"/>' for k, (x, y, z) in enumerate((first, last), 1))
    return f'<{kind} Priority="{priority}">{ends}</{kind}>'


def grid(stack, width_mm, pitch_mm, fineness):
    """(x, y, z) lines in mm; y = 0 is the plane, x = 0 the wall between the strips."""
    n = lambda count: max(2, round(count * fineness))
    left, right = pitch_mm / 2 - width_mm / 2, pitch_mm / 2 + width_mm / 2
    guard = 1.5 * pitch_mm
    far = guard + 3 * pitch_mm + 2 * stack.height_mm
    xs = pairs.graded([0, left, right, guard - width_mm / 2, guard + width_mm / 2, far], [n(8), n(9), n(8), n(5), n(8)])
    bottom, top = stack.height_mm, stack.height_mm + stack.thickness_mm
    levels = sorted({0.0, bottom, bottom + stack.mask_mm, top, top + stack.mask_mm})
    above = pairs.graded([*levels, top + 4 * pitch_mm], [n(10), *[n(2.5)] * (len(levels) - 2), n(10)])
    ys = np.concatenate([np.linspace(-BELOW_mm, 0, n(4) + 1)[:-1], above])
    zs = np.linspace(0, LENGTH_mm, round(LENGTH_mm / STEP_mm) + 1)
    return xs, ys, zs


def conductivity(f):
    """S/m of smooth copper that has the surface resistance of the rough foil at this frequency."""
    depth_um = math.sqrt(pairs.COPPER_Ohm_m / (math.pi * f * pairs.MU0)) * 1e6
    rough = pairs.ASSUMED["roughness of the foil, rms, um"] / depth_um
    factor = 1 + 2 / math.pi * math.atan(1.4 * rough**2)
    return 1 / (pairs.COPPER_Ohm_m * factor**2)


def copper(stack, width_mm, pitch_mm, far, first, last):
    """Boxes of plane, strip and guard between two z, as faces without thickness: ideal metal, or sheets with loss."""
    bottom, top = stack.height_mm, stack.height_mm + stack.thickness_mm
    made = [box("Box", (0, 0, first), (far, 0, last), 10)]
    for middle in (pitch_mm / 2, 1.5 * pitch_mm):
        left, right = middle - width_mm / 2, middle + width_mm / 2
        made += [box("Box", (left, y, first), (right, y, last), 10) for y in (bottom, top)]
        made += [box("Box", (x, bottom, first), (x, top, last), 10) for x in (left, right)]
    return "".join(made)


def document(stack, width_mm, pitch_mm, fineness, f, ideal=False):
    """The XML of one line for openEMS. ideal: copper without loss."""
    xs, ys, zs = grid(stack, width_mm, pitch_mm, fineness)
    at = lambda value, lines: lines[np.argmin(np.abs(lines - value))]
    bottom, top = stack.height_mm, stack.height_mm + stack.thickness_mm
    left, right = pitch_mm / 2 - width_mm / 2, pitch_mm / 2 + width_mm / 2
    guard = (1.5 * pitch_mm - width_mm / 2, 1.5 * pitch_mm + width_mm / 2)
    far, end = xs[-1], zs[-1]
    tangent = pairs.ASSUMED["loss tangent of prepreg and mask"]
    loss = lambda eps: 2 * math.pi * f * pairs.EPS0 * eps * tangent

    def material(name, eps, boxes):
        triple = lambda value: f"{value:.9g},{value:.9g},{value:.9g}"
        given = f'Epsilon="{triple(eps)}" Kappa="{triple(loss(eps))}" Mue="1,1,1" Sigma="0,0,0"'
        inside = "".join(boxes)
        return f'<Material Name="{name}" Isotropy="1"><Property {given}/><Primitives>{inside}</Primitives></Material>'

    made = [material("prepreg", stack.permittivity, [box("Box", (0, 0, 0), (far, bottom, end), 1)])]
    if stack.mask_mm:
        thick = stack.mask_mm
        coat = [box("Box", (0, bottom, 0), (far, bottom + thick, end), 2)]
        coat += [box("Box", (a, top, 0), (b, top + thick, end), 2) for a, b in ((left, right), guard)]
        made.append(material("mask", stack.mask_permittivity, coat))
    sheet = 1e6 * conductivity(f) if ideal else conductivity(f)
    made.append(
        f'<ConductingSheet Name="copper" Conductivity="{sheet:.6g}" Thickness="15e-6"><Primitives>'
        f"{copper(stack, width_mm, pitch_mm, far, zs[ABSORBING], zs[-1 - ABSORBING])}</Primitives></ConductingSheet>"
    )
    ends = ((0, zs[ABSORBING]), (zs[-1 - ABSORBING], end))
    made.append(
        f'<Metal Name="ends"><Primitives>{"".join(copper(stack, width_mm, pitch_mm, far, *z) for z in ends)}'
        "</Primitives></Metal>"
    )
    spots = np.arange(0, LENGTH_mm + 0.1, 1.0)
    vias = [box("Box", (guard[0], 0, at(z, zs)), (guard[1], bottom, at(z, zs)), 9) for z in spots]
    made.append(f'<Metal Name="vias"><Primitives>{"".join(vias)}</Primitives></Metal>')
    source = at(SOURCE_mm, zs)
    spread = box("Box", (left, 0, source), (right, bottom, source), 0)
    made.append(
        f'<Excitation Name="source" Number="0" Frequency="0" Delay="0" Type="0" Excite="0,1,0" PropDir="0,0,0">'
        f'<Primitives>{spread}</Primitives><Weight X="1" Y="1" Z="1"/></Excitation>'
    )
    middle = at(pitch_mm / 2, xs)
    for k, z in enumerate(PROBES_mm):
        way = box("Box", (middle, 0, at(z, zs)), (middle, bottom, at(z, zs)), 0)
        made.append(f'<ProbeBox Name="v{k}" Type="0" Weight="1"><Primitives>{way}</Primitives></ProbeBox>')
    outside = lambda value, lines, step: (value + lines[np.argmin(np.abs(lines - value)) + step]) / 2
    z = at(PROBES_mm[1], zs) + (zs[1] - zs[0]) / 2
    ring = box(
        "Box", (outside(left, xs, -1), outside(bottom, ys, -1), z), (outside(right, xs, 1), outside(top, ys, 1), z), 0
    )
    made.append(f'<ProbeBox Name="i" NormDir="2" Type="1" Weight="1"><Primitives>{ring}</Primitives></ProbeBox>')
    numbered = lambda lines: ",".join(f"{value:.9g}" for value in lines)
    lines = "".join(f'<{axis}Lines Qty="{len(v)}">{numbered(v)}</{axis}Lines>' for axis, v in zip("XYZ", (xs, ys, zs)))
    return (
        '<?xml version="1.0"?><openEMS><FDTD NumberOfTimesteps="200000" endCriteria="1e-6" f_max="24e9">'
        '<Excitation Type="0" f0="12e9" fc="12e9"/>'
        '<BoundaryCond xmin="PEC" xmax="PEC" ymin="PEC" ymax="MUR" zmin="PML_8" zmax="PML_8"/></FDTD>'
        f'<ContinuousStructure CoordSystem="0"><RectilinearGrid DeltaUnit="0.001" CoordSystem="0">{lines}'
        f'</RectilinearGrid><BackgroundMaterial Epsilon="1" Mue="1" Kappa="0" Sigma="0"/><Properties>{"".join(made)}'
        "</Properties></ContinuousStructure></openEMS>"
    )


def spectrum(path, f):
    """A probe's file at one frequency."""
    t, value = np.loadtxt(path, comments="%", unpack=True)[:2]
    return np.sum(value * np.exp(-2j * math.pi * f * t)) * (t[1] - t[0])


def simulated(stack, width_mm, loss_Hz, pitch_mm=pairs.PITCH_mm, fineness=1.0, ideal=False):
    """[Wave at each of FREQUENCIES_Hz] of a line by openEMS. loss_Hz: where the losses of laminate and copper are those
    of the material. Raises RuntimeError with openEMS's words where it failed."""
    zs = grid(stack, width_mm, pitch_mm, fineness)[2]
    with tempfile.TemporaryDirectory(prefix="ssdrig-openems-") as folder:
        Path(folder, "line.xml").write_text(document(stack, width_mm, pitch_mm, fineness, loss_Hz, ideal))
        words = f"ulimit -t {LIMIT_s}; exec openEMS line.xml --engine=sse-compressed"
        done = subprocess.run(["sh", "-c", words], cwd=folder, capture_output=True, text=True)
        files = [Path(folder, name) for name in ("v0", "v1", "v2", "i")]
        if done.returncode or not all(file.exists() for file in files):
            raise RuntimeError(f"openEMS could not run a line:\n{(done.stdout + done.stderr)[-3000:]}")
        return [wave([spectrum(file, f) for file in files], zs) for f in FREQUENCIES_Hz]


def wave(probes, zs):
    """The Wave of three voltages and a current along a line whose cells lie at zs (mm)."""
    v1, v2, v3, i = probes
    at = [zs[np.argmin(np.abs(zs - z))] for z in PROBES_mm]
    d = (at[1] - at[0]) * 1e-3
    gamma = cmath.acosh((v1 + v3) / (2 * v2)) / d
    gamma = gamma if gamma.real > 0 else -gamma
    if gamma.imag < 0:
        gamma = complex(gamma.real, 2 * math.pi / d + gamma.imag)
    # waves from the middle probe on: forward and back, from the two outer voltages
    grow = cmath.exp(gamma * d)
    forward, back = np.linalg.solve([[grow, 1 / grow], [1 / grow, grow]], [v1, v3])
    half = cmath.exp(gamma * (zs[1] - zs[0]) * 1e-3 / 2)
    z = (forward / half - back * half) / i
    return Wave(2 * z if z.real > 0 else -2 * z, gamma)


LAMINATE, COPPER = "loss of laminate and mask at 8 GHz, dB", "loss of copper at 8 GHz, dB"
COMPARED_Hz = FREQUENCIES_Hz[0]


def dB(nepers_per_m):
    """Of a pair's whole length."""
    return 20 * math.log10(math.e) * nepers_per_m * pairs.LENGTH_mm * 1e-3


def rows(z_Ohm, permittivity, laminate_Np_m, copper_Np_m):
    """{figure: value}; what a method has not got is None."""
    return {
        "Zdiff at 8 GHz, Ohm": z_Ohm,
        "effective permittivity at 8 GHz": permittivity,
        LAMINATE: laminate_Np_m and dB(laminate_Np_m),
        COPPER: copper_Np_m and dB(copper_Np_m),
    }


def flat():
    """rows() of the pair by the 2-D solver of pairs.py."""
    line = pairs.solved()
    copper, laminate = pairs.loss_Np_m(line, COMPARED_Hz)
    return rows(line.zdiff_Ohm, line.permittivity, laminate, copper)


def closed():
    """rows() by the closed forms: no mask, so the copper's loss is that at the 2-D solver's impedance."""
    line = pairs.solved()._replace(resistance_per_root_Hz=pairs.closed_form_resistance())
    z, permittivity = pairs.closed_form_Ohm()
    return rows(z, permittivity, None, pairs.loss_Np_m(line, COMPARED_Hz)[0])


def full(fineness):
    """rows() by openEMS: with copper, and with one that has no loss. Raises RuntimeError."""
    pair = pairs.STACK, pairs.WIDTH_mm, COMPARED_Hz
    whole, laminate = (simulated(*pair, fineness=fineness, ideal=ideal)[0] for ideal in (False, True))
    slow = whole.gamma_per_m.imag * pairs.LIGHT_m_s / (2 * math.pi * COMPARED_Hz)
    lost = laminate.gamma_per_m.real
    return rows(abs(whole.zdiff_Ohm), slow**2, lost, whole.gamma_per_m.real - lost)


def figures():
    """{method: rows()}. Raises RuntimeError."""
    meshes = {f"openEMS, mesh x {fineness:g}": full(fineness) for fineness in (COARSE, FINE)}
    return {"2-D field": flat(), "closed form": closed(), **meshes}


def markdown(figures):
    """The table of README.md."""
    cell = lambda value: "-" if value is None else f"{value:.4g}"
    lines = [f"| of the pair | {' | '.join(figures)} |", "|---|" + "---|" * len(figures)]
    for name in figures["2-D field"]:
        lines.append(f"| {name} | {' | '.join(cell(of.get(name)) for of in figures.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if shutil.which("openEMS") is None:
        sys.exit("openEMS is missing; do: apt-get install openems")
    print(markdown(figures()))
