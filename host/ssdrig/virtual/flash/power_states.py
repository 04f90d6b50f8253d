"""What a drive does between its commands: it goes to sleep by steps, and wakes when it is asked. SIMULATED.

A schedule is the drive's power from the moment that it has nothing to do: levels, each with the time from that moment,
the power, and the cost of getting back to work from there. The host chooses it (NVM Express Base Specification 1.4,
8.4: Power Management, feature 02h; Autonomous Power State Transitions, feature 0Ch). Table 0 holds while the drive is
in an operational state, table 1 after the host has sent it to a non-operational one, until the next I/O.

Entering or leaving a state takes the time in the state's descriptor, with the controller at work: such a
transition takes (P_idle + P_active) x its time. A drive that is asked while it enters a state gets there first.

Static power is in the bins of the feed ahead of time (nand.HORIZON_NS); all of it is shifted by nand.LAG_NS, as that
of the work is. The functions with `d` take nand.Pointers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssdrig.base.kernels import jit
from ssdrig.virtual.flash.feed import BIN_NS
from ssdrig.virtual.flash.nand import *
from ssdrig.virtual.flash.presets import Preset
from ssdrig.virtual.flash.rated_power import nand_mW, states

OPERATIONAL, SENT = 0, 1  # the two tables


class Level(NamedTuple):
    """From `from_ns` of idleness on `power_mW`; back at work after `exit_ns`, and in a transition (`entering`) after
    the rest of that, too. `state`: the power state, or that which the drive is entering."""

    from_ns: int
    power_mW: int
    exit_ns: int
    entering: bool
    state: int


def speed(p: Preset, most_mW: int) -> float:
    """Share of the NAND's speed with which the whole drive stays within most_mW: its dies and buses take turns."""
    return min(1.0, max(0.05, (most_mW - p.P_idle_mW - p.P_active_mW) / nand_mW(p)))


def default_apst(p: Preset) -> dict[int, tuple[int, int]]:
    """{state: (ms of idleness in it, the state to go to)}, as the drive comes: down the non-operational states."""
    all_states = states(p)
    sleeps = [i for i, state in enumerate(all_states) if not state.operational]
    if not sleeps:
        return {}
    table = dict.fromkeys(range(sleeps[0]), (all_states[sleeps[0]].idle_ms, sleeps[0]))
    return table | {a: (all_states[b].idle_ms, b) for a, b in zip(sleeps, sleeps[1:], strict=False)}


def schedule(p: Preset, state: int, apst: Mapping[int, tuple[int, int]]) -> list[Level]:
    """The levels of a drive in `state`, with the transitions `apst` ({}: none)."""
    known = states(p)
    work_mW = p.P_idle_mW + p.P_active_mW
    levels: list[Level] = []
    at = 0

    def enter(target: int) -> int:
        to = known[target]
        if to.enter_us:
            levels.append(Level(at, work_mW, 1000 * to.exit_us, True, target))
        levels.append(Level(at + 1000 * to.enter_us, to.max_mW, 1000 * to.exit_us, False, target))
        return levels[-1].from_ns

    if known[state].operational:
        levels.append(Level(0, p.P_idle_mW, 0, False, state))
    else:
        at = enter(state)
    while len(levels) <= LEVELS - 2 and apst.get(state, (0, 0))[0]:
        idle_ms, target = apst[state]
        at += 1_000_000 * idle_ms
        at, state = enter(target), target
    return levels


def rows(levels: Sequence[Level]) -> np.ndarray:
    """int64: a table as it is in the machine vector."""
    words = [level[:LEVEL_WORDS] for level in levels] + [(FOREVER, 0, 0, 0)] * (LEVELS - len(levels))
    return np.array(words, np.int64).reshape(-1)


@jit
def level_at(d, t):
    """Where in the vector the level that is in force at t begins."""
    m = d.m
    at = K_LEVELS + m[S_TABLE] * LEVELS * LEVEL_WORDS
    last = at + (LEVELS - 1) * LEVEL_WORDS
    idle = t - m[S_LAID_SINCE]
    while at < last and m[at + LEVEL_WORDS] <= idle:
        at += LEVEL_WORDS
    return at


