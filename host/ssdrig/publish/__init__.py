"""Copies of what runs have measured, for others: InfluxDB, Parquet, and the history of watched drives."""
