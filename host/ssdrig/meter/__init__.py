"""The data in the rig's bytes (rig.bin): frames, clock, samples, power, rails, calibration."""