@jit
def laid_nJ(d, b):
    """Static energy of bin b by the schedule in force."""
    m = d.m
    begin = b * BIN_NS - LAG_NS
    end = begin + BIN_NS
    at = level_at(d, begin)
    pJ = np.int64(0)
    while True:
        until = end
        if at + LEVEL_WORDS < K_LEVELS + (m[S_TABLE] + 1) * LEVELS * LEVEL_WORDS:
            until = min(end, m[S_LAID_SINCE] + m[at + LEVEL_WORDS])
        pJ += m[at + 1] * (until - begin)
        if until == end:
            return pJ // 1000
        begin = until
        at += LEVEL_WORDS


@jit
def idle_since(d):
    """The moment from which on the drive has had nothing to do."""
    m = d.m
    return max(max(m[S_ACTIVE_UNTIL], m[S_LAST_HOST]), m[S_IDLE_FROM])


@jit
def wake(d, t):
    """Go back to work at t: the power laid down for the sleeping drive is raised to idle power, and the controller
    works while it wakes. Returns how long that takes, 0 with the latency model off."""
    m = d.m
    if m[S_SLUMBER_FROM] >= m[S_FILLED]:
        return np.int64(0)
    at = level_at(d, t)
    delay = m[at + 2]
    if m[at + 3]:
        delay += m[S_LAID_SINCE] + m[at + LEVEL_WORDS] - t
    if m[K_LATENCY] == 0:
        delay = np.int64(0)
    idle_nJ = m[K_P_IDLE] * BIN_NS // 1000
    for b in range(max((t + LAG_NS) // BIN_NS, m[S_SLUMBER_FROM]), m[S_FILLED]):
        nJ = idle_nJ - laid_nJ(d, b)
        add(d, b, nJ)
        m[E_STATIC] += nJ
    m[S_SLUMBER_FROM] = m[S_FILLED]
    m[S_TABLE] = OPERATIONAL
    m[S_IDLE_FROM] = t + delay
    if delay:
        active(d, t, t + delay)
    return delay


@jit
def fill_static(d, t):
    """Lay down static power up to t + HORIZON_NS. Power already there is that of a drive awake, or right; where the
    drive has since become idle, and would fall asleep within it, it is lowered."""
    m = d.m
    b = m[S_FILLED]
    now = t // BIN_NS
    if m[K_LIVE] and b < now:  # the process slept: the sensor saw no power in these bins, so they hold none
        m[N_FEED_GAP_BINS] += now - b
        b = now
        m[S_SLUMBER_FROM] = m[S_FILLED] = b
    idle_nJ = m[K_P_IDLE] * BIN_NS // 1000
    since = idle_since(d)
    asleep_ns = since + LAG_NS
    if m[S_TABLE] == OPERATIONAL:
        asleep_ns += m[K_LEVELS + LEVEL_WORDS]
    if m[S_SLUMBER_FROM] == b and since != m[S_LAID_SINCE]:
        m[S_LAID_SINCE] = since
        for c in range(max(asleep_ns, t + LAG_NS) // BIN_NS + 1, b):
            nJ = laid_nJ(d, c) - idle_nJ
            add(d, c, nJ)
            m[E_STATIC] += nJ
            m[S_SLUMBER_FROM] = min(m[S_SLUMBER_FROM], c)
    end = (t + HORIZON_NS) // BIN_NS
    while b < end:
        if (b + 1) * BIN_NS <= asleep_ns:
            nJ = idle_nJ
            m[S_SLUMBER_FROM] = b + 1
        else:
            nJ = laid_nJ(d, b)
        add(d, b, nJ)
        m[E_STATIC] += nJ
        b += 1
    m[S_FILLED] = b


@jit
def follow_kernel(arrays, t, table, rows):
    """From t on, once it has woken, the drive follows `table`, which has these rows now. Returns when that is."""
    d = bind(arrays)
    m = d.m
    t += wake(d, t)
    for i in range(rows.size):
        m[K_LEVELS + table * LEVELS * LEVEL_WORDS + i] = rows[i]
    m[S_TABLE] = table
    m[S_IDLE_FROM] = max(t, idle_since(d))
    m[S_LAID_SINCE] = -1
    fill_static(d, t)
    return t
