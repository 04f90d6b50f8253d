"""What viper code finds at a memory address of the SIMULATED board: the models put themselves here."""

known = {}  # address -> device


def ptr32(x):
    there = known.get(x)
    if there is None:
        raise ValueError("SIMULATED board: there is nothing at %08x" % x)
    return there
