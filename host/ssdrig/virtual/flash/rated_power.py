"""What a preset's power states are rated for. Pure: it needs no compiled drive."""

from ssdrig.virtual.flash.presets import PowerState, Preset


def busiest_mW(p: Preset) -> int:
    """The most that the drive can draw: all dies and buses at work."""
    return p.P_idle_mW + p.P_active_mW + nand_mW(p)


def nand_mW(p: Preset) -> int:
    """All dies and buses."""
    dies = p.dies * max(p.P_read_mW, p.P_prog_mW, p.P_erase_mW)
    return dies + round(p.channels * p.channel_B_per_s * p.e_io_pJ_per_B * 1e-9)


def states(p: Preset) -> list[PowerState]:
    """PS0 and the preset's own, in the order of their numbers."""
    return [PowerState(busiest_mW(p), True), *p.power_states]


def described(p: Preset) -> list[dict]:
    """In the form of run.json, as drive/features.py for a real drive."""
    return [
        {
            "max_W": state.max_mW / 1000,
            "operational": state.operational,
            "enter_us": state.enter_us,
            "exit_us": state.exit_us,
        }
        for state in states(p)
    ]
