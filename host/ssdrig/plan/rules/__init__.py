"""Rules for steady state, cliff and the end of a load. Pure functions with vectors."""
