"""Student's t: how wide an interval must be that holds the mean of few values in 95 % of the cases. Pure."""

Z = 1.959964  # of a normal distribution, 95 % on both sides together


def t(freedom: int) -> float:
    """95 % on both sides together, for at least 3 degrees of freedom to 1 %: the expansion of Abramowitz and Stegun,
    26.7.5."""
    z = Z
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return sum(term / freedom**power for power, term in enumerate(terms))
