"""The simulated SSD as a device: its store, its fronts (NBD, admin socket), its ledger."""
