"""`ssdrig run`: a test being carried out, from the check to the teardown."""
