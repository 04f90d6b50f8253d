"""The virtual bench. Everything in here is SIMULATED: a drive built from published physics, and a board whose sensor
chip reads that drive's power. What the measuring side may use of it: the NBD socket, the admin socket, the pty.
The truth (ledger) is kept apart and is for comparison only."""
