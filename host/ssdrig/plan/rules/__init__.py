"""Rules that say when something is reached: steady state, cliff, the end of a load. Pure functions with vectors."""
