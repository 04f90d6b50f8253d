"""What the page's packed.js makes of the numbers that report/pack.py has packed, the slow way."""

import base64

import numpy as np


def decoded(packed, mean=None):
    """What packed.js makes of packed numbers; `mean`: the packed one that extremes are counted from."""
    codes = written(packed)
    if packed["as"] == "count":
        return codes
    of = mean if packed["as"] == "offset" else packed
    if packed["as"] == "few":
        values = np.array([*packed["values"], np.nan])[codes - 1]
    elif packed["as"] == "offset":
        steps = (written(mean) - 1) // packed["coarse"] + packed["sign"] * (codes - 1 + packed["least"])
        values = of["lo"] + steps * packed["coarse"] * of["step"]
    else:
        values = of["lo"] + (codes - 1) * of["step"]
    return np.where(codes == 0, np.nan, np.exp(values) if packed["as"] == "log" else values)


def written(packed):
    """Whole numbers out of a row of bits, the slow way."""
    octets, values, at = base64.b64decode(packed["b"]), [], 0
    bits = "".join(f"{octet:08b}"[::-1] for octet in octets)

    def take(width):
        nonlocal at
        at += width
        return int(bits[at - width : at][::-1] or "0", 2)

    while len(values) < packed["n"]:
        width, least = take(6), take(packed["bits"])
        values += [least + take(width) for _ in range(min(64, packed["n"] - len(values)))]
    assert len(bits) - at < 8
    return np.array(values, np.int64)
