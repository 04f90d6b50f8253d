"""The simulated SSD: flash, FTL, physics and model presets."""
