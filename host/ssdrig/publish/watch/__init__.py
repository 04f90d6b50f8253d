"""`ssdrig watch`: SMART data of drives, recorded periodically."""
