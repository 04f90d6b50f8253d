"""The simulated rig: the drive's power as a feed, and the cable to the board."""
