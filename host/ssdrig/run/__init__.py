"""`ssdrig run`: a test being executed, from the check to the teardown."""
