"""What is made of the rig's bytes (rig.bin): frames, clock, samples, power, rails, calibration."""
