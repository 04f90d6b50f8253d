"""Samples as they lie in rig.bin -> host times and watts in one pass: what frames.decode_samples(), ClockMap.t_ns() and
power.convert() make of them, to the last bit. Compiled: a module to import where a run is long."""

import numba
import numpy as np

from ssdrig.meter import frames

# numba keeps read() compiled until this file changes: touch it where unpacked() does (test_reduced.py sees it)
_unpacked = numba.njit(frames.unpacked)


@numba.njit(cache=True)
def read(words, at, n, t0_us, knots_us, offsets_ns, base_us, base_ns, scales, corrected, t_us, t_ns, vbus, current, P):
    """words: the eight bytes (int64) that begin at each byte; at, n, t0_us: see frames.decode_samples(); scales: see
    calibration.scales(). Fills the last five, one row per sample, and returns the sum of all volts."""
    v_scale, v_offset, i_scale, i_offset, lead_ohm = scales
    last = len(knots_us) - 1
    # host time less board time, a line from `left` to `right` through `height` at `origin`
    left, right, origin, height, slope = 0.0, 0.0, 0.0, 0.0, 0.0
    volts_sum, row = 0.0, 0
    for frame in range(len(n)):
        now_us = t0_us[frame]
        for i in range(n[frame]):
            dt_us, vbus[row], current[row] = _unpacked(words[at[frame] + 8 * i])
            if i:
                now_us += dt_us
            V, I = vbus[row] * v_scale, current[row] * i_scale  # noqa: E741
            if corrected:
                V, I = V + v_offset, I + i_offset  # noqa: E741
                V -= I * lead_ohm
            since_us = now_us - base_us
            x = float(since_us)
            if not left <= x < right:
                k = np.searchsorted(knots_us, x, "right") - 1
                slope, origin, height = 0.0, knots_us[max(k, 0)], offsets_ns[max(k, 0)]
                left = -np.inf if k < 0 else knots_us[k]
                right = np.inf if k == last else knots_us[k + 1]
                if 0 <= k < last:
                    slope = (offsets_ns[k + 1] - height) / (right - left)
            t_us[row] = now_us
            t_ns[row] = since_us * 1000 + np.int64(np.rint(slope * (x - origin) + height)) + base_ns
            P[row] = V * I
            volts_sum += V
            row += 1
    return volts_sum
