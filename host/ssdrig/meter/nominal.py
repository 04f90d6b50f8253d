"""A rail's voltage at the drive against its nominal value: SATA and M.2 drives ask for their nominal voltage +-5 %."""

TOLERANCE = 0.05
OTHER = 0.2  # a supply that is this far off is another one, or broken: no drive is meant for it
NOTHING = 0.25  # below this part of the nominal voltage the rail is off, or not used
OTHER_DO = "take the drive off NOW; are 5 V and 12 V mixed up? else correct nominal_mV of this rail on the board"
SUPPLY_PART = 0.98  # of the nominal voltage, asked for at the rig's input: the rig and its leads take up to 3 %


def nominal_V(rail: dict) -> float | None:
    """The nominal voltage of a rail of the hello; None: not stated."""
    return rail["nominal_mV"] * 1e-3 if rail.get("nominal_mV") else None


def outside(rail: dict, lowest_V: float, highest_V: float) -> str | None:
    """A note on a rail whose voltage at the drive was between these (means of conversions); None: nothing,
    it is within its tolerance, off, or without a stated nominal voltage."""
    of = nominal_V(rail)
    if of is None or highest_V < NOTHING * of:
        return None
    low, high = of * (1 - TOLERANCE), of * (1 + TOLERANCE)
    seen = lowest_V if lowest_V < low else highest_V if highest_V > high else None
    if seen is None:
        return None
    if is_other(rail, seen):
        return f"rail {rail['rail']} ({rail['name']}): {seen:.2f} V at the drive instead of {of:g} V: {OTHER_DO}"
    more = f"; the supply must give {SUPPLY_PART * of:.2f} V or more at the rig's input" if seen < low else ""
    asked = f"which asks for {low:.2f} to {high:.2f} V{more}"
    return f"rail {rail['rail']} ({rail['name']}): {seen:.3f} V at the drive, {asked}"


def is_other(rail: dict, mean_V: float) -> bool:
    """Whether a rail has another supply than the board reports: 5 V and 12 V mixed up, for instance."""
    of = nominal_V(rail)
    return of is not None and mean_V >= NOTHING * of and abs(mean_V / of - 1) > OTHER
