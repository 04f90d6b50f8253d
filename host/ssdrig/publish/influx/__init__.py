"""Points for InfluxDB, made from the journal, and their way to the server."""
