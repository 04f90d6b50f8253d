"""What the manufacturer is to build, and the rules that KiCad checks the board by."""

from place import LAYERS, CLEARANCE_mm, DRILL_mm, EDGE_mm, THICKNESS_mm, TRACK_mm, VIA_mm

# thickness of the board: of prepreg, inner copper, core, in mm; 0.8: JLC04081H-3313 (jlcpcb.com/impedance)
PREPREG_mm, INNER_mm, CORE_mm = {1.6: (0.21, 0.0175, 1.065), 0.8: (0.0994, 0.0152, 0.5)}[THICKNESS_mm]
PERMITTIVITY = {1.6: 4.5, 0.8: 4.1}[THICKNESS_mm]
INSIDE = (
    ("dielectric 1", "prepreg", PREPREG_mm),
    ("In1.Cu", "copper", INNER_mm),
    ("dielectric 2", "core", CORE_mm),
    ("In2.Cu", "copper", INNER_mm),
    ("dielectric 3", "prepreg", PREPREG_mm),
)
STACKUP = (  # name, type, thickness in mm: 35 um of copper outside
    ("F.SilkS", "Top Silk Screen", None),
    ("F.Paste", "Top Solder Paste", None),
    ("F.Mask", "Top Solder Mask", 0.01),
    ("F.Cu", "copper", 0.035),
    *(INSIDE if LAYERS == 4 else [("dielectric 1", "core", 1.51)]),
    ("B.Cu", "copper", 0.035),
    ("B.Mask", "Bottom Solder Mask", 0.01),
    ("B.Paste", "Bottom Solder Paste", None),
    ("B.SilkS", "Bottom Silk Screen", None),
)


def project_rules():
    """What KiCad's project file says about the board: the rules of the check, error by error as KiCad has them."""
    rules = {
        "min_clearance": CLEARANCE_mm,
        "min_track_width": TRACK_mm,
        "min_via_diameter": VIA_mm,
        "min_through_hole_diameter": DRILL_mm,
        "min_via_annular_width": (VIA_mm - DRILL_mm) / 2,
        "min_copper_edge_clearance": EDGE_mm - 0.01,
        "min_hole_clearance": 0.25,
        "min_hole_to_hole": 0.25,
        "min_resolved_spokes": 2,
        "min_text_height": 1.0,
        "min_text_thickness": 0.15,
    }
    net_class = {
        "name": "Default",
        "clearance": CLEARANCE_mm,
        "track_width": TRACK_mm,
        "via_diameter": VIA_mm,
        "via_drill": DRILL_mm,
        # of the schematic, in mils: without a width KiCad draws no wire at all
        "wire_width": 6,
        "bus_width": 12,
        "line_style": 0,
    }
    net_class["priority"] = 2147483647  # KiCad's for the class of all nets
    return {
        "board": {"design_settings": {"meta": {"version": 2}, "rules": rules}},
        "net_settings": {"classes": [net_class], "meta": {"version": 4}},
    }
