"""The host's side of the instrument: the board's stream, the switch, calibration, firmware."""
